"""Where a message's break happened: the first rule of taxonomy section 4 that holds."""

from __future__ import annotations

from tests.oracle.fates import Fates
from tests.oracle.history import is_log_append, known, position
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
_COLUMNS = {
    BreakClass.CORRUPTED_VALUE: "payload_hash",
    BreakClass.CORRUPTED_KEY: "key_hash",
    BreakClass.CORRUPTED_HEADER: "header_hash",
    BreakClass.CORRUPTED_TIMESTAMP: "record_timestamp",
}


def locus_of(primary: BreakClass, fates: Fates, message: Message) -> Locus:
    """Return the locus of the message's primary class."""
    if primary is BreakClass.LOST:
        return _of_loss(fates, message)
    if primary is BreakClass.OUTPUT_DUPLICATE:
        is_inherited = len(fates.copies(message)) >= fates.repeats(message)
        return Locus.PRODUCER_TO_BROKER if is_inherited else Locus.CONSUMER_OR_SINK
    if primary in _COLUMNS:
        return _of_corruption(fates, message, _COLUMNS[primary])
    return _FIXED.get(primary, Locus.UNKNOWN)


def _of_loss(fates: Fates, message: Message) -> Locus:
    if message.effects:
        return Locus.CONSUMER_OR_SINK
    if fates.log_lacks(message) or fates.is_gone(message):
        return Locus.BROKER
    visible = known(position(record) for record in message.records if fates.history.is_written(record))
    if not visible:
        is_staged = Ledger.STAGED in message.accounted
        return Locus.SINK if is_staged else Locus.AFTER_ACKNOWLEDGEMENT
    if any(fates.committed_past(at) for at in visible):
        return Locus.CONSUMER
    is_read = any(position(row) is not None and row.get("outcome") in (None, "ok") for row in message.reads)
    if not is_read and all(fates.frontier(at[:2]) > at[2] for at in visible):
        return Locus.BROKER_TO_CONSUMER
    return Locus.SINK if Ledger.STAGED in message.accounted else Locus.UNKNOWN


def _of_corruption(fates: Fates, message: Message, column: str) -> Locus:
    """Return the hop at which the value changes; without the log's value nobody can tell."""
    attempted = message.values(column)
    logged = known(record.get(column) for record in message.records if fates.history.is_written(record))
    if not logged:
        return Locus.UNKNOWN
    is_kept = column != "record_timestamp" or not any(map(is_log_append, message.records))
    is_changed_before = is_kept and attempted and logged - attempted
    return Locus.PRODUCER_TO_BROKER if is_changed_before else Locus.CONSUMER_OR_SINK
