"""The report of a period for auditors: every window of a day or a month, with verdict, findings and inputs.

Pure: from current statements to one document. Nothing is judged again: verdicts are those of the windows, sums are
those of the statements, and time without a statement is listed. Docs: docs/reference/report.md.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, Final

from tieout.contracts.times import format_time
from tieout.model import Severity, Verdict, Window
from tieout.reporting.sheet import COUNTS

REPORT_VERSION: Final = 1
INCIDENTS_KEPT: Final = 100
"""How many incidents of each pipeline a report lists, the largest first; the counts include all."""

_GRAVEST_FIRST: Final = (Verdict.BROKEN, Verdict.UNKNOWN, Verdict.PENDING, Verdict.KEPT)


@dataclass(frozen=True)
class Origin:
    """At which hop of a chain an incident happened, in words; `earlier` names that hop's incidents.

    A *consequence* is an incident of which earlier hops have each message already.
    """

    words: str
    is_consequence: bool
    earlier: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class JudgedWindow:
    """The current statement of one window.

    `verdict` is the one after the independent checks; `is_checked` None if unknown. `active_from`
    and `active_until` are the contract's, None where it is open or not known. `origins` says, by incident, at which hop
    of a chain it happened (`Origin`); incidents of unknown origin are missing.
    """

    statement: Mapping[str, Any]
    verdict: Verdict
    is_checked: bool | None = None
    active_from: datetime | None = None
    active_until: datetime | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @property
    def window(self) -> Window:
        """The window in UTC."""
        bounds = self.statement["window"]
        return Window(_time(bounds["start"]), _time(bounds["end"]))


def period_document(
    judged: Iterable[JudgedWindow],
    period: Window,
    *,
    pipeline: str | None,
    source: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the report of the windows that begin in the period, as `tieout report --format json` prints it.

    Args:
        judged: At most one statement per window; windows outside of the period are ignored.
        period: The reported time, `[start, end)`.
        pipeline: The only pipeline to report, or None for all.
        source: Where the statements come from: `store` or `statements`.
        now: The time of the report; later windows are not expected to be judged.
    """

    def name(each: JudgedWindow) -> tuple[str, str]:
        return each.statement["pipeline"], each.statement["group"]

    overlapping = [
        each for each in judged if each.window.start < period.end and each.window.end > period.start
    ]
    selected = [each for each in overlapping if pipeline in (None, each.statement["pipeline"])]
    groups = groupby(sorted(selected, key=name), key=name)
    pipelines = [_of_pipeline(*names, tuple(windows), period, now) for names, windows in groups]
    return {
        "schema_version": REPORT_VERSION,
        "period": _span(period.start, period.end),
        "generated_at": format_time(now),
        "source": source,
        "pipeline": pipeline,
        "verdict": _worst([Verdict(each["verdict"]) for each in pipelines]).value,
        "pipelines": pipelines,
    }


def _of_pipeline(
    pipeline: str, group: str, judged: Sequence[JudgedWindow], period: Window, now: datetime
) -> dict[str, Any]:
    in_order = sorted(judged, key=lambda each: (each.window.start, each.window.end))
    counted = [each for each in in_order if period.start <= each.window.start]
    gaps = _gaps([each.window for each in in_order], _expected_span(in_order, period, now))
    verdicts = Counter(each.verdict.value for each in counted)
    incidents = _incidents(counted)
    return {
        "pipeline": pipeline,
        "group": group,
        "guarantees": sorted({each.statement["guarantee"] for each in counted}),
        "contract_digests": sorted({each.statement["contract_digest"] for each in counted}),
        "verdict": _worst([*(each.verdict for each in counted), *([Verdict.UNKNOWN] if gaps else [])]).value,
        "windows_judged": len(counted),
        "windows_expected": _expected([each.window for each in counted], gaps),
        "windows_unchecked": sum(each.is_checked is False for each in counted),
        "windows_overlapping": _overlapping([each.window for each in in_order]),
        "not_judged": [_span(start, end) for start, end in gaps],
        "verdicts": {verdict.value: verdicts[verdict.value] for verdict in _GRAVEST_FIRST},
        "sums": _sums(counted),
        "classes": _added(each.statement["classes"] for each in counted),
        "flags": _added(each.statement["flags"] for each in counted),
        "incidents_total": sum(_incident_count(each) for each in counted),
        "incidents_before": sum(
            origin.is_consequence for each in counted for origin in each.origins.values()
        ),
        "breaks_total": sum(int(each.statement["breaks_total"]) for each in counted),
        "incidents": incidents[:INCIDENTS_KEPT],
        "inputs_total": sum(len(found) for each in counted for found in _inputs(each).values()),
        "windows": [_row(each) for each in counted],
    }


def _row(judged_window: JudgedWindow) -> dict[str, Any]:
    """Return one window as the report lists it, with the digests of all its inputs."""
    statement, sums, inputs = judged_window.statement, _sums([judged_window]), _inputs(judged_window)
    return {
        **_span(judged_window.window.start, judged_window.window.end),
        "verdict": judged_window.verdict.value,
        "is_checked": judged_window.is_checked,
        "reasons": list(statement["reasons"]),
        "run_id": statement["run_id"],
        "generated_at": statement["generated_at"],
        "contract_digest": statement["contract_digest"],
        "messages": sums["messages"],
        "lost": sums["lost"],
        "further_effects": sums["further_effects"],
        "in_flight": sums["in_flight"],
        "breaks": statement["breaks_total"],
        "inputs_digest": inputs_digest(inputs),
        "inputs": inputs,
    }


def inputs_digest(inputs: Mapping[str, Sequence[str]]) -> str:
    """Return the SHA-256 over a window's input digests: their canonical JSON, ledgers by name, digests sorted.

    >>> inputs_digest({"log": ["b", "a"]}) == inputs_digest({"log": ["a", "b"]})
    True
    """
    canonical = {ledger: sorted(digests) for ledger, digests in inputs.items()}
    text = json.dumps(canonical, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _inputs(judged_window: JudgedWindow) -> dict[str, list[str]]:
    return {
        ledger: list(coverage.get("digests", ()))
        for ledger, coverage in judged_window.statement["coverage"].items()
    }


def _sums(judged: Sequence[JudgedWindow]) -> dict[str, int]:
    names = (*COUNTS, "unexplained")
    rows = [row for each in judged for row in each.statement["partitions"]]
    return {name: sum(int(row[name]) for row in rows) for name in names}


def _incidents(judged: Sequence[JudgedWindow]) -> list[dict[str, Any]]:
    """Return the incidents of the statements, with their windows.

    Incidents that happened here come before those that an earlier hop has already; then the gravest and largest first.
    """
    incidents = [
        {
            **incident,
            **({"position_form": form} if (form := each.statement.get("position_form")) else {}),
            "severity": incident.get("severity"),
            "window": _span(each.window.start, each.window.end),
            **({"origin": asdict(origin)} if (origin := each.origins.get(incident["incident_id"])) else {}),
        }
        for each in judged
        for incident in each.statement["incidents"]
    ]
    ranks = {severity.value: -severity.rank for severity in Severity}
    return sorted(
        incidents,
        key=lambda each: (
            is_consequence(each),
            ranks.get(each["severity"], 1),
            -each["breaks"],
            str(each["incident_id"]),
        ),
    )


def is_consequence(incident: Mapping[str, Any]) -> bool:
    """Return whether an earlier hop of the chain has an incident of the report already."""
    return bool(incident.get("origin", {}).get("is_consequence"))


def _incident_count(judged_window: JudgedWindow) -> int:
    """Return the number of the statement's incidents; the store has only the first ones, and `incidents_found`."""
    return int(judged_window.statement.get("incidents_found", len(judged_window.statement["incidents"])))


def _expected_span(
    judged: Sequence[JudgedWindow], period: Window, now: datetime
) -> tuple[datetime, datetime]:
    """Return the time that must have been judged: the past part of the period in the latest contract's active time."""
    latest = judged[-1]
    start = max(period.start, latest.active_from or period.start)
    return start, min(period.end, latest.active_until or period.end, now)


def _gaps(windows: Sequence[Window], span: tuple[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    """Return the stretches of the span that no window covers."""
    reached, end = span
    gaps = []
    for window in windows:
        if window.start > reached and reached < end:
            gaps.append((reached, min(window.start, end)))
        reached = max(reached, window.end)
    return [*gaps, (reached, end)] if reached < end else gaps


def _expected(windows: Sequence[Window], gaps: Sequence[tuple[datetime, datetime]]) -> int | None:
    """Return how many windows there should be, where all are equally long and fit into the gaps; else None."""
    lengths = {window.end - window.start for window in windows}
    if not gaps:
        return len(windows)
    if len(lengths) != 1:
        return None
    length = lengths.pop()
    if any((end - start) % length != timedelta(0) for start, end in gaps):
        return None
    return len(windows) + sum((end - start) // length for start, end in gaps)


def _overlapping(windows: Sequence[Window]) -> int:
    """Return how many windows begin before their predecessor ends: their messages are in more than one sum."""
    return sum(after.start < before.end for before, after in pairwise(windows))


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counted in counts:
        total.update(counted)
    return dict(sorted(total.items()))


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the gravest verdict; without windows it is UNKNOWN.

    >>> _worst([]), _worst([Verdict.KEPT, Verdict.PENDING])
    (<Verdict.UNKNOWN: 'UNKNOWN'>, <Verdict.PENDING: 'PENDING'>)
    """
    return next((verdict for verdict in _GRAVEST_FIRST if verdict in verdicts), Verdict.UNKNOWN)


def _span(start: datetime, end: datetime) -> dict[str, str]:
    return {"start": format_time(start), "end": format_time(end)}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
