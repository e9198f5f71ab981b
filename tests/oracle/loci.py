"""Where a message's break happened: the first rule of taxonomy section 4 that holds."""

from __future__ import annotations

from tests.oracle.compaction import committed_before_compaction, went_by_compaction
from tests.oracle.contents import HASHES, attempted_values, logged_values
from tests.oracle.fates import Fates
from tests.oracle.history import known, position
from tests.oracle.messages import Message

from tieout.model import BreakClass, Ledger, Locus

_FIXED = {
    BreakClass.LOG_DUPLICATE: Locus.PRODUCER_TO_BROKER,
    BreakClass.PHANTOM_ABORTED: Locus.CONSUMER_ISOLATION,
    BreakClass.PHANTOM_UNCOMMITTED: Locus.CONSUMER_ISOLATION,
    BreakClass.MISROUTED: Locus.PRODUCER,
    BreakClass.REDELIVERY: Locus.BROKER_TO_CONSUMER,
    BreakClass.LATE: Locus.AFTER_ACKNOWLEDGEMENT,
}


def locus_of(primary: BreakClass, fates: Fates, message: Message) -> Locus:
    """Return the locus of the message's primary class."""
    if primary is BreakClass.LOST:
        return _of_loss(fates, message)
    if primary is BreakClass.OUTPUT_DUPLICATE:
        is_inherited = len(fates.copies(message)) >= fates.repeats(message)
        return Locus.PRODUCER_TO_BROKER if is_inherited else Locus.CONSUMER_OR_SINK
    if primary in HASHES:
        return _of_corruption(fates, message, HASHES[primary])
    return _FIXED.get(primary, Locus.UNKNOWN)


def _of_loss(fates: Fates, message: Message) -> Locus:
    if message.effects:
        return Locus.CONSUMER_OR_SINK
    if went_by_compaction(fates, message):
        if Ledger.STAGED in message.accounted:
            return Locus.SINK
        is_passed = committed_before_compaction(fates, message)
        return Locus.CONSUMER if is_passed else Locus.AFTER_ACKNOWLEDGEMENT
    if fates.log_lacks(message) or fates.is_gone(message):
        return Locus.BROKER
    if Ledger.STAGED in message.accounted:
        return Locus.SINK  # somebody had it in hand, whatever was committed since
    return _of_loss_in_the_log(fates, message)


def _of_loss_in_the_log(fates: Fates, message: Message) -> Locus:
    """Return where a message was lost that the log may still have."""
    visible = known(position(record) for record in message.records if fates.history.is_written(record))
    if not visible:
        return Locus.AFTER_ACKNOWLEDGEMENT
    if any(fates.committed_past(message, at) for at in visible):
        return Locus.CONSUMER
    is_read = any(position(row) is not None or row.get("outcome") in (None, "ok") for row in message.reads)
    was_jumped = all(
        fates.frontier(at[:2], message) > at[2] and at[0] not in fates.individual_topics for at in visible
    )
    if not is_read and was_jumped:
        return Locus.BROKER_TO_CONSUMER
    return Locus.UNKNOWN


def _of_corruption(fates: Fates, message: Message, column: str) -> Locus:
    """Return the hop at which the value changes; without the log's value nobody can tell."""
    nothing = {None} if column == "header_hash" else set()  # null may be the hash of no headers
    logged = logged_values(fates.history, message, column) - nothing
    if not logged:
        return Locus.UNKNOWN
    sent = attempted_values(fates.history, message, column) - nothing
    return Locus.PRODUCER_TO_BROKER if sent and logged - sent else Locus.CONSUMER_OR_SINK
