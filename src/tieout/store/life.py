"""The life of breaks and incidents: how published statements change it (docs/explanation/life-of-a-break.md).

A run is a pure function of its evidence and has no history. The history is here: a break is *open* while the current
statement about its window contains it without an outcome, *resolved* once the evidence gives it an outcome or somebody
accepted it, and *reopened* when neither holds any more. States depend on the current statements and the valid
acceptances, not on their order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from tieout.errors import StoreError
from tieout.model import BreakClass, Severity, Verdict, Window
from tieout.store import chains
from tieout.store.carrying import JOINED
from tieout.store.connecting import Cursor
from tieout.store.covering import time_of
from tieout.store.sql import queries

OPEN_CLASSES: Final = tuple(
    name.value
    for name in (
        BreakClass.LOST,
        BreakClass.IN_FLIGHT,
        BreakClass.UNVERIFIABLE,
        BreakClass.PHANTOM_UNKNOWN,
        BreakClass.TORN_TRANSACTION,
        BreakClass.COMMIT_AHEAD,
    )
)
"""Classes that later evidence may change: a message may still come, an origin may still be found."""


class State(StrEnum):
    """The state of a break or an incident."""

    OPEN = "open"
    RESOLVED = "resolved"
    REOPENED = "reopened"


class Resolution(StrEnum):
    """Why a life is resolved; `continued` is for incidents whose breaks go on under another incident."""

    LATE = "late"
    REPLAYED = "replayed"
    BACKFILLED = "backfilled"
    EXPLAINED = "explained"
    CONTINUED = "continued"
    ACCEPTED = "accepted"


@dataclass(frozen=True)
class Life:
    """A followed break, or an incident, across all runs; `window` and `run_id` are of the latest statement that has it.

    `age_in_windows` counts the judged windows that begin after its own, up to its resolution; None where not computed.
    An incident's `breaks` is its whole size, a break's is 1. `origin_id` is the incident that this one goes on from.
    """

    pipeline: str
    group: str
    kind: str
    id: str
    state: State
    resolution: Resolution | None
    class_name: str
    severity: Severity
    locus: str | None
    cause: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    message_id: str | None
    incident_id: str | None
    origin_id: str | None
    first_position: Any
    last_position: Any
    breaks: int
    reopenings: int
    first_run_id: str
    first_seen_at: datetime
    first_window: Window
    run_id: str
    seen_at: datetime
    window: Window
    resolved_at: datetime | None
    accepted_until: datetime | None
    age_in_windows: int | None


@dataclass(frozen=True)
class HistoryEntry:
    """An entry of a break's history: a statement that changed it, or a person's act on it or its incident.

    `what` is `statement`, `accept`, `reopen`, `annotate` or `silence`; a statement's entry has the state after it,
    an act's has who did it and why.
    """

    at: datetime
    what: str
    run_id: str | None
    window: Window | None
    state: State | None
    resolution: Resolution | None
    class_name: str | None
    severity: Severity | None
    who: str | None
    reason: str | None
    expires_at: datetime | None


@dataclass(frozen=True)
class EarlierWindow:
    """A judged window as a later run sees it: the coverage of its current statement, and whether it may change.

    `message_rows` counts the rows of its own messages by kind, wherever they lie; None if the statement has no counts.
    """

    run_id: str
    window: Window
    generated_at: datetime
    contract_digest: str
    coverage: dict[str, Any]
    message_rows: dict[str, int] | None
    is_open: bool
    is_checked: bool


@dataclass(frozen=True)
class PipelineSummary:
    """A pipeline's latest window with its current run, and what is open over all windows.

    `happened_before` counts the open incidents that an earlier hop of the chain has already.
    """

    pipeline: str
    group: str
    window: Window
    verdict: Verdict
    final_verdict: Verdict | None
    generated_at: datetime
    open_breaks: int
    open_incidents: int
    oldest_open: datetime | None
    accepted_breaks: int
    pending_windows: int
    happened_before: int = 0


def life_key(pipeline: str, group: str) -> int:
    """Return the key of the advisory lock under which the lives of a pipeline and group change, one after the other."""
    text = json.dumps(["life", pipeline, group])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def followed(cursor: Cursor, run: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the breaks to look for in a run before it is written.

    Waits for transactions that change lives now, so that no break which is followed when the run is published is
    missed.
    """
    key = {"key": life_key(run["pipeline"], run["consumer_group"])}
    cursor.execute(queries()["lock_now"], key)
    cursor.execute(queries()["followed"], run)
    found = frozenset(row["id"] for row in cursor.fetchall())
    cursor.execute(queries()["unlock_now"], key)
    return found


def advance(cursor: Cursor, run: Mapping[str, Any], contract: Mapping[str, Any]) -> None:
    """Update the lives that a run touches, once it has become its window's current run.

    Args:
        cursor: Of the transaction that publishes the run.
        run: The run's row.
        contract: Its announced replays distinguish a replay from a late arrival.
    """
    cursor.execute(queries()["lock"], {"key": life_key(run["pipeline"], run["consumer_group"])})
    expire(cursor, run["pipeline"])
    facts = {
        **run,
        "replays": _replays(contract, run["consumer_group"]),
        "at": run["generated_at"],
        "now": datetime.now(UTC),
    }
    for step in (
        "joins_as_written",
        "life_follow_incidents",
        "life_follow_breaks",
        "life_first",
        "life_see_breaks",
        "life_see_incidents",
        "life_drop",
        "life_miss",
        "life_settle_incidents",
        "life_advance",
        "life_record",
    ):
        cursor.execute(queries()[step], facts)


def advance_touched(cursor: Cursor, pipeline: str, group: str, touched: Iterable[Mapping[str, Any]]) -> None:
    """Update the lives that an act touched, and write their history."""
    rows = list(touched)
    if not rows:
        return
    now = datetime.now(UTC)
    facts = {
        "pipeline": pipeline,
        "consumer_group": group,
        "window_start": min(row["window_start"] for row in rows),
        "window_end": max(row["window_end"] for row in rows),
        "at": now,
        "now": now,
        "run_id": None,
    }
    cursor.execute(queries()["life_advance"], facts)
    cursor.execute(queries()["life_record"], facts)


def expire(cursor: Cursor, pipeline: str | None = None) -> None:
    """Reopen breaks and incidents whose acceptance has expired, of one pipeline or all."""
    cursor.execute(queries()["expired_acceptances"], {"pipeline": pipeline, "now": datetime.now(UTC)})
    for row in cursor.fetchall():
        advance_touched(cursor, row["pipeline"], row["consumer_group"], [row])


def _replays(contract: Mapping[str, Any], group: str) -> list[datetime]:
    """Return the times at which the contract's annotations announce a replay by the group."""
    times = []
    for note in contract.get("annotations") or ():
        if note.get("kind") == "offset_reset" and note.get("group") in (None, group):
            try:
                times.append(time_of(note.get("at")))
            except StoreError:
                continue
    return [time for time in times if time is not None]


def life_of(row: Mapping[str, Any]) -> Life:
    """Return the life in `row`."""
    return Life(
        pipeline=row["pipeline"],
        group=row["consumer_group"],
        kind=row["kind"],
        id=row["id"],
        state=State(row["state"]),
        resolution=row["resolution"] and Resolution(row["resolution"]),
        class_name=row["class"],
        severity=Severity(row["severity"]),
        locus=row["locus"],
        cause=row["cause"],
        topic=row["topic"],
        partition=row["partition"],
        offset=row["msg_offset"],
        message_id=row["message_id"],
        incident_id=row["incident_id"],
        origin_id=row["origin_id"],
        first_position=row["first_position"],
        last_position=row["last_position"],
        breaks=row["breaks"],
        reopenings=row["reopenings"],
        first_run_id=row["first_run_id"],
        first_seen_at=row["first_seen_at"],
        first_window=Window(row["first_window_start"], row["first_window_end"]),
        run_id=row["run_id"],
        seen_at=row["seen_at"],
        window=Window(row["window_start"], row["window_end"]),
        resolved_at=row["resolved_at"],
        accepted_until=row["accepted_until"],
        age_in_windows=row["age_in_windows"],
    )


def incident_news(cursor: Cursor, pipeline: str, limit: int) -> tuple[Life, ...]:
    """Return incidents with changes that no alert reports yet, the gravest and largest first.

    An open incident that an earlier hop has already is held back while alerts of that hop cover it; it stays news
    meanwhile.
    """
    held_back: list[str] = []
    to_alert: list[Life] = []
    while len(to_alert) < limit:
        excluded = [*held_back, *(one.id for one in to_alert)]
        cursor.execute(
            queries()["incident_news"],
            {"pipeline": pipeline, "limit": limit - len(to_alert), "held": excluded},
        )
        page = [life_of(row) for row in cursor.fetchall()]
        if not page:
            break
        opened = {one.run_id for one in page if one.class_name in JOINED and one.resolution is None}
        origins = chains.origins_of(cursor, pipeline, opened)
        for one in page:
            origin = origins.get((one.run_id, one.id)) if one.resolution is None else None
            if origin is not None and origin.is_alerted_before:
                held_back.append(one.id)
            else:
                to_alert.append(one)
    return tuple(to_alert)


def alerted_state(incident: Life) -> dict[str, Any]:
    """Return the reported state of an incident, as parameters of `mark_alerted`."""
    return {
        "pipeline": incident.pipeline,
        "consumer_group": incident.group,
        "id": incident.id,
        "state": incident.state,
        "resolution": incident.resolution,
        "reopenings": incident.reopenings,
        "class": incident.class_name,
        "breaks": incident.breaks,
    }


def entry_of(row: Mapping[str, Any]) -> HistoryEntry:
    """Return the history entry in `row`."""
    return HistoryEntry(
        at=row["at"],
        what=row["what"],
        run_id=row["run_id"],
        window=None if row["window_start"] is None else Window(row["window_start"], row["window_end"]),
        state=row["state"] and State(row["state"]),
        resolution=row["resolution"] and Resolution(row["resolution"]),
        class_name=row["class_name"],
        severity=row["severity"] and Severity(row["severity"]),
        who=row["who"],
        reason=row["reason"],
        expires_at=row["expires_at"],
    )


def earlier_of(row: Mapping[str, Any]) -> EarlierWindow:
    """Return the earlier window in `row`."""
    return EarlierWindow(
        run_id=row["run_id"],
        window=Window(row["window_start"], row["window_end"]),
        generated_at=row["generated_at"],
        contract_digest=row["contract_digest"],
        coverage=row["coverage"] or {},
        message_rows=row["message_rows"],
        is_open=row["is_open"],
        is_checked=row["is_checked"],
    )


def pipeline_summary_of(row: Mapping[str, Any]) -> PipelineSummary:
    """Return the summary of a pipeline in `row`."""
    return PipelineSummary(
        pipeline=row["pipeline"],
        group=row["consumer_group"],
        window=Window(row["window_start"], row["window_end"]),
        verdict=Verdict(row["verdict"]),
        final_verdict=row["final_verdict"] and Verdict(row["final_verdict"]),
        generated_at=row["generated_at"],
        open_breaks=row["open_breaks"],
        open_incidents=row["open_incidents"],
        oldest_open=row["oldest_open"],
        accepted_breaks=row["accepted_breaks"],
        pending_windows=row["pending_windows"],
    )
