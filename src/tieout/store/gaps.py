"""Which windows were judged, and which gaps between them were told to whom.

A gap needs no table of its own. It is open while the alert about it has no other that says it is closed; an audit that
finds it again updates that alert in its place, so that it is told once, however long it stays and however it grows.
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
    """The current statement of one window; one with a later run counts because that run's evidence reaches less far."""

    run_id: str
    group: str
    window: Window
    contract_digest: str
    is_checked: bool
    has_later_run: bool
    published_at: datetime


@dataclass(frozen=True)
class OpenGap:
    """Neighbouring windows that an audit found without a valid verdict, and the alerts that tell of it."""

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
        cursor: In the transaction that all of it belongs to; two audits of one pipeline wait for each other.
        pipeline: Whose gaps they are.
        found: All of its gaps now.
        since: The audit looked at no window that ended earlier; what was told of those stays as it is.
        closing: Makes the alert that says a told gap is closed.
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
    over = [
        one
        for one in open_alerts.values()
        if one.window and one.window.end > since and not any(_is_same(one, gap) for gap in found)
    ]
    return GapsTold(opened, updated, outbox.enqueue(cursor, map(closing, over)))


def _is_same(alert: Alert, gap: OpenGap) -> bool:
    """Return whether a told gap is the one found: of one kind, and over a window in common."""
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
    """Return the alert's key with a number that tells it from a gap at the same place that was closed."""
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
