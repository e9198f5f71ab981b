"""Alerts about windows that were not judged: one for each gap when it is found, one when it is closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tieout.contracts import Contract
from tieout.model import Alert, Severity, Window
from tieout.reporting.alerts import bounded, printable

GAP: Final = "window_gap"
"""The kind of alerts about an open gap."""

GAP_CLOSED: Final = "window_gap_closed"
"""The kind of alerts about a closed gap."""

MOST_DETAILS: Final = 5


class WindowState(StrEnum):
    """The state of one window in an audit; the value is printed."""

    MISSING = "missing"
    FAILED = "failed"
    RUNNING = "running"
    STALE = "stale"
    SUPERSEDED = "superseded"


UNJUDGED: Final = frozenset({WindowState.MISSING, WindowState.FAILED})


@dataclass(frozen=True)
class Gap:
    """Neighbouring windows without a verdict, or with one by an outdated contract.

    `window` reaches from the start of the first to the end of the last; `states` and `details` have the number
    of each.
    """

    is_stale: bool
    window: Window
    states: Mapping[WindowState, int]
    details: Mapping[str, int]

    @property
    def kind(self) -> str:
        """`stale` or `unjudged`; gaps of different kinds over the same windows are two gaps."""
        return "stale" if self.is_stale else "unjudged"

    @property
    def severity(self) -> Severity:
        """Critical if nothing is known of a window; a warning if an outdated contract judged it."""
        return Severity.WARNING if self.is_stale else Severity.CRITICAL


def gap_alerts(contract: Contract, gap: Gap, page: str | None = None) -> tuple[Alert, ...]:
    """Return the alerts about a gap, one for each route that wants its severity."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(gap.states.items()))
    details = sorted(gap.details.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        *(f"{count} x {printable(detail)}" for detail, count in details[:MOST_DETAILS]),
        *([f"… and {len(details) - MOST_DETAILS} more reasons"] if len(details) > MOST_DETAILS else []),
        "Backfill the pipeline's DAG over this time (docs/how-to/backfill-a-window.md).",
    ]
    noun = "window" if sum(gap.states.values()) == 1 else "windows"
    payload: dict[str, object] = {
        "subject": printable(f"{contract.pipeline}: {counts} {noun}, {_span(gap.window)}"),
        "text": bounded(lines),
        "pipeline": contract.pipeline,
        "group": printable(contract.group),
        "owner": printable(contract.owner),
        "guarantee": contract.guarantee.value,
        "window": {"start": gap.window.start.isoformat(), "end": gap.window.end.isoformat()},
        "run_id": None,
        "kind": GAP,
        "severity": gap.severity.value,
        "page": page,
        "gap": gap.kind,
    }
    return tuple(
        Alert(
            dedup_key="|".join(
                [
                    contract.pipeline,
                    gap.window.start.isoformat(),
                    GAP,
                    gap.kind,
                    f"{route.to}:{route.connection}",
                ]
            ),
            pipeline=contract.pipeline,
            window=gap.window,
            run_id=None,
            kind=GAP,
            severity=gap.severity,
            to=route.to,
            connection=route.connection,
            payload=payload,
        )
        for route in contract.alerts
        if gap.severity.rank >= route.at.rank
    )


def closed_alert(opened: Alert) -> Alert:
    """Return the alert that says to the same receiver that the gap of `opened` is closed."""
    span = _span(opened.window) if opened.window else "at no known time"
    closed = {
        "subject": printable(f"{opened.pipeline}: closed, every window was judged, {span}"),
        "text": f"Told before: {opened.payload.get('subject')}",
        "kind": GAP_CLOSED,
        "severity": Severity.INFO.value,
    }
    return replace(
        opened,
        dedup_key=f"{opened.dedup_key}|closed",
        kind=GAP_CLOSED,
        severity=Severity.INFO,
        payload={**opened.payload, **closed},
    )


def _span(window: Window) -> str:
    return f"{window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC"
