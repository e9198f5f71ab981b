"""The reader of the kind `verifiable_consumer`: output of Kafka's VerifiableConsumer, for four ledgers.

Its `record_data` lines (printed with --verbose only) are rows of `read` or `delivered`, its successful
commits rows of `committed`, its assignments rows of `assigned`. The tool does not print its group; the
contract can name it, with the column `consumer_group: "'loader'"`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts import VerifiableConsumerSource
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, HIDDEN, ROW, Reading, Request, unread
from tieout.engine.sources.verifiable import Events, events_of
from tieout.engine.sources.verifiable_fields import UNCOUNTABLE, content_state, hashed, is_true
from tieout.engine.sources.verifiable_sessions import client_of
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, Ledger

_LEDGERS: Final = (Ledger.READ, Ledger.DELIVERED, *POSITION_LEDGERS, Ledger.ASSIGNED)
_SUMMARIES: Final = "array<struct<count: string>>"
_TOTAL: Final = "decimal(38,0)"
"""A type that holds the sum of all counts in a file."""
_OFFSETS: Final = "array<struct<topic: string, partition: string, offset: string, error: string>>"


def read(spec: VerifiableConsumerSource, request: Request) -> Reading:
    """Return the output's rows for the requested ledger.

    Raises:
        SourceError: where the contract uses the source for a ledger that it cannot serve.
    """
    if request.ledger not in _LEDGERS:
        served = ", ".join(_LEDGERS)
        raise SourceError(f"{request.place}: a verifiable_consumer is evidence for one of {served}")
    inputs = inputs_of(request.spark, [spec.path], request.base_dir, "text")
    if not inputs.readable:
        return unread(inputs, request.now)
    events = events_of(request, inputs)
    unprinted_notes = _unprinted_notes(events) if request.ledger in (Ledger.READ, Ledger.DELIVERED) else ()
    return Reading(
        rows=_rows(events, request.ledger).unionByName(events.mixed, allowMissingColumns=True),
        is_present=True,
        read_at=request.now,
        size=events.inputs.size,
        digests=events.inputs.digests,
        unparsed_inputs=len(events.inputs.faults) + len(unprinted_notes),
        notes=(*events.notes, *_set_aside(events, request.ledger), *unprinted_notes),
        complete_until=events.complete_until(request.now),
        complete_from=events.complete_from(request.now),
        copies=events.inputs.copied,
    )


def _rows(events: Events, ledger: Ledger) -> DataFrame:
    placed = _with_poll(events)
    if ledger in POSITION_LEDGERS:
        return _commits(placed)
    return _assignments(placed) if ledger is Ledger.ASSIGNED else _records(placed)


def _with_poll(events: Events) -> DataFrame:
    """Return the events with consumer, generation (assignments so far) and poll (batches so far)."""
    order = Window.partitionBy(FILE).orderBy(BLOCK, ROW)
    up_to_row = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return events.rows.select(
        "*",
        client_of(events.sessions).alias("consumer_id"),
        F.count_if(F.col("name") == "partitions_assigned").over(up_to_row).alias("generation"),
        F.count_if(F.col("name") == "records_consumed").over(up_to_row).alias("poll"),
        F.row_number().over(order).cast("bigint").alias("line"),
    )


def _records(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("name") == "record_data").select(
        F.col("value").alias("message_id"),
        "topic",
        "partition",
        "offset",
        "consumer_id",
        "generation",
        F.col("line").alias("delivery_sequence"),
        F.col("timestamp").alias("processed_at"),
        hashed("key").alias("key_hash"),
        hashed("value").alias("payload_hash"),
        F.lit("ok").alias("outcome"),
        content_state().alias("content"),
        F.concat_ws(":", "consumer_id", F.col("poll").cast("string")).alias("poll_id"),
        *_hidden(),
    )


def _commits(rows: DataFrame) -> DataFrame:
    """Return one row for each partition of each successful commit; some clients name errors within one."""
    entry = F.explode(F.from_json("offsets", _OFFSETS)).alias("entry")
    return (
        rows.where((F.col("name") == "offsets_committed") & is_true("success"))
        .select("*", entry)
        .where(F.col("entry.error").isNull())
        .select(
            "entry.topic",
            "entry.partition",
            F.col("entry.offset").alias("committed_offset"),
            "generation",
            F.col("timestamp").alias("committed_at"),
            *_hidden(),
        )
    )


def _assignments(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("name").isin("partitions_assigned", "partitions_revoked")).select(
        "consumer_id",
        "generation",
        F.when(F.col("name") == "partitions_assigned", "assign").otherwise("rebalance").alias("kind"),
        F.col("timestamp").alias("assigned_at"),
        "partitions",
        *_hidden(),
    )


def _set_aside(events: Events, ledger: Ledger) -> tuple[str, ...]:
    """Return a note where the broker refused commits: they changed no position."""
    refused = sum(session.refusals for session in events.sessions)
    is_noted = ledger in POSITION_LEDGERS and refused
    return (f"{refused} commits were refused by the broker and set aside",) if is_noted else ()


def _unprinted_notes(events: Events) -> tuple[str, ...]:
    """Return one line for each file whose consumer read records but printed none, or not all of them."""
    missing = _missing(events) if any(session.records for session in events.sessions) else {}
    unprinted = tuple(
        f"{session.name}: {session.consumed} records were consumed but none printed: --verbose prints them"
        for session in events.sessions
        if session.consumed and not session.records
    )
    incomplete = tuple(
        f"{session.name}: {missing[session.uri]} records of its polls have no line: paste the output whole"
        for session in events.sessions
        if session.records and session.uri in missing
    )
    return unprinted + incomplete


def _missing(events: Events) -> dict[str, int]:
    """Return the number of polled records without a line, for each file that has such records.

    A summary follows its records, so no summary may count more records than were printed before it. Both
    leave out records beyond `--max-messages`.
    """
    is_summary = F.col("name") == "records_consumed"
    counts = F.from_json("partitions", _SUMMARIES)["count"]
    zero = F.lit(0).cast(_TOTAL)

    def counted(text: Column) -> Column:
        number = F.coalesce(text.try_cast(_TOTAL), F.lit(UNCOUNTABLE).cast(_TOTAL))
        return F.when(text.isNull(), zero).otherwise(F.least(number, F.lit(UNCOUNTABLE).cast(_TOTAL)))

    listed = F.aggregate(
        F.coalesce(counts, F.array().cast("array<string>")),
        zero,
        lambda total, text: (total + counted(text)).cast(_TOTAL),
    )
    up_to_row = (
        Window.partitionBy(FILE).orderBy(BLOCK, ROW).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    printed = F.count_if(F.col("name") == "record_data").over(up_to_row)
    behind = F.sum(F.when(is_summary, listed)).over(up_to_row) - printed
    worst = (
        events.rows.select(FILE, behind.alias("behind")).groupBy(FILE).agg(F.max("behind").alias("missing"))
    )
    return {row[FILE]: row["missing"] for row in worst.where(F.col("missing") > 0).collect()}


def _hidden() -> tuple[Column, ...]:
    return (*(F.col(name) for name in HIDDEN[:-1]), F.lit(None).cast("string").alias(FAULT))
