"""Order of sends, deliveries and output, and jumped records: breaks of pairs (taxonomy section 3)."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import Row, position, undated_last
from tests.oracle.matching import certainty, turn
from tests.oracle.messages import Message
from tests.oracle.standing import close_enough, standing_finding

from tieout.model import BreakClass, Identity, Ledger, Locus


def producer_reorders(fates: Fates) -> list[Finding]:
    """Return each adjacent pair of a session whose sequence rises while the first position falls."""
    lanes: dict[Any, list[tuple[int, Message, Row]]] = {}
    for message in fates.matched.messages:
        first = fates.first_position(message)
        sequenced = [attempt for attempt in message.attempts if attempt.row.get("sequence") is not None]
        if first is None or not message.is_accepted or not sequenced:
            continue
        written = [attempt for attempt in sequenced if attempt.outcome != "failed"]
        attempt = min(written or sequenced, key=lambda one: (undated_last(one.at), one.row["sequence"]))
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
                    standing_finding(
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
            if _came_before(higher, lower):
                shown = [(ledger, lower["processed_at"])]
                spot = position(lower) or (None, None, None)
                found.append(
                    standing_finding(
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
    is_told = history.has_column(ledger, "transaction_state")
    needs_key = history.contract.multiplicity.effect_key is not None
    return [row for row in rows if certainty(row, rows, is_told, needs_key) == "ok"]


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


def _came_before(one: Row, other: Row) -> bool:
    """Return whether one row of a consumer certainly came before another; ties in time tell nothing."""
    if one.get("delivery_sequence") is not None and other.get("delivery_sequence") is not None:
        return bool(one["delivery_sequence"] < other["delivery_sequence"])
    return bool(one["processed_at"] < other["processed_at"])


def output_reorders(fates: Fates) -> list[Finding]:
    """Return each adjacent pair of a key whose first effects came in another order than the log's."""
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
    found = []
    for (_, topic, partition), lane in lanes.items():
        ordered = sorted(lane, key=lambda item: (item[0], _named(item[1])))
        for (offset, message, lower), (_, _, higher) in pairwise(ordered):
            if _certainly_earlier(fates, higher, lower):
                time: datetime = lower["processed_at"]
                shown = [(fates.history.output, time)]
                found.append(
                    standing_finding(
                        BreakClass.REORDER_OUTPUT,
                        (topic, partition, offset),
                        Locus.SINK,
                        time,
                        shown,
                        message.message_id,
                    )
                )
    return found


def _certainly_earlier(fates: Fates, one: Row, other: Row) -> bool:
    if one.get("consumer_id") == other.get("consumer_id"):
        return _came_before(one, other)
    close = close_enough(one["processed_at"], other["processed_at"], fates.history.skew)
    return not close and bool(one["processed_at"] < other["processed_at"])


def skipped(fates: Fates) -> list[Finding]:
    """Return each pair of consecutive reads that jumped a visible record, while the consumer kept its partition."""
    history = fates.history
    if not (history.has(Ledger.READ) and history.has(Ledger.ASSIGNED) and history.has(Ledger.LOG)):
        return []
    lanes: dict[Any, list[Row]] = {}
    for row in history.rows(Ledger.READ):
        at = position(row)
        known_reader = None not in (row.get("consumer_id"), row.get("generation"), row.get("processed_at"))
        if at is not None and known_reader and row.get("outcome") in (None, "ok"):
            lanes.setdefault((row["consumer_id"], row["generation"], *at[:2]), []).append(row)
    found = []
    for (consumer, _, topic, partition), rows in lanes.items():
        ordered = sorted(
            rows, key=lambda row: (row["processed_at"], row.get("delivery_sequence") or 0, row["offset"])
        )
        for one, other in pairwise(ordered):
            between = [
                at
                for at, record in sorted(history.records.items(), key=lambda item: item[0])
                if at[:2] == (topic, partition)
                and one["offset"] < at[2] < other["offset"]
                and history.is_visible(record)
            ]
            if between and not _was_reset(fates, consumer, one["processed_at"], other["processed_at"]):
                time = other["processed_at"]
                shown = [(Ledger.READ, time), (Ledger.LOG, None)]
                found.append(
                    standing_finding(BreakClass.SKIPPED, between[0], Locus.BROKER_TO_CONSUMER, time, shown)
                )
    return found


def _was_reset(fates: Fates, consumer: str, after: datetime, until: datetime) -> bool:
    """Return whether an assignment change, seek or reset of the consumer drops what it had read before."""
    return any(
        row.get("consumer_id") == consumer
        and (row.get("assigned_at") is None or after <= row["assigned_at"] <= until)
        for row in fates.history.rows(Ledger.ASSIGNED)
    )
