"""Which windows were judged, and the alerts about gaps between them.

Gaps need no table of their own. A gap is open while its alert has no closing alert. An audit that finds it again
updates that alert in place, so that it is sent once, however long the gap stays and however it grows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg2.extras import Json

from tieout.model import Alert, Window
from tieout.store import outbox
from tieout.store.connecting import Cursor
from tieout.store.sql import queries
from tieout.store.storable import storable_json


@dataclass(frozen=True)
class JudgedWindow:
    """The current statement of one window; a later run, if any, does not count: its evidence covers less."""

    run_id: str
    group: str
    window: Window
    contract_digest: str
    is_checked: bool
    has_later_run: bool
    published_at: datetime


@dataclass(frozen=True)
class OpenGap:
    """Neighbouring windows that an audit found without a valid verdict, and the alerts about them."""

    kind: str
    window: Window
    alerts: tuple[Alert, ...]


@dataclass(frozen=True)
class GapsTold:
    """How many alerts about gaps an audit stored: new ones, updated ones, and ones that say a gap is closed."""

    opened: int
    updated: int
    closed: int


def judged_window_of(row: Mapping[str, Any]) -> JudgedWindow:
    """Return the judged window in `row`."""
    fields = {key: value for key, value in row.items() if key not in ("window_start", "window_end")}
    return JudgedWindow(**fields, window=Window(row["window_start"], row["window_end"]))


def store_alerts(
    cursor: Cursor,
    pipeline: str,
    found: Sequence[OpenGap],
    since: datetime,
    closing: Callable[[Alert], Alert],
) -> GapsTold:
    """Store alerts about new gaps, update those about known ones, and store those about closed ones.

    Args:
        cursor: Of one transaction for all of it; two audits of one pipeline wait for each other.
        pipeline: Whose gaps they are.
        found: All of its gaps now.
        since: The audit looked at no window that ended earlier; alerts about those stay as they are.
        closing: Makes the alert that says a gap is closed.
    """
    cursor.execute(queries()["lock"], {"key": _lock_key(pipeline)})
    cursor.execute(queries()["open_gap_alerts"], {"pipeline": pipeline})
    open_alerts = {row["alert_id"]: outbox.alert_of(row) for row in cursor.fetchall()}
    opened = updated = 0
    for gap, alert in ((each, alert) for each in found for alert in each.alerts):
        known = [
            key for key, one in open_alerts.items() if _is_same(one, gap) and _route(one) == _route(alert)
        ]
        if known:
            cursor.execute(queries()["update_gap_alert"], _row(known[0], alert))
            updated += 1
        else:
            opened += outbox.enqueue(cursor, [replace(alert, dedup_key=_unused(cursor, alert))])
    closed = [
        one
        for one in open_alerts.values()
        if one.window and one.window.end > since and not any(_is_same(one, gap) for gap in found)
    ]
    return GapsTold(opened, updated, outbox.enqueue(cursor, map(closing, closed)))


def _is_same(alert: Alert, gap: OpenGap) -> bool:
    """Return whether an alert is about the gap: of the same kind, over an overlapping window."""
    window = alert.window
    return (
        window is not None
        and alert.payload.get("gap") == gap.kind
        and window.start < gap.window.end
        and gap.window.start < window.end
    )


def _route(alert: Alert) -> tuple[str, str]:
    return alert.to, alert.connection


def _unused(cursor: Cursor, alert: Alert) -> str:
    """Return the alert's key with a number that distinguishes it from closed gaps at the same place."""
    cursor.execute(queries()["count_alerts_like"], {"prefix": f"{alert.dedup_key}|"})
    row = cursor.fetchone()
    return f"{alert.dedup_key}|{row['alerts'] if row else 0}"


def _row(alert_id: int, alert: Alert) -> dict[str, Any]:
    window = alert.window
    return {
        "alert_id": alert_id,
        "window_start": window and window.start,
        "window_end": window and window.end,
        "payload": Json(storable_json(alert.payload)),
    }


def _lock_key(pipeline: str) -> int:
    digest = hashlib.sha256(f"gap audit {pipeline}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
