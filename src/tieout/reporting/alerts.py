"""Alerts about a run: their receivers and texts, from values alone.

An alert is for people, so it is short: the verdict and why, counts, the gravest incidents, the checks that
failed, and where to read on. Ids in it come from other people's systems: they are made visible and cut, never
passed on as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from tieout.contracts import AlertRoute, Contract, shown_position
from tieout.model import Alert, BreakClass, CheckResult, CheckStatus, Severity, Verdict, Window

MOST_REASONS: Final = 5
MOST_INCIDENTS: Final = 5
MOST_CHECKS: Final = 10
LINE_LIMIT: Final = 300
TEXT_LIMIT: Final = 3_000
"""Characters; the most that one section of a Slack message holds."""

_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HARMLESS: Final = ("DELIVERED", "RECOVERED", "NOT_SENT")


class AlertKind(StrEnum):
    """The subject of an alert."""

    VERDICT = "verdict"
    WARNINGS = "warnings"
    OVERDUE = "overdue"
    DISAGREEMENT = "disagreement"
    RUN_FAILED = "run_failed"
    CHECK_FAILED = "check_failed"
    INCIDENT = "incident"
    INCIDENTS = "incidents"


@dataclass(frozen=True)
class Finding:
    """A reason for an alert; two findings with equal `facts` about one window are the same news."""

    kind: AlertKind
    severity: Severity
    headline: str
    lines: tuple[str, ...]
    facts: Mapping[str, object]
    thread: str | None = None
    is_closing: bool = False
    details: Mapping[str, object] = field(default_factory=dict)


def alerts_for(
    contract: Contract,
    statement: Mapping[str, Any],
    results: Sequence[CheckResult],
    final: Verdict,
    *,
    page: str | None = None,
) -> tuple[Alert, ...]:
    """Return the alerts about a checked run, one for each finding and route that wants its severity.

    BROKEN is critical, UNKNOWN a warning, and so are a judge and checks that disagree, KEPT with failed
    warnings, and messages overdue in a PENDING window. PENDING alone gives no alert: the window will be judged
    again.

    Args:
        contract: Its routes receive the alerts.
        statement: The published statement, with the judge's own verdict.
        results: What the independent checks found.
        final: The verdict after them.
        page: Where people can read on.
    """
    window = Window(_time(statement["window"]["start"]), _time(statement["window"]["end"]))
    findings = (_about_verdict(statement, results, final), _about_disagreement(statement, results))
    relevant = [finding for finding in findings if finding is not None]
    return routed(contract, relevant, window=window, run_id=statement["run_id"], page=page)


def failure_alerts(
    contract: Contract,
    window: Window | None,
    dag_run_id: str,
    failed: Mapping[str, str],
    page: str | None = None,
) -> tuple[Alert, ...]:
    """Return the alerts about a run without a verdict; `failed` holds the failed steps and their states.

    A run in which only the checks failed was judged, and has an alert of another kind.
    """
    if window is not None and list(failed) == ["check"]:
        return routed(contract, [_unchecked(dag_run_id)], window=window, run_id=None, page=page)
    lines = (
        f"Airflow run {printable(dag_run_id)} gave no verdict, so nothing is known about this window.",
        *(f"{printable(step)}: {printable(state)}" for step, state in failed.items()),
        "The log of the first of these steps says why.",
    )
    facts: dict[str, object] = {"failed": dict(failed)} | ({} if window else {"dag_run_id": dag_run_id})
    finding = Finding(AlertKind.RUN_FAILED, Severity.CRITICAL, "the run failed", lines, facts)
    return routed(contract, [finding], window=window, run_id=None, page=page)


def _unchecked(dag_run_id: str) -> Finding:
    lines = (
        f"Airflow run {printable(dag_run_id)} judged the window, but its independent checks were not carried out.",
        "Without them no verdict counts. The log of the step check says why; clear it to try again.",
    )
    headline = "the checks could not be carried out"
    return Finding(AlertKind.CHECK_FAILED, Severity.WARNING, headline, lines, {"failed": "check"})


def _about_verdict(
    statement: Mapping[str, Any], results: Sequence[CheckResult], final: Verdict
) -> Finding | None:
    """Return the finding about the window itself, or None."""
    warnings = [result for result in results if result.status != CheckStatus.PASS and _is_warning(result)]
    if final == Verdict.BROKEN and _is_broken_by_incidents_alone(statement):
        return None
    if final == Verdict.UNKNOWN and _is_unchecked(statement, results):
        headline = f"the judge says {statement['verdict']}, but a check could not be carried out"
        return _finding(AlertKind.CHECK_FAILED, Severity.WARNING, headline, statement, results)
    if final in (Verdict.BROKEN, Verdict.UNKNOWN):
        severity = Severity.CRITICAL if final == Verdict.BROKEN else Severity.WARNING
        return _finding(AlertKind.VERDICT, severity, final.value, statement, results)
    if final == Verdict.PENDING and statement["flags"].get("OVERDUE"):
        headline = f"PENDING, {statement['flags']['OVERDUE']} messages overdue"
        return _finding(AlertKind.OVERDUE, Severity.WARNING, headline, statement, results)
    if final == Verdict.KEPT and warnings:
        headline = f"KEPT, with {len(warnings)} warnings" if len(warnings) > 1 else "KEPT, with a warning"
        return _finding(AlertKind.WARNINGS, Severity.WARNING, headline, statement, results)
    return None


def _is_broken_by_incidents_alone(statement: Mapping[str, Any]) -> bool:
    """Return whether the window is BROKEN by incidents alone, each of which has an alert of its own."""
    failing = {
        check["rule"]
        for check in statement.get("checks", ())
        if check["status"] == CheckStatus.FAIL and check["severity"] == Severity.CRITICAL
    }
    has_incident = any(incident.get("severity") == Severity.CRITICAL for incident in statement["incidents"])
    return has_incident and failing <= {name.value.lower() for name in BreakClass}


def _is_unchecked(statement: Mapping[str, Any], results: Sequence[CheckResult]) -> bool:
    """Return whether the checks, not the judge, could not decide."""
    has_errors = not results or any(result.status == CheckStatus.ERROR for result in results)
    return has_errors and statement["verdict"] != Verdict.UNKNOWN


def _about_disagreement(statement: Mapping[str, Any], results: Sequence[CheckResult]) -> Finding | None:
    """Return a finding where judge and checks disagree about the same rows.

    Checks that could not be carried out have no opinion, nor has a judge that says UNKNOWN.
    """
    judged = Verdict(statement["verdict"])
    fails = any(r.status == CheckStatus.FAIL and r.severity == Severity.CRITICAL for r in results)
    has_opinion = fails or (bool(results) and all(r.status != CheckStatus.ERROR for r in results))
    if not has_opinion or judged == Verdict.UNKNOWN or fails == (judged == Verdict.BROKEN):
        return None
    checked = "at least one critical check failed" if fails else "no critical check failed"
    headline = f"the judge says {judged}, but {checked}"
    return _finding(AlertKind.DISAGREEMENT, Severity.WARNING, headline, statement, results)


def _finding(
    kind: AlertKind,
    severity: Severity,
    headline: str,
    statement: Mapping[str, Any],
    results: Sequence[CheckResult],
) -> Finding:
    """Return a finding with its text for people, and the facts that identify it in later runs.

    Reasons and observed values may hold times of reading, so they are in the text and not among the facts.
    """
    failed = [result for result in results if result.status != CheckStatus.PASS]
    counts = {**_counts(statement["classes"]), **_counts(statement["flags"])}
    lines = (
        *(printable(reason) for reason in statement["reasons"][:MOST_REASONS]),
        *_more("reasons", statement["reasons"], MOST_REASONS),
        *(
            [f"Counts: {', '.join(f'{printable(name)} {count}' for name, count in counts.items())}"]
            if counts
            else []
        ),
        *(
            incident_line(incident, statement.get("position_form"))
            for incident in statement["incidents"][:MOST_INCIDENTS]
        ),
        *_more("incidents", statement["incidents"], MOST_INCIDENTS),
        *(_check_line(result) for result in failed[:MOST_CHECKS]),
        *_more("failed checks", failed, MOST_CHECKS),
    )
    facts = {
        "classes": statement["classes"],
        "flags": statement["flags"],
        "incidents": sorted(str(incident["incident_id"]) for incident in statement["incidents"]),
        "failed": sorted(f"{result.rule} {result.status}" for result in failed),
    }
    return Finding(kind, severity, headline, lines, facts)


def routed(
    contract: Contract,
    findings: Sequence[Finding],
    *,
    window: Window | None,
    run_id: str | None,
    page: str | None,
) -> tuple[Alert, ...]:
    """Return one alert for each finding and each route that wants its severity."""
    return tuple(
        Alert(
            dedup_key=dedup_key(contract, window, route, finding),
            pipeline=contract.pipeline,
            window=window,
            run_id=run_id,
            kind=finding.kind.value,
            severity=finding.severity,
            to=route.to,
            connection=route.connection,
            payload=_payload(contract, finding, window=window, run_id=run_id, page=page),
            thread=finding.thread,
            is_closing=finding.is_closing,
        )
        for finding in findings
        for route in contract.alerts
        if finding.severity.rank >= route.at.rank
    )


def dedup_key(contract: Contract, window: Window | None, route: AlertRoute, finding: Finding) -> str:
    """Return the identity of an alert: pipeline, window, route, kind and findings.

    A run of the same window with the same findings has the same key, and sends nothing new. A finding with a thread is
    identified by its facts alone: its headline may contain a growing count.
    """
    headline = finding.headline if finding.thread is None else None
    identity = json.dumps([finding.severity, headline, finding.facts], sort_keys=True, default=str)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:24]
    of = f"{window.start.isoformat()}/{window.end.isoformat()}" if window else "no window"
    return "|".join([contract.pipeline, of, f"{route.to}:{route.connection}", finding.kind, digest])


def _payload(
    contract: Contract, finding: Finding, *, window: Window | None, run_id: str | None, page: str | None
) -> dict[str, object]:
    """Return the payload for a receiver: a subject, a text for people, and the same in fields for programs."""
    when = f", {window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC" if window else ""
    subject = printable(f"{contract.pipeline}: {finding.headline}{when}")
    promise = f"{contract.guarantee}, group {contract.group}" + (
        f", owner {contract.owner}" if contract.owner else ""
    )
    return {
        "subject": subject,
        "text": bounded([printable(promise), *finding.lines]),
        "pipeline": contract.pipeline,
        "group": printable(contract.group),
        "owner": printable(contract.owner),
        "guarantee": contract.guarantee.value,
        "window": {"start": window.start.isoformat(), "end": window.end.isoformat()} if window else None,
        "run_id": run_id,
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "page": page,
        **finding.details,
    }


def printable(text: str, limit: int = LINE_LIMIT) -> str:
    r"""Return one printable line: control and direction characters as escapes, cut at `limit` characters.

    >>> printable("a\nb")
    'a\\u000ab'
    """
    shown = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def bounded(lines: Sequence[str], limit: int = TEXT_LIMIT) -> str:
    r"""Return as many whole lines as fit into `limit` characters, and a last one if some are missing.

    >>> bounded(["first", "a second, rather long one", "third"], limit=30)
    'first\n… and 2 more lines'
    """
    all_lines = "\n".join(lines)
    if len(all_lines) <= limit:
        return all_lines
    for kept in range(len(lines) - 1, 0, -1):
        text = "\n".join([*lines[:kept], f"… and {len(lines) - kept} more lines"])
        if len(text) <= limit:
            return text
    return f"… {len(lines)} lines"


def _counts(counted: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counted.items() if count and name not in _HARMLESS}


def _more(items_name: str, items: Sequence[object], most: int) -> tuple[str, ...]:
    return (f"… and {len(items) - most} more {items_name}",) if len(items) > most else ()


def incident_line(incident: Mapping[str, Any], form: str | None = None) -> str:
    """Return an incident in words: class, locus, cause, size, and where; positions in that form."""
    place = "" if incident.get("topic") is None else f" in {incident['topic']}-{incident.get('partition')}"
    first, last = (shown_position(incident.get(name), form) for name in ("first_position", "last_position"))
    positions = "" if first is None else f", positions {_position(first)} to {_position(last)}"
    causes = [incident.get("locus"), incident.get("cause")]
    causes_text = ", ".join(cause for cause in causes if cause and cause != "unknown")
    return printable(
        f"{incident['class']}: {incident['breaks']}{place}{positions}"
        + (f" ({causes_text})" if causes_text else "")
    )


def _position(position: object) -> str:
    return position if isinstance(position, str) else json.dumps(position, default=str)


def _check_line(result: CheckResult) -> str:
    ended = "could not be carried out" if result.status == CheckStatus.ERROR else "failed"
    return printable(
        f"Check {result.rule} {ended} ({result.severity}): {result.observed}, expected {result.limit}"
    )


def _is_warning(result: CheckResult) -> bool:
    return result.severity.rank >= Severity.WARNING.rank


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
