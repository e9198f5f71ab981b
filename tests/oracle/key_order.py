"""The order of a key in a topic, over all its partitions (taxonomy section 8, 9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import permutations
from typing import Any

from tests.oracle.fates import Fates
from tests.oracle.history import Position, Row, undated_last
from tests.oracle.messages import Attempt, Message

from tieout.model import Identity


@dataclass(eq=False)
class Keyed:
    """A message of a key, where it lies, the attempt that says when it was sent, and its first effect."""

    message: Message
    at: Position
    attempt: Attempt
    effect: Row


def keyed_messages(fates: Fates) -> list[list[Keyed]]:
    """Return, per key and topic, the accepted messages with a position and a dated first effect."""
    lanes: dict[Any, list[Keyed]] = {}
    if fates.history.contract.identity is Identity.CONTENT:
        return []
    for message in fates.matched.messages:
        first, effects, keys = (
            fates.first_position(message),
            fates.ordered_effects(message),
            message.values("key_hash"),
        )
        if first is None or not message.is_accepted or not effects or len(keys) != 1:
            continue
        if effects[0].get("processed_at") is None:
            continue
        lanes.setdefault((*keys, first[0]), []).append(Keyed(message, first, first_sent(message), effects[0]))
    return list(lanes.values())


def first_sent(message: Message) -> Attempt:
    """Return the accepted message's first attempt that did not fail: it says when the message was sent (61)."""
    written = [attempt for attempt in message.attempts if attempt.outcome != "failed"]
    numbers = {id(one): one.row.get("sequence") for one in written}
    return min(
        written, key=lambda one: (undated_last(one.at), numbers[id(one)] is None, numbers[id(one)] or 0)
    )


def overtaken(fates: Fates) -> list[tuple[Keyed, Keyed]]:
    """Return each message with an immediate successor of its key whose first effect certainly came before its own."""
    found = []
    for lane in keyed_messages(fates):
        before = {
            (id(one), id(other)) for one, other in permutations(lane, 2) if _is_sent_before(fates, one, other)
        }
        for one, other in permutations(lane, 2):
            is_adjacent = (id(one), id(other)) in before and not any(
                (id(one), id(between)) in before and (id(between), id(other)) in before for between in lane
            )
            if is_adjacent and is_delivered_before(fates, other.effect, one.effect):
                found.append((one, other))
    return found


def untold(fates: Fates) -> int:
    """Return how many messages of the window have an untold order with another of their key in another partition."""
    return sum(
        any(_is_untold(fates, one, other) for one in lane if one is not other)
        for lane in keyed_messages(fates)
        for other in lane
        if fates.history.holds(other.message.began_at, fates.window_position(other.message))
    )


def _is_untold(fates: Fates, one: Keyed, other: Keyed) -> bool:
    """Return whether `one` may have been sent before `other` and delivered after it, and the evidence cannot tell."""
    if one.at[:2] == other.at[:2] or is_delivered_before(fates, one.effect, other.effect):
        return False
    if _is_sent_before(fates, one, other):
        return not is_delivered_before(fates, other.effect, one.effect)
    return _may_be_sent_before(fates, one, other.attempt)


def _is_sent_before(fates: Fates, one: Keyed, other: Keyed) -> bool:
    """Return whether the one certainly comes before the other: by the log, the session's numbers, or in time."""
    if one.at[:2] == other.at[:2]:
        return one.at[2] < other.at[2]
    low, high = one.attempt.row.get("sequence"), other.attempt.row.get("sequence")
    if one.attempt.session == other.attempt.session:
        return low is not None and high is not None and low < high
    done, began = _acknowledged_at(one.message), other.attempt.at
    return done is not None and began is not None and bool(done + fates.history.skew < began)


def _acknowledged_at(message: Message) -> datetime | None:
    """Return when the message was first acknowledged: when a send of unknown outcome was written nobody knows."""
    times = [one.row.get("completed_at") for one in message.attempts if one.outcome == "acked"]
    return min((time for time in times if time is not None), default=None)


def _may_be_sent_before(fates: Fates, first: Keyed, other: Attempt) -> bool:
    """Return whether only what is missing would tell that the first was sent before the other."""
    one = first.attempt
    is_one_session = one.session == other.session
    if is_one_session and None not in (one.row.get("sequence"), other.row.get("sequence")):
        return False
    if not is_one_session and _acknowledged_at(first.message) is not None and other.at is not None:
        return False
    if one.at is None or other.at is None:
        return True
    return one.at <= other.at if is_one_session else bool(one.at + fates.history.skew < other.at)


def is_delivered_before(fates: Fates, one: Row, other: Row) -> bool:
    """Return whether one effect certainly came before the other."""
    if one.get("consumer_id") == other.get("consumer_id"):
        return came_before(one, other)
    first, second = one["processed_at"], other["processed_at"]
    return bool(second - first > fates.history.skew)


def came_before(one: Row, other: Row) -> bool:
    """Return whether one row of a consumer certainly came before another; ties in time tell nothing."""
    if one.get("delivery_sequence") is not None and other.get("delivery_sequence") is not None:
        return bool(one["delivery_sequence"] < other["delivery_sequence"])
    return bool(one["processed_at"] < other["processed_at"])
