"""Alerts about incidents: one thread per incident, with alerts when it opens, grows, reopens and ends.

Only incidents that break the guarantee have alerts of their own: those of severity critical, and their end. The others
are in the alert about their window. Docs: docs/reference/alerts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tieout.contracts import Contract, position_form
from tieout.model import Alert, Severity, Window
from tieout.reporting.alerts import AlertKind, Finding, incident_line, printable, routed

MOST_SINGLE: Final = 10
"""How many opened incidents get an alert each in one call; the others share one alert."""

_RESOLVED: Final = {
    "late": "its messages came late",
    "replayed": "its messages were replayed",
    "backfilled": "the rows that were missing are there now",
    "explained": "the evidence accounts for it now",
    "accepted": "it was accepted",
}


@dataclass(frozen=True)
class IncidentNews:
    """A changed incident; `thread` is the id of its first incident, `resolution` is None while it is open.

    `chain` says at which hop of a chain it happened, None where its contract has no `after`.
    """

    incident_id: str
    thread: str
    resolution: str | None
    class_name: str
    severity: Severity
    locus: str | None
    cause: str | None
    topic: str | None
    partition: int | None
    first_position: Any
    last_position: Any
    breaks: int
    reopenings: int
    window: Window
    run_id: str
    accepted_until: datetime | None = None
    chain: str | None = None


def incident_alerts(
    contract: Contract, news: Sequence[IncidentNews], page: str | None = None
) -> tuple[Alert, ...]:
    """Return the alerts about changed incidents, the gravest and largest first.

    An incident whose breaks continue under another one is reported as that one, in the same thread.

    >>> from pathlib import Path
    >>> incident_alerts(Contract.model_construct(alerts=()), ())
    ()
    """
    critical = [
        each for each in news if each.severity == Severity.CRITICAL and each.resolution != "continued"
    ]
    opened = [each for each in critical if each.resolution is None]
    alone = [*(each for each in critical if each.resolution is not None), *opened[:MOST_SINGLE]]
    alerts = [
        alert
        for each in alone
        for alert in routed(
            contract,
            [_about(each, position_form(contract))],
            window=each.window,
            run_id=each.run_id,
            page=page,
        )
    ]
    further = opened[MOST_SINGLE:]
    if further:
        alerts += routed(contract, [_about_further(further)], window=None, run_id=None, page=page)
    return tuple(alerts)


def _about(news: IncidentNews, form: str | None) -> Finding:
    place = "" if news.topic is None else f" in {news.topic}-{news.partition}"
    subject = printable(f"{news.class_name}, {news.breaks} broken{place}")
    if news.resolution is None:
        headline = f"BROKEN again: {subject}" if news.reopenings else f"BROKEN: {subject}"
    else:
        headline = f"resolved: {subject}"
    facts = {
        "incident": news.incident_id,
        "resolution": news.resolution,
        "reopenings": news.reopenings,
        "class": news.class_name,
        "size": news.breaks.bit_length(),
        "accepted_until": str(news.accepted_until) if news.resolution == "accepted" else None,
    }
    return Finding(
        AlertKind.INCIDENT,
        news.severity,
        headline,
        tuple(_lines(news, form)),
        facts,
        thread=news.thread,
        is_closing=news.resolution is not None,
        details={
            "incident_id": printable(news.incident_id),
            "incident_key": printable(news.thread),
            "state": "open" if news.resolution is None else "resolved",
            "resolution": news.resolution,
            "class": printable(news.class_name),
            "breaks": news.breaks,
        },
    )


def _lines(news: IncidentNews, form: str | None) -> list[str]:
    incident = {
        "class": news.class_name,
        "breaks": news.breaks,
        "topic": news.topic,
        "partition": news.partition,
        "first_position": news.first_position,
        "last_position": news.last_position,
        "locus": news.locus,
        "cause": news.cause,
    }
    lines = [incident_line(incident, form), f"Incident {printable(news.incident_id)}"]
    if news.chain is not None:
        lines.append(printable(f"Chain: {news.chain}"))
    if news.resolution is not None:
        until = f" until {news.accepted_until:%Y-%m-%d %H:%M} UTC" if news.resolution == "accepted" else ""
        lines.insert(0, f"No longer open: {_RESOLVED.get(news.resolution, news.resolution)}{until}.")
    return lines


def _about_further(further: Sequence[IncidentNews]) -> Finding:
    breaks = sum(each.breaks for each in further)
    headline = f"BROKEN: {len(further)} more incidents with {breaks} broken"
    lines = (
        *(
            f"{each.class_name}: {each.breaks}, incident {printable(each.incident_id)}"
            for each in further[:MOST_SINGLE]
        ),
    )
    facts = {"incidents": sorted(each.incident_id for each in further)}
    return Finding(AlertKind.INCIDENTS, Severity.CRITICAL, headline, tuple(map(printable, lines)), facts)
