"""What the store gives back: frozen values, one for each kind of row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tieout.model import CheckResult, CheckStatus, Guarantee, Severity, Verdict, Window
from tieout.store.covering import time_of


@dataclass(frozen=True)
class RunOrigin:
    """The Airflow task that published a run; all None if a person did."""

    dag_id: str | None = None
    dag_run_id: str | None = None
    try_number: int | None = None


@dataclass(frozen=True)
class PublishedRun:
    """A run that is in the store; `reason` says why it is not the current one of its window."""

    run_id: str
    is_current: bool
    reason: str | None = None


@dataclass(frozen=True)
class RunSummary:
    """One run without its documents. `final_verdict` and `checked_at` are None until the checks have run."""

    run_id: str
    pipeline: str
    group: str
    window: Window
    guarantee: Guarantee
    verdict: Verdict
    final_verdict: Verdict | None
    reasons: tuple[str, ...]
    breaks_total: int
    breaks_truncated: bool
    origin: RunOrigin
    contract_digest: str
    tieout_version: str
    generated_at: datetime
    published_at: datetime
    checked_at: datetime | None
    is_current: bool


@dataclass(frozen=True)
class Run(RunSummary):
    """One run with its whole statement and the contract it was judged by."""

    statement: dict[str, Any]
    contract: dict[str, Any]


@dataclass(frozen=True)
class CurrentStatement:
    """The statement that counts for a window, without its checks and with 100 incidents at most.

    `final_verdict` is None until the checks have run; `active_from` and `active_until` are the contract's.
    """

    statement: dict[str, Any]
    verdict: Verdict
    final_verdict: Verdict | None
    active_from: datetime | None
    active_until: datetime | None


@dataclass(frozen=True)
class StoredIncident:
    """Breaks of one cause, partition and contiguous stretch; positions as the log's system counts them."""

    incident_id: str
    class_name: str
    locus: str | None
    cause: str | None
    topic: str | None
    partition: int | None
    first_position: Any
    last_position: Any
    breaks: int
    severity: Severity | None


@dataclass(frozen=True)
class StoredBreak:
    """One break with a sample of its evidence, by ledger."""

    break_id: str
    incident_id: str | None
    class_name: str
    flags: tuple[str, ...]
    message_id: str | None
    producer_id: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    positions: Any
    locus: str | None
    cause: str | None
    admissible: Any
    rule: str | None
    severity: Severity
    evidence: dict[str, Any]


def summary_of(row: Mapping[str, Any]) -> RunSummary:
    """Return the run in `row`, without its documents."""
    return RunSummary(**_run_fields(row))


def run_of(row: Mapping[str, Any]) -> Run:
    """Return the run in `row`, with its documents."""
    return Run(**_run_fields(row), statement=row["statement"], contract=row["contract"])


def current_statement_of(row: Mapping[str, Any]) -> CurrentStatement:
    """Return the current statement in `row`."""
    active = row["active"] or {}
    return CurrentStatement(
        statement=row["statement"],
        verdict=Verdict(row["verdict"]),
        final_verdict=row["final_verdict"] and Verdict(row["final_verdict"]),
        active_from=time_of(active.get("from")),
        active_until=time_of(active.get("until")),
    )


def incident_of(row: Mapping[str, Any]) -> StoredIncident:
    """Return the incident in `row`."""
    return StoredIncident(**{**row, "severity": row["severity"] and Severity(row["severity"])})


def break_of(row: Mapping[str, Any]) -> StoredBreak:
    """Return the break in `row`."""
    fields = {key: value for key, value in row.items() if key != "msg_offset"}
    fields |= {
        "offset": row["msg_offset"],
        "flags": tuple(row["flags"]),
        "severity": Severity(row["severity"]),
    }
    return StoredBreak(**fields)


def check_of(row: Mapping[str, Any]) -> CheckResult:
    """Return the check result in `row`."""
    return CheckResult(
        rule=row["rule"],
        severity=Severity(row["severity"]),
        status=CheckStatus(row["status"]),
        observed=row["observed"],
        limit=row["limit_text"],
    )


def _run_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "run_id": row["run_id"],
        "pipeline": row["pipeline"],
        "group": row["consumer_group"],
        "window": Window(row["window_start"], row["window_end"]),
        "guarantee": Guarantee(row["guarantee"]),
        "verdict": Verdict(row["verdict"]),
        "final_verdict": row["final_verdict"] and Verdict(row["final_verdict"]),
        "reasons": tuple(row["reasons"]),
        "breaks_total": row["breaks_total"],
        "breaks_truncated": row["breaks_truncated"],
        "origin": RunOrigin(row["dag_id"], row["dag_run_id"], row["try_number"]),
        "contract_digest": row["contract_digest"],
        "tieout_version": row["tieout_version"],
        "generated_at": row["generated_at"],
        "published_at": row["published_at"],
        "checked_at": row["checked_at"],
        "is_current": row["is_current"],
    }
