"""Positions that are asserted for two identities: whose they are, and who is denied them (taxonomy section 8, 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.forms import form_of
from tests.oracle.history import NEVER, History, Position, Row, known, position, state_of, undated_last
from tests.oracle.messages import Attempt, Message

from tieout.model import Identity, Ledger


@dataclass
class Claims:
    """Who asserts one position: accepted sends, the log's record, reads."""

    attempts: list[tuple[Message, Attempt]] = field(default_factory=list)
    record: Row | None = None
    reads: list[Row] = field(default_factory=list)


@dataclass
class Conflict:
    """A position with two identities, a message that is denied it, and the rows that show the two."""

    at: Position
    message: Message | None
    time: datetime | None
    shown: list[tuple[Ledger, datetime | None]]


def conflicts_of(
    history: History, messages: list[Message], message_at: dict[Position, Message]
) -> list[Conflict]:
    """Return the conflicts; each message is denied the positions that another identity has (38)."""
    readers = {id(row): message for message in messages for row in message.reads}
    found = []
    for at, claims in sorted(_claims(history, messages).items(), key=lambda item: item[0]):
        conflict = _settle(history, at, claims, readers, message_at)
        if conflict is not None:
            found.append(conflict)
    return found


def _claims(history: History, messages: list[Message]) -> dict[Position, Claims]:
    found: dict[Position, Claims] = {}
    for message in messages:
        for attempt in message.attempts:
            at = position(attempt.row)
            if at is not None and message.is_accepted and attempt.outcome != "failed":
                found.setdefault(at, Claims()).attempts.append((message, attempt))
    for row in history.rows(Ledger.READ):
        at = position(row)
        if at is not None and not _is_held_by_no_data(history, at):
            found.setdefault(at, Claims()).reads.append(row)
    for at, claims in found.items():
        if at in history.records and not _is_held_by_no_data(history, at):
            claims.record = history.records[at]
    return found


def _is_held_by_no_data(history: History, at: Position) -> bool:
    """Return whether the log shows a marker or an aborted record there: these assert nothing."""
    record = history.records.get(at)
    return record is not None and (bool(record.get("is_control")) or state_of(record) == "aborted")


def _name_column(history: History) -> str | None:
    """Return the column that tells identities; by position there is one identity a position."""
    return {Identity.CONTENT: "payload_hash", Identity.MESSAGE_ID: "message_id"}.get(
        history.contract.identity
    )


def _settle(
    history: History,
    at: Position,
    claims: Claims,
    readers: dict[int, Message],
    message_at: dict[Position, Message],
) -> Conflict | None:
    column = _name_column(history)
    sent = known(attempt.row.get(column) for _, attempt in claims.attempts) if column else set()
    logged = known([claims.record.get(column)]) if column and claims.record else set()
    read = known(row.get(column) for row in claims.reads) if column else set()
    claimants = {id(message) for message, _ in claims.attempts}
    payloads = known(attempt.row.get("payload_hash") for _, attempt in claims.attempts)
    if len(claimants) == 1 and len(sent | logged | read) <= 1:
        # Two contents of one message: there is no loser.
        return _conflict(at, claims, claims.attempts[0][0], []) if len(payloads) > 1 else None
    if len(claimants) <= 1 and len(sent | logged | read) <= 1:
        return None
    winner = _winner(at, claims, column, readers, message_at)
    losers = _losers(claims, winner, readers)
    for message, since in losers:
        # What was acknowledged or read after the log was looked at, it does not speak of.
        if claims.record is None or history.log_covers(at, since):
            message.denied.add(at)
    is_sent_twice = len(claimants) > 1 or len(sent | logged) > 1
    forms = {form_of(name) for name in sent | logged | read}
    is_one_name = len(sent | logged | read) > 1 and len(forms) == 1 and len(payloads) <= 1
    reads = [] if is_sent_twice or column is None else _latest_of_others(claims, column, sent | logged)
    conflict = _conflict(at, claims, losers[0][0] if losers else None, reads)
    if is_one_name:
        conflict.shown.append((Ledger.PRODUCED, NEVER))  # nothing covers it: it is not confirmed
    return conflict


def _latest_of_others(claims: Claims, column: str, known_values: set[Any]) -> list[Row]:
    """Return of each identity that only reads show its latest read: without them there is no conflict."""
    found: dict[Any, Row] = {}
    for row in sorted(claims.reads, key=lambda row: undated_last(row.get("processed_at"))):
        if row.get(column) is not None and row[column] not in known_values:
            found[row[column]] = row
    return list(found.values())


def _conflict(at: Position, claims: Claims, message: Message | None, reads: list[Row]) -> Conflict:
    sends = [attempt.at for _, attempt in claims.attempts]
    last_sent = max(sends, key=undated_last, default=None)
    times = [row.get("processed_at") for row in reads]
    shown: list[tuple[Ledger, datetime | None]] = [(Ledger.PRODUCED, last_sent)] if sends else []
    shown += [(Ledger.READ, undated_last(time)) for time in times]
    last_read = max(times, key=undated_last, default=None)
    return Conflict(at, message, last_sent if sends else last_read, shown)


def _losers(
    claims: Claims, winner: Message | None, readers: dict[int, Message]
) -> list[tuple[Message, datetime | None]]:
    found = [(message, attempt.done_at) for message, attempt in claims.attempts]
    found += [(readers[id(row)], row.get("processed_at")) for row in claims.reads if id(row) in readers]
    return [(message, since) for message, since in found if message is not winner]


def _winner(
    at: Position,
    claims: Claims,
    column: str | None,
    readers: dict[int, Message],
    message_at: dict[Position, Message],
) -> Message | None:
    """Return the message that has the position, None where a stranger has it."""
    if claims.record is not None:
        if at in message_at:
            return message_at[at]
        if column and claims.record.get(column) is not None:
            return None
    named = [row for row in claims.reads if column and row.get(column) is not None]
    if named:
        last: Any = max(named, key=lambda row: (undated_last(row.get("processed_at")), row[column]))
        return readers.get(id(last))
    for message, _ in claims.attempts:
        if any(position(row) == at for row in message.reads + message.effects):
            return message
    return max(
        claims.attempts, key=lambda claim: (claim[1].outcome == "acked", undated_last(claim[1].done_at))
    )[0]


def names_given_twice(history: History, messages: list[Message]) -> int:
    """Return how many names were acknowledged to two sends of which one was over before the other began (9)."""
    if history.contract.identity is Identity.POSITION:
        return sum(_is_given_twice(history, message) for message in messages)
    has_sessions = any(
        history.has_column(Ledger.PRODUCED, name) for name in ("producer_session", "producer_id")
    )
    if (
        history.contract.identity is Identity.CONTENT
        or history.contract.id_scope == "session"
        or has_sessions
    ):
        return 0
    return sum(_is_given_twice(history, message) for message in messages if message.message_id is not None)


def _is_given_twice(history: History, message: Message) -> bool:
    is_by_position = history.contract.identity is Identity.POSITION
    acked = [
        attempt
        for attempt in message.attempts
        if attempt.outcome == "acked"
        and attempt.at is not None
        and not (is_by_position and position(attempt.row) is None)
    ]
    dated = [attempt for attempt in acked if not attempt.row.get("is_approximate")]
    ends = [
        attempt.done_at for attempt in dated if attempt.done_at and not history.is_undated(attempt.done_at)
    ]
    starts = [attempt.at for attempt in dated if attempt.at]
    payloads = known(attempt.row.get("payload_hash") for attempt in dated)
    if not is_by_position and len(payloads) < 2:
        return False
    if not ends or min(ends) >= max(starts) - history.skew - timedelta(seconds=1):
        return False
    return any(history.holds(attempt.at, position(attempt.row)) for attempt in dated)
