"""The outbox: alerts are stored with their result, and sent afterwards.

Delivery is at least once. A worker that dies after the receiver took an alert and before it said so leaves a
lease that runs out, and the alert is sent again; its `dedup_key` goes along as the idempotency key, by which
a receiver can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg2.extras import Json

from tieout.model import Alert, Severity, Window
from tieout.store.connecting import Cursor
from tieout.store.sql import queries
from tieout.store.storable import TEXT_LIMIT, storable_json, storable_text

MAX_ATTEMPTS: Final = 10
FIRST_BACKOFF: Final = timedelta(seconds=30)
LONGEST_BACKOFF: Final = timedelta(hours=1)
ERROR_LIMIT: Final = 500
"""Characters of a stored reason of failure."""


@dataclass(frozen=True)
class ClaimedAlert:
    """An alert that one worker may send until its lease ends; `attempt`, from 1, numbers the claims."""

    alert_id: int
    attempt: int
    alert: Alert
    created_at: datetime


def backoff(attempt: int) -> timedelta:
    """Return how long to wait after the `attempt`-th failure: 30 s, doubled each time, at most an hour.

    >>> [backoff(attempt).total_seconds() for attempt in (1, 2, 3, 100)]
    [30.0, 60.0, 120.0, 3600.0]
    """
    doublings = min(attempt - 1, 16)
    return min(FIRST_BACKOFF * (1 << doublings), LONGEST_BACKOFF)


def enqueue(cursor: Cursor, alerts: Iterable[Alert]) -> int:
    """Store alerts and return how many are new; an alert whose key is known, sent or not, stays as it is.

    A new alert supersedes the alerts of its thread that nobody tried to send yet.
    """
    stored = 0
    for alert in alerts:
        row = _row(alert)
        cursor.execute(queries()["enqueue_alert"], row)
        stored += cursor.rowcount
        if alert.thread is not None and (cursor.rowcount or alert.is_closing):
            cursor.execute(queries()["supersede_alerts"], row)
    return stored


def claim(cursor: Cursor, limit: int, lease: timedelta, pipeline: str | None) -> tuple[ClaimedAlert, ...]:
    """Take up to `limit` due alerts for the time of `lease`; two workers never hold the same one."""
    cursor.execute(queries()["bury_alerts"], {"max_attempts": MAX_ATTEMPTS})
    cursor.execute(queries()["claim_alerts"], {"limit": limit, "lease": lease, "pipeline": pipeline})
    rows = sorted(cursor.fetchall(), key=lambda row: row["alert_id"])
    return tuple(
        ClaimedAlert(row["alert_id"], row["attempts"], alert_of(row), row["created_at"]) for row in rows
    )


def mark_sent(cursor: Cursor, claimed: ClaimedAlert) -> None:
    """Record that the receiver took the alert."""
    cursor.execute(queries()["mark_sent"], {"alert_id": claimed.alert_id})


def mark_failed(cursor: Cursor, claimed: ClaimedAlert, error: str, *, is_permanent: bool) -> bool:
    """Record why sending failed, and return whether that was the last attempt."""
    is_final = is_permanent or claimed.attempt >= MAX_ATTEMPTS
    cursor.execute(
        queries()["mark_failed"],
        {
            "alert_id": claimed.alert_id,
            "attempt": claimed.attempt,
            "is_final": is_final,
            "error": storable_text(error, ERROR_LIMIT),
            "backoff": backoff(claimed.attempt),
        },
    )
    return is_final


def _row(alert: Alert) -> dict[str, Any]:
    return {
        "dedup_key": storable_text(alert.dedup_key, TEXT_LIMIT),
        "pipeline": storable_text(alert.pipeline),
        "window_start": alert.window and alert.window.start,
        "window_end": alert.window and alert.window.end,
        "run_id": alert.run_id,
        "kind": alert.kind,
        "severity": alert.severity,
        "route_to": alert.to,
        "connection": storable_text(alert.connection),
        "thread": alert.thread and storable_text(alert.thread, TEXT_LIMIT),
        "is_closing": alert.is_closing,
        "payload": Json(storable_json(alert.payload)),
    }


def alert_of(row: Mapping[str, Any]) -> Alert:
    """Return the alert in `row`."""
    return Alert(
        dedup_key=row["dedup_key"],
        pipeline=row["pipeline"],
        window=None if row["window_start"] is None else Window(row["window_start"], row["window_end"]),
        run_id=row["run_id"],
        kind=row["kind"],
        severity=Severity(row["severity"]),
        to=row["route_to"],
        connection=row["connection"],
        payload=row["payload"],
        thread=row["thread"],
        is_closing=row["is_closing"],
    )
