"""Identity `content`: what belongs to which attempt where only the payload tells (taxonomy section 1, Messages)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.oracle.history import History, Row, contradict, position, undated_last
from tests.oracle.messages import Message, Unmatched

from tieout.model import Ledger

OUTCOMES = ("acked", "unknown", "failed")


def payload_of(message: Message) -> Any:
    """Return the payload of a message that is one attempt."""
    return message.attempts[0].row.get("payload_hash")


def in_time(messages: list[Message]) -> list[Message]:
    """Return the messages in order of their attempts' time; those of one time by position, then by sequence (65)."""
    return sorted(messages, key=lambda message: _turn(message.attempts[0].row, "attempted_at", "sequence"))


def _turn(row: Row, time: str, number: str) -> tuple[Any, ...]:
    place = [row.get(name) for name in ("topic", "partition", "offset", number)]
    return (undated_last(row.get(time)), *((value is None, value) for value in place))


def records_by_payload(history: History, messages: list[Message], records: list[Row]) -> list[Row]:
    """Give the log's unclaimed records to the sends of their payload without a position; return the rest (66).

    Acked sends come first, then unknown, then failed ones. A record more than sends is one more position of the latest
    send of its payload, unless somebody else may have sent it.
    """
    left = []
    for record in sorted(records, key=lambda row: (row["topic"], row["partition"], row["offset"])):
        same = [message for message in in_time(messages) if payload_of(message) == record.get("payload_hash")]
        if record.get("payload_hash") is None or not same:
            left.append(record)
            continue
        free = [
            message
            for outcome in OUTCOMES
            for message in same
            if position(message.attempts[0].row) is None
            and not message.records
            and message.attempts[0].outcome == outcome
        ]
        if free:
            free[0].records.append(record)
        elif _record_is_covered(history, record) and not may_be_nameless(messages, record):
            same[-1].records.append(record)
        else:
            left.append(record)
    return left


def _record_is_covered(history: History, record: Row) -> bool:
    at: datetime | None = record.get("record_timestamp")
    return (
        _names_all(history)
        and at is not None
        and history.covers(Ledger.PRODUCED, at - history.skew, at + history.skew)
    )


def _effect_is_covered(history: History, row: Row) -> bool:
    at: datetime | None = row.get("processed_at")
    if at is None or not _names_all(history):
        return False
    return history.covers(Ledger.PRODUCED, at - history.contract.look_back, at + history.skew)


def _names_all(history: History) -> bool:
    coverage = history.coverage.get(Ledger.PRODUCED)
    return coverage is not None and coverage.names_all_producers


def may_be_nameless(messages: list[Message], row: Row) -> bool:
    """Return whether the row may show a send of which the payload is not known (68)."""
    return any(
        payload_of(message) is None
        and message.outcome != "failed"
        and not contradict(message.attempts[0].row.get("topic"), row.get("topic"))
        for message in messages
    )


def effects_by_payload(
    history: History,
    messages: list[Message],
    rows: list[Row],
    of: Callable[[Message], list[Row]],
    *,
    is_certain: bool,
) -> list[tuple[Row, Unmatched]]:
    """Give each row the earliest free attempt of its payload before it; return the rows that get none, and why.

    Acked attempts come first, then unknown, then failed ones; free is one without effect and without uncertain effect.
    A row for which every fitting attempt is taken belongs to the latest of them (67), unless somebody else may have
    sent it. `of` is the list of a message that the row joins. A certain effect that no send is left for may be an equal
    later one's, by clocks that differ: then nobody can tell of either.
    """
    unmatched, excess = [], []
    for row in sorted(rows, key=lambda row: _turn(row, "processed_at", "delivery_sequence")):
        fitting = _fitting(history, messages, row)
        free = [
            message
            for outcome in OUTCOMES
            for message in fitting
            if not message.effects and not message.uncertain and message.outcome == outcome
        ]
        if free:
            of(free[0]).append(row)
        elif row.get("payload_hash") is None:
            unmatched.append((row, Unmatched.AMBIGUOUS))
        else:
            excess.append((row, fitting))
    may_be_later = {id(row) for row, _ in excess if is_certain and _let_later_ones_have_it(messages, row)}
    for row, fitting in excess:
        if id(row) in may_be_later:
            unmatched.append((row, Unmatched.AMBIGUOUS))
        elif not fitting:
            unmatched.append((row, Unmatched.UNATTEMPTED))
        elif _effect_is_covered(history, row) and not may_be_nameless(messages, row):
            of(fitting[-1]).append(row)
        else:
            unmatched.append((row, Unmatched.AMBIGUOUS))
    return unmatched


def set_aside_by_payload(
    history: History, messages: list[Message], ledger: Ledger, rows: list[Row], state: str
) -> None:
    """Let each row account for the earliest attempt of its payload that nothing accounts for yet (69).

    One that comes before all of them may still be a later one's, by clocks that differ.
    """
    for row in sorted(rows, key=lambda row: _turn(row, "at", "reason")):
        free = [
            message
            for outcome in OUTCOMES
            for message in _fitting(history, messages, row | {"processed_at": row.get("at")})
            if not message.effects
            and not message.uncertain
            and not (set(message.accounted) - {Ledger.STAGED})
            and not message.pending_aside
            and (state != "failed" or not message.taken_back)
            and message.outcome == outcome
        ]
        if free and state == "ok":
            free[0].accounted.setdefault(ledger, []).append(row)
        elif free:
            (free[0].pending_aside if state == "unknown" else free[0].taken_back).append(row)
        elif state == "ok":
            _let_later_ones_have_it(messages, row)


def _let_later_ones_have_it(messages: list[Message], row: Row) -> bool:
    """Note that the row may be an equal later send's that has no effect, and return whether there is one."""
    later = [
        message
        for message in messages
        if payload_of(message) is not None
        and payload_of(message) == row.get("payload_hash")
        and message.outcome != "failed"
        and not message.effects
        and not message.uncertain
        and not (set(message.accounted) - {Ledger.STAGED})
    ]
    for message in later:
        message.may_have_earlier_effect = True
    return bool(later)


def _fitting(history: History, messages: list[Message], row: Row) -> list[Message]:
    """Return the messages of the row's payload that were attempted before it, the earliest first."""
    payload = row.get("payload_hash")
    if payload is None:
        return []
    at: datetime | None = row.get("processed_at")
    until = None if at is None else at + history.skew
    return [
        message
        for message in in_time(messages)
        if payload_of(message) == payload
        and (until is None or (message.began_at is not None and message.began_at <= until))
    ]
