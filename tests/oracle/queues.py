"""Consumption as a queue: what is acknowledged is a set, and nothing is jumped over (taxonomy section 8, 10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.oracle.commits import covers
from tests.oracle.history import History, Position, Row
from tests.oracle.matching import is_before_its_sends
from tests.oracle.messages import Message

from tieout.contracts import Contract
from tieout.model import Identity, Ledger


def is_queue(contract: Contract) -> bool:
    """Return whether the contract says that its group takes messages as from a queue."""
    return getattr(contract, "consumption", None) == "queue"


def _is_acknowledged(history: History, message: Message, commit: Row, at: Position) -> bool:
    """Return whether the commit covers the message's position, and is no older than its sends."""
    return covers(commit, at) and not is_before_its_sends(history, message, commit.get("committed_at"))


def is_acknowledged_in_full(
    history: History, message: Message, positions: set[Position], log_lacks: Callable[[Message], bool]
) -> bool:
    """Return whether an acknowledgement covers the message, or the covering log lacks it."""
    if not history.has(Ledger.COMMITTED):
        return False
    commits = history.rows(Ledger.COMMITTED)
    is_covered = all(
        any(_is_acknowledged(history, message, commit, at) for commit in commits) for at in positions
    )
    return (bool(positions) and is_covered) or log_lacks(message)


def is_missing_by_id(history: History, message: Message, done_at: datetime | None) -> bool:
    """Return whether a log that names each record, and covers the send, has none of a message without a position."""
    began, log = message.began_at, Ledger.LOG
    if history.contract.identity is not Identity.MESSAGE_ID or not history.has_column(log, "message_id"):
        return False
    if message.message_id is None or message.reads or message.records or began is None or done_at is None:
        return False
    topics = {place[0] for place in history.bounds}
    records = [row for at, row in history.records.items() if at[0] == message.earliest.row.get("topic")]
    is_named = all(row.get("message_id") is not None for row in records if not row.get("is_control"))
    is_shown = message.earliest.row.get("topic") in topics and is_named
    return is_shown and history.covers(log, began - history.skew, done_at + history.skew)


def due_at(
    history: History, message: Message, positions: set[Position], done_at: datetime | None
) -> datetime | None:
    """Return when the allowed latency begins: the latest of send, acknowledgement and end of the last read's lock."""
    redelivery: timedelta = getattr(history.contract, "redelivery", None) or timedelta(0)
    reads = [row["processed_at"] + redelivery for row in message.reads if row.get("processed_at") is not None]
    acknowledged = [_acknowledged_at(history, message, at) for at in positions]
    return max((time for time in (done_at, *acknowledged, *reads) if time is not None), default=None)


def _acknowledged_at(history: History, message: Message, at: Position) -> datetime | None:
    """Return when the position was first known as acknowledged; an undated row says it when its table was taken."""
    coverage = history.coverage.get(Ledger.COMMITTED)
    until = coverage.complete_until if coverage else None
    commits = [row for row in history.rows(Ledger.COMMITTED) if _is_acknowledged(history, message, row, at)]
    times = [row.get("committed_at") or row.get("taken_at") or until for row in commits]
    return min((time for time in times if time is not None), default=None)
