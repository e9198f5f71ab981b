"""The numbers of each partition, and the offset balance of the log (taxonomy section 5)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.oracle.fates import Fates
from tests.oracle.history import BEGINNING, Place, Position, state_of
from tests.oracle.messages import Message
from tests.oracle.phantoms import (
    could_be_an_unplaced_send,
    is_phantom,
    origin_is_covered,
    record_of,
    units_of,
)

from tieout.model import BreakClass, Identity, Ledger

DISPOSITIONS = (
    "delivered",
    "dead_lettered",
    "filtered",
    "unverifiable",
    "compacted",
    "lost",
    "in_flight",
)
ROW_COUNTS = ("attempts", "acked_attempts", "failed_attempts", "unknown_attempts", "resends")
MESSAGE_COUNTS = ("messages", "accepted", "unproven", "failed", *DISPOSITIONS)
EFFECT_COUNTS = ("effects", "first_effects", "further_effects", "phantom_effects", "unverifiable_effects")
FAN_OUT_COUNTS = ("expected_effects", "met_effects", "missing_effects")
OFFSET_STATES = (
    "control",
    "aborted",
    "open",
    "unattempted",
    "duplicate",
    *DISPOSITIONS,
    "expired",
    "unexplained",
)


def partitions_of(fates: Fates, judged: frozenset[BreakClass]) -> list[dict[str, Any]]:
    """Return one dict of counts for each partition that has a row, a message, an effect or a log."""
    counts: dict[tuple[Any, Any], Counter[str]] = {}
    for message in fates.matched.messages:
        _count_message(fates, message, counts.setdefault(fates.place(message), Counter()))
    _count_unmatched(fates, counts, judged)
    logged = set(fates.history.bounds) if fates.history.has(Ledger.LOG) else set()
    if fates.history.window.offsets:
        logged = {(one.topic, one.partition) for one in fates.history.window.offsets}
    names = (*ROW_COUNTS, *MESSAGE_COUNTS, *EFFECT_COUNTS)
    if fates.history.contract.multiplicity.kind == "one_to_many":
        names += FAN_OUT_COUNTS
    found = []
    for place in sorted({*counts, *logged}, key=lambda key: (str(key[0]), -1 if key[1] is None else key[1])):
        numbers = counts.get(place, Counter())
        if not numbers.total() and place not in logged:
            continue
        offsets = offset_balance(fates, place) if place in logged else None
        found.append(
            {
                "topic": place[0],
                "partition": place[1],
                **{name: numbers[name] for name in names},
                "offsets": offsets,
                "unexplained": offsets["unexplained"] if offsets else 0,
            }
        )
    return found


def _count_message(fates: Fates, message: Message, numbers: Counter[str]) -> None:
    history, at = fates.history, fates.window_position(message)
    for attempt in message.attempts:
        if history.holds(attempt.at, at):
            numbers["attempts"] += 1
            numbers[f"{attempt.outcome}_attempts"] += 1
            numbers["resends"] += attempt is not message.earliest
    if history.holds(message.began_at, at):
        numbers["messages"] += 1
        fate = fates.fate(message)
        numbers[fate] += 1
        numbers["accepted"] += message.is_accepted
        if message.is_accepted and history.contract.multiplicity.kind == "one_to_many":
            numbers["expected_effects"] += fates.expected_effects(message)
            numbers["met_effects"] += len(fates.first_effects(message))
            numbers["missing_effects"] += fates.expected_effects(message) - len(fates.first_effects(message))
    further = {id(row) for row in fates.further_effects(message)}
    for row in message.effects:
        if history.holds(row.get("processed_at"), at):
            numbers["effects"] += 1
            kind = "further_effects" if id(row) in further else "first_effects"
            numbers[kind if message.is_accepted else "phantom_effects"] += 1


def _count_unmatched(
    fates: Fates, counts: dict[tuple[Any, Any], Counter[str]], judged: frozenset[BreakClass]
) -> None:
    for unit in units_of(fates, fates.matched.unmatched_effects).values():
        is_certain = any(is_phantom(fates, row, why) for row, why in unit)
        kind = "phantom" if BreakClass.PHANTOM_UNKNOWN in judged and is_certain else "unverifiable"
        for row, _ in unit:
            numbers = counts.setdefault((row.get("topic"), row.get("partition")), Counter())
            numbers["effects"] += 1
            numbers[f"{kind}_effects"] += 1


def offset_balance(fates: Fates, place: Place) -> dict[str, int]:
    """Return the partition's offset range and how many of its positions are in each state."""
    start, end = offset_range(fates, place)
    states = Counter(state_at(fates, (*place, offset)) for offset in range(start, end))
    sparse = {"is_sparse": True} if _is_sparse(fates, place) else {}
    return {"from": start, "to": end, **sparse, **{state: states[state] for state in OFFSET_STATES}}


def _is_sparse(fates: Fates, place: Place) -> bool:
    """Return whether positions of the partition are no consecutive numbers, so that a number may be none (E1)."""
    bounds = fates.history.bounds.get(place)
    return bounds is not None and bounds.is_sparse


def offset_range(fates: Fates, place: Place) -> tuple[int, int]:
    """Return from the first offset at or after the window's start to the first at or after its end (42)."""
    history = fates.history
    if history.window.offsets:
        named = next(one for one in history.window.offsets if (one.topic, one.partition) == place)
        return named.start, named.end
    bounds = history.bounds[place]
    dated = [
        (at[2], record["record_timestamp"])
        for at, record in history.records.items()
        if at[:2] == place and record.get("record_timestamp") is not None
    ]
    end = min((offset for offset, time in dated if time >= history.window.end), default=bounds.end)
    start = min((offset for offset, time in dated if time >= history.window.start), default=end)
    return start, end


def has_unsent_records(fates: Fates) -> bool:
    """Return whether the log has a record of the window that no send of `produced` accounts for (133)."""
    history = fates.history
    for at, record in history.records.items():
        if _is_judged(fates, at):
            if state_at(fates, at) == "unattempted":
                return True
        elif not history.window.offsets and history.in_window(record.get("record_timestamp")):
            is_unsent = fates.matched.message_at.get(at) is None
            # The balance counts what is unverifiable in its range: here nothing else does.
            if is_unsent and state_at(fates, at) in ("unattempted", "unverifiable"):
                return True
    return False


def lacks_records(fates: Fates) -> bool:
    """Return whether an offset of a plain log has no record, of those that the window judges and next to them (134).

    An offset that a lost message had is that loss; without a message in what is judged, it is `unexplained`.
    """
    history = fates.history
    for place, bounds in history.bounds.items():
        if bounds.is_sparse or "compact" in bounds.policy:
            continue
        shown = {at[2] for at in history.records if at[:2] == place}
        for offset in _offsets_near(fates, place):
            if offset in shown or offset < bounds.start:
                continue
            state = _state_of_hole(fates, (*place, offset))
            is_judged = _is_judged(fates, (*place, offset))
            may_be_marker = state == "control" or (is_judged and state == "unexplained")
            if (
                state != "lost"
                and not may_be_marker
                and (is_judged or not _is_without_markers(fates, place[0]))
            ):
                return True
    return False


def _is_judged(fates: Fates, at: Position) -> bool:
    if at[:2] not in fates.history.bounds and not fates.history.window.offsets:
        return False
    if fates.history.window.offsets:
        return any(
            (one.topic, one.partition) == at[:2] and one.start <= at[2] < one.end
            for one in fates.history.window.offsets
        )
    start, end = offset_range(fates, at[:2])
    return start <= at[2] < end


def _offsets_near(fates: Fates, place: Place) -> range:
    """Return the offsets among which the log may lack one of the window.

    From the record before those that are judged up to the one behind the last that is stamped in the window, or the
    log's ends where there are none.
    """
    history, bounds = fates.history, fates.history.bounds[place]
    if history.window.offsets:
        named = [one for one in history.window.offsets if (one.topic, one.partition) == place]
        return range(named[0].start, named[0].end) if named else range(0)
    start, end = offset_range(fates, place)
    own = {at[2]: record.get("record_timestamp") for at, record in history.records.items() if at[:2] == place}
    before = [offset for offset in own if offset < start]
    if before:
        start = max(before) + 1
    elif bounds.is_start_stated and history.covers_from(Ledger.LOG, BEGINNING):
        start = min(bounds.start, start)
    stamped = [offset for offset, time in own.items() if history.in_window(time)]
    if stamped and max(stamped) >= end:
        end = min((offset for offset in own if offset > max(stamped)), default=bounds.end)
    return range(start, end)


def state_at(fates: Fates, at: Position) -> str | None:
    """Return the one state of a position, the first that holds; None for a number that is no position."""
    record = fates.history.records.get(at)
    if record is None:
        return _state_of_hole(fates, at)
    if record.get("is_control"):
        return "control"
    if state_of(record) in ("aborted", "open"):
        return state_of(record)
    message = fates.matched.message_at.get(at)
    if message is None:
        is_nameless = fates.history.contract.identity is Identity.POSITION or record.get("message_id") is None
        is_doubtful = record in fates.matched.ambiguous_records
        is_doubtful = is_doubtful or could_be_an_unplaced_send(fates, record, is_nameless)
        is_certain = not is_doubtful and origin_is_covered(fates, record, record_of(fates, record))
        return "unattempted" if is_certain else "unverifiable"
    if fates.first_position(message) != at:
        return "duplicate"
    fate = fates.fate(message)
    return fate if fate in DISPOSITIONS else "in_flight"


def _state_of_hole(fates: Fates, at: Position) -> str | None:
    asserting = [
        fates.fate(message)
        for message in fates.matched.messages
        if message.is_accepted and at in fates.asserted(message) and at not in message.denied
    ]
    if asserting:
        return min(asserting)
    bounds = fates.history.bounds.get(at[:2])
    if bounds is None:
        return "unexplained"
    if bounds.is_sparse:
        return None
    if at[2] < bounds.start:
        return "expired"
    if "compact" in bounds.policy:
        return "compacted"
    return "control" if _is_without_markers(fates, at[0]) else "unexplained"


def _is_without_markers(fates: Fates, topic: str) -> bool:
    """Return whether the topic is transactional and was read without its control records (43)."""
    records = [record for at, record in fates.history.records.items() if at[0] == topic]
    if any(record.get("is_control") for record in records):
        return False
    by_attempts = any(
        attempt.row.get("transaction_id") is not None and attempt.row.get("topic") == topic
        for message in fates.matched.messages
        if message.is_accepted
        for attempt in message.attempts
    )
    return by_attempts or any(state_of(record) != "none" for record in records)
