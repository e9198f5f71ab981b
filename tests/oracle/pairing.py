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


Excess = list[tuple[Row, list[Message]]]
"""Rows of the output for which every send of their payload before them is taken, with those sends."""


def effects_by_payload(
    history: History, messages: list[Message], rows: list[Row], of: Callable[[Message], list[Row]]
) -> Excess:
    """Give each row the earliest free attempt of its payload before it; return the rows that get none.

    Acked attempts come first, then unknown, then failed ones; free is one without effect and without uncertain effect.
    `of` is the list of a message that the row joins.
    """
    excess = []
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
        else:
            excess.append((row, fitting))
    return excess


def unmatched_excess(
    history: History,
    messages: list[Message],
    excess: Excess,
    of: Callable[[Message], list[Row]],
    *,
    may_be_later: bool,
) -> list[tuple[Row, Unmatched]]:
    """Give excess rows to the latest send of their payload (67); return those that may be somebody else's, and why.

    Where `may_be_later`, an equal later send without effect may have one, by clocks that differ: nobody can tell.
    """
    unmatched = []
    for row, fitting in excess:
        if row.get("payload_hash") is None or (may_be_later and _a_later_one_may_have_it(messages, row)):
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
) -> list[Row]:
    """Let each row account for the earliest attempt of its payload that nothing accounts for yet (69).

    Return the rows that set aside none of them.
    """
    left = []
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
            left.append(row)
    return left


def let_later_ones_be_set_aside(messages: list[Message], rows: list[Row]) -> None:
    """Note of the rows that they may have set aside equal later sends, by clocks that differ."""
    for row in rows:
        _a_later_one_may_have_it(messages, row)


def _a_later_one_may_have_it(messages: list[Message], row: Row) -> bool:
    """Note that the row may be the next equal send's that has no effect, and return whether there is one."""
    for message in in_time(messages):
        is_equal = payload_of(message) is not None and payload_of(message) == row.get("payload_hash")
        is_open = not message.effects and not message.uncertain and not message.may_have_earlier_effect
        is_set_aside = bool(set(message.accounted) - {Ledger.STAGED})
        if is_equal and is_open and not is_set_aside and message.outcome != "failed":
            message.may_have_earlier_effect = True
            return True
    return False


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
