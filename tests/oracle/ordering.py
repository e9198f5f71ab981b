"""Order of sends, deliveries and output, and jumped records: breaks of pairs (taxonomy section 3)."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.oracle.aside import ASIDE, aside_rows, rows_that_took_place
from tests.oracle.certainty import certainty
from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import History, Position, Row, is_data, known, position
from tests.oracle.key_order import came_before, first_sent, is_delivered_before, overtaken
from tests.oracle.matching import turn
from tests.oracle.messages import Message
from tests.oracle.position_findings import position_finding
from tests.oracle.queues import is_queue

from tieout.model import BreakClass, Identity, Ledger, Locus


def producer_reorders(fates: Fates) -> list[Finding]:
    """Return each adjacent pair of a session whose sequence rises while the first position falls."""
    lanes: dict[Any, list[tuple[int, Message, Row]]] = {}
    for message in fates.matched.messages:
        first = fates.first_position(message)
        if first is None or not message.is_accepted:
            continue
        attempt = first_sent(message)
        if attempt.row.get("sequence") is None:
            continue
        if fates.history.contract.ordering == "key" and _order_key(message) is None:
            continue
        lane = (*attempt.session, *first[:2], _lane_key(fates, message))
        lanes.setdefault(lane, []).append((attempt.row["sequence"], message, attempt.row))
    found = []
    for found_in_lane in lanes.values():
        ordered = sorted(
            found_in_lane, key=lambda item: (item[0], fates.first_position(item[1]), _named(item[1]))
        )
        for (low, one, _), (high, other, row) in pairwise(ordered):
            before, after = fates.first_position(one), fates.first_position(other)
            if low < high and before and after and after < before:
                time = row.get("attempted_at")
                shown = [(Ledger.PRODUCED, time)]
                found.append(
                    position_finding(
                        BreakClass.REORDER_PRODUCER,
                        after,
                        Locus.PRODUCER_TO_BROKER,
                        time,
                        shown,
                        other.message_id,
                    )
                )
    return found


def consumer_reorders(fates: Fates) -> list[Finding]:
    """Return each adjacent pair of positions of one consumer and generation that was first delivered the other way."""
    if is_queue(fates.history.contract):
        return []
    ledger = Ledger.READ if fates.history.has(Ledger.READ) else fates.history.output
    messages = {
        id(row): message for message in fates.matched.messages for row in message.reads + message.effects
    }
    lanes: dict[Any, dict[int, list[Row]]] = {}
    for row in _handed(fates, ledger):
        at = position(row)
        if at is None or None in (row.get("consumer_id"), row.get("generation"), row.get("processed_at")):
            continue
        message = messages.get(id(row))
        if fates.history.contract.ordering == "key" and (message is None or _order_key(message) is None):
            continue
        key = message and _lane_key(fates, message)
        lane = lanes.setdefault((row["consumer_id"], row["generation"], *at[:2], key), {})
        lane.setdefault(at[2], []).append(row)
    found = []
    for lane in lanes.values():
        rows = [_first(lane[offset]) for offset in sorted(lane)]
        for lower, higher in pairwise(rows):
            if came_before(higher, lower):
                shown = [(ledger, lower["processed_at"])]
                spot = position(lower) or (None, None, None)
                found.append(
                    position_finding(
                        BreakClass.REORDER_CONSUMER,
                        spot,
                        Locus.CONSUMER,
                        lower["processed_at"],
                        shown,
                        lower.get("message_id"),
                    )
                )
    return found


def _handed(fates: Fates, ledger: Ledger) -> list[Row]:
    """Return the rows that certainly are reads, or effects: what failed was not delivered."""
    history = fates.history
    rows = history.rows(ledger)
    has_state = history.has_column(ledger, "transaction_state")
    needs_key = history.contract.multiplicity.effect_key is not None and ledger is history.output
    return [row for row in rows if certainty(row, rows, has_state, needs_key) == "ok"]


def _first(rows: list[Row]) -> Row:
    """Return the first of one consumer's deliveries: by their numbers where all have one, else by their time (61)."""
    numbers = [row.get("delivery_sequence") for row in rows]
    if None in numbers:
        return min(rows, key=turn)
    return min(rows, key=lambda row: (row["delivery_sequence"], turn(row)))


def _order_key(message: Message) -> str | None:
    """Return the key that the message was sent with; null keys are not equal."""
    return min(message.values("key_hash"), default=None)


def _named(message: Message) -> tuple[bool, str]:
    """Return what orders messages that nothing else does: their ids, none first."""
    return message.message_id is not None, message.message_id or ""


def _lane_key(fates: Fates, message: Message) -> str | None:
    """Return what else two rows must share to be in an order: under `ordering: key` their key (61)."""
    return _order_key(message) if fates.history.contract.ordering == "key" else None


def output_reorders(fates: Fates) -> list[Finding]:
    """Return each adjacent pair of a key whose first effects came in another order than the log's."""
    if fates.history.contract.ordering == "key":
        return [_overtaken_finding(fates, one.message, one.effect) for one, _ in overtaken(fates)]
    lanes: dict[Any, list[tuple[int, Message, Row]]] = {}
    if fates.history.contract.identity is Identity.CONTENT:
        return []
    for message in fates.matched.messages:
        first, effects = fates.first_position(message), fates.ordered_effects(message)
        keys = message.values("key_hash")
        if first is None or not message.is_accepted or not effects or len(keys) != 1:
            continue
        if effects[0].get("processed_at") is not None:
            lanes.setdefault((*keys, *first[:2]), []).append((first[2], message, effects[0]))
    pairs = []
    for lane in lanes.values():
        ordered = sorted(lane, key=lambda item: (item[0], _named(item[1])))
        for (_, message, lower), (_, _, higher) in pairwise(ordered):
            if is_delivered_before(fates, higher, lower):
                pairs.append((message, lower))
    return [_overtaken_finding(fates, message, effect) for message, effect in pairs]


def _overtaken_finding(fates: Fates, message: Message, effect: Row) -> Finding:
    """Return that another message's first effect came before this one's, which had to be the earlier."""
    time: datetime = effect["processed_at"]
    return position_finding(
        BreakClass.REORDER_OUTPUT,
        fates.first_position(message) or (None, None, None),
        Locus.SINK,
        time,
        [(fates.history.output, time)],
        message.message_id,
    )


def skipped(fates: Fates) -> list[Finding]:
    """Return each pair of consecutive reads that jumped a visible record, while the consumer kept its partition."""
    history = fates.history
    if not (history.has(Ledger.READ) and history.has(Ledger.ASSIGNED)) or is_queue(history.contract):
        return []
    lanes: dict[Any, list[Row]] = {}
    for row in _handed_in_turn(history):
        at = position(row) or (None, None)
        lanes.setdefault((row["consumer_id"], row["generation"], *at[:2]), []).append(row)
    existing = _known_to_exist(fates)
    found = []
    for (consumer, _, topic, partition), rows in lanes.items():
        read = {
            position(row) for row in history.rows(Ledger.READ) if row.get("consumer_id") == consumer
        }  # with any outcome, in any generation
        for one, other in pairwise(rows):
            between = [
                at
                for at in existing
                if at[:2] == (topic, partition) and one["offset"] < at[2] < other["offset"] and at not in read
            ]
            if between and not _was_reset(fates, consumer, one["processed_at"], other["processed_at"]):
                time = other["processed_at"]
                shown = [(Ledger.READ, time), *([(Ledger.LOG, None)] if history.has(Ledger.LOG) else [])]
                found.append(
                    position_finding(BreakClass.SKIPPED, between[0], Locus.BROKER_TO_CONSUMER, time, shown)
                )
    return found


def _handed_in_turn(history: History) -> list[Row]:
    """Return the reads of known readers that did not fail, in their order."""
    rows = [
        row
        for row in history.rows(Ledger.READ)
        if position(row) is not None
        and None not in (row.get("consumer_id"), row.get("generation"), row.get("processed_at"))
        and row.get("outcome") in (None, "ok")
    ]
    return sorted(
        rows, key=lambda row: (row["processed_at"], row.get("delivery_sequence") or 0, row["offset"])
    )


def _known_to_exist(fates: Fates) -> list[Position]:
    """Return the positions that a reader had to come across: the log's visible ones, else those sent to or read.

    What was set aside somebody had in hand.
    """
    history = fates.history
    if history.has(Ledger.LOG):
        found = {at for at, record in history.records.items() if history.is_visible(record)}
    else:
        found = claimed_positions(fates)
    return sorted(found - positions_set_aside(fates))


def positions_set_aside(fates: Fates) -> set[Position]:
    """Return the positions of what was filtered or parked, as its rows and its messages name them."""
    aside = known(position(row) for ledger in ASIDE for row in rows_that_took_place(fates.history, ledger))
    for message in fates.matched.messages:
        if aside_rows(message):
            aside |= fates.positions(message)
    return aside


def claimed_positions(fates: Fates) -> set[Position]:
    """Return where accepted sends and reads show something to be; what the log shows as taken back they do not."""
    records = fates.history.records
    taken_back = {id(row) for one in fates.matched.messages if one.outcome == "failed" for row in one.reads}
    found = known(position(row) for row in fates.history.rows(Ledger.READ) if id(row) not in taken_back)
    found = {at for at in found if at not in records or is_data(records[at])}
    for message in fates.matched.messages:
        found |= set(fates.asserted(message)) if message.outcome != "failed" else set()
    return found


def _was_reset(fates: Fates, consumer: str, after: datetime, until: datetime) -> bool:
    """Return whether an assignment change, seek or reset of the consumer drops what it had read before."""
    return any(
        row.get("consumer_id") == consumer
        and (row.get("assigned_at") is None or after <= row["assigned_at"] <= until)
        for row in fates.history.rows(Ledger.ASSIGNED)
    )
