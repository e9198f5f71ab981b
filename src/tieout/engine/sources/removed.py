"""Records that brokers removed from a topic before it was read: ledgers other than `log` do not cover their time.

In `log` a position says whether its record is gone: it lies below the log's start, or compaction removed it. Elsewhere,
where a topic is evidence of sends or of outputs, nothing points to a removed record. The
remaining records show since when the ledger is complete: a broker removes a log's beginning, so a removed record was
appended before the first remaining record, or before the one behind the last hole of a compacted log.

Not claimed: a record's time may be its application's own. Where the times of a topic do not rise with its offsets,
a removed record may have a later time than the first remaining one.

Source: Apache Kafka's documentation of `retention.ms`, `cleanup.policy` and `kafka-delete-records`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts.times import format_time
from tieout.engine.evidence import EARLIEST_PLAUSIBLE
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.source import FAULT, CutPartition, Reading

_MOMENT: Final = timedelta(milliseconds=1)
"""Times of records are whole milliseconds: a removed record may have that of the first remaining one."""


def behind_holes(rows: DataFrame) -> tuple[CutPartition, ...]:
    """Return the remainder after the last hole in each partition's offsets; a partition without a hole has none.

    The rows are those of a log: `topic`, `partition`, `offset`, `record_timestamp` and the bounds. A faulty row that
    has an offset is a record all the same.
    """
    in_order = Window.partitionBy("topic", "partition").orderBy("offset")
    expected = F.coalesce(F.lag("offset").over(in_order) + 1, F.col("log_start_offset"))
    data = rows.where(F.col("offset").isNotNull())
    steps = data.select(
        *("topic", "partition", "offset", "record_timestamp", "end_offset"), expected.alias("expected")
    )
    hole = F.col("offset") > F.col("expected")
    last = steps.groupBy("topic", "partition").agg(
        _last("offset", hole).alias("behind"),
        _last("record_timestamp", hole).alias("begins_at"),
        (F.max("offset") + 1).alias("reached"),
        F.max("end_offset").alias("end"),
    )
    found = last.where(F.col("behind").isNotNull() | (F.col("reached") < F.col("end")))
    return tuple(
        removed(row["topic"], row["partition"], row["end"], None)
        if row["reached"] < row["end"]
        else removed(row["topic"], row["partition"], row["behind"], _aware(row["begins_at"]))
        for row in found.orderBy("topic", "partition").collect()
    )


def removed(topic: str, partition: int, offset: int, begins_at: datetime | None) -> CutPartition:
    """Return a partition that begins at the offset."""
    return CutPartition(
        f"{topic}-{partition}: records before offset {offset} were removed (retention, deletion or compaction)",
        begins_at,
    )


def cut_partitions_of(rows: DataFrame, reason: str) -> tuple[CutPartition, ...]:
    """Return each partition as cut: what came before its first remaining record is unknown."""
    data = F.col(FAULT).isNull() & F.col("offset").isNotNull()
    time = F.when(data, F.col("record_timestamp"))
    found = rows.groupBy("topic", "partition").agg(F.min_by(time, F.col("offset")).alias("begins_at"))
    return tuple(
        CutPartition(f"{row['topic']}-{row['partition']}: {reason}", _aware(row["begins_at"]))
        for row in found.orderBy("topic", "partition").collect()
    )


def without_removed(reading: Reading) -> Reading:
    """Return the reading as complete only since the first remaining records of its cut partitions."""
    cut_partitions = reading.cut_partitions
    if not cut_partitions:
        return reading
    begins = [one.begins_at + _MOMENT for one in cut_partitions if one.begins_at is not None]
    known = [*begins, *([] if reading.complete_from is None else [reading.complete_from])]
    is_unknown = len(begins) < len(cut_partitions)
    return replace(
        reading,
        complete_from=max(known, default=None),
        presumed_from=reading.read_at if is_unknown else reading.presumed_from,
        notes=(*reading.notes, *shortened(tuple(_cut_notes(cut_partitions)))),
    )


def _cut_notes(cut_partitions: Sequence[CutPartition]) -> Iterator[str]:
    """Yield a note per cut partition, first those with no known start.

    >>> list(_cut_notes([CutPartition("orders-0: …", datetime(2026, 11, 27, tzinfo=UTC))]))
    ['orders-0: …: the ledger is complete from 2026-11-27T00:00:00.001000Z on']
    """
    for one in sorted(cut_partitions, key=lambda one: one.begins_at is not None):
        if one.begins_at is None:
            yield (
                f"{one.reason}, and no later record says until when they were written: keep records until "
                "their windows were judged. Of a compacted topic the broker's files (kind: kafka_segments) show the "
                "markers of transactions, which no consumer can tell from what was removed"
            )
        else:
            yield f"{one.reason}: the ledger is complete from {format_time(one.begins_at + _MOMENT)} on"


def _last(name: str, condition: Column) -> Column:
    return F.max_by(F.when(condition, F.col(name)), F.when(condition, F.col("offset")))


def _aware(moment: datetime | None) -> datetime | None:
    found = None if moment is None else moment.astimezone(UTC)
    return found if found is not None and found >= EARLIEST_PLAUSIBLE else None
