"""REORDER_PRODUCER, REORDER_CONSUMER, REORDER_OUTPUT: pairs whose order differs between two neighbouring ledgers.

Jepsen's Kafka checker calls them nonmonotonic sends and polls (`jepsen/src/jepsen/tests/kafka.clj`). Only each
message's first position and first effect count, so a retry or a redelivery is no reorder; one break an adjacent
descent.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.standing import standing
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus


def _grouping(scope: Scope, *names: str) -> list[Column]:
    """Return the columns within which order is promised: under `ordering: key` only equal keys have one."""
    columns = [F.col(name) for name in names]
    return [*columns, F.col("order_key")] if scope.contract.ordering == "key" else columns


def _ordered(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return messages that have a position, with `order_key`; under `ordering: key` those with a key."""
    keyed = messages.filter(F.col("first_offset").isNotNull() & (F.col("attempts") > 0)).withColumn(
        "order_key", F.array_min("sent_key_hash")
    )
    return keyed.filter(F.col("order_key").isNotNull()) if scope.contract.ordering == "key" else keyed


def _descents(rows: DataFrame, scope: Scope, name: BreakClass, locus: Locus, at: Column) -> DataFrame:
    """Return one break a row whose `before` position stands in the wrong order, in the window of the row's time."""
    subject = F.to_json(F.struct("topic", "partition", "offset", "before"))
    positions = F.array(
        F.struct("topic", "partition", F.col("before").alias("offset")),
        F.struct("topic", "partition", "offset"),
    )
    found = rows.withColumn("at", at).filter(scope.in_window(F.col("at"))).withColumn("positions", positions)
    return standing(found, name, "order", F.lit(locus.value), subject=subject, flags=F.array())


def reorder_producer(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs whose sequence rises and whose first position falls, per session and partition."""
    rows = _ordered(scope, messages).select(
        "topic",
        "partition",
        "order_key",
        F.col("first_offset").alias("offset"),
        F.col("first_attempt").alias("sent"),
    )
    rows = rows.filter(F.col("sent.sequence").isNotNull())
    session = _grouping(scope, "sent.producer_id", "sent.producer_session", "topic", "partition")
    by_sequence = Window.partitionBy(*session).orderBy("sent.sequence")
    pairs = rows.withColumns(
        {
            "before": F.lag("offset").over(by_sequence),
            "sequence_before": F.lag("sent.sequence").over(by_sequence),
        }
    ).filter((F.col("before") > F.col("offset")) & (F.col("sequence_before") < F.col("sent.sequence")))
    return _descents(pairs, scope, BreakClass.REORDER_PRODUCER, Locus.PRODUCER_TO_BROKER, F.col("sent.at"))


def reorder_consumer(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs whose position rises and whose first delivery falls, per consumer, generation and partition."""
    rows = _ordered(scope, messages).select(
        "topic",
        "partition",
        "order_key",
        F.col("first_offset").alias("offset"),
        F.col("first_effect").alias("seen"),
    )
    rows = rows.filter(F.col("seen.at").isNotNull())
    group = _grouping(scope, "topic", "partition", "seen.consumer_id", "seen.generation")
    turn = (
        F.col("seen.delivery_sequence")
        if scope.has(Ledger.DELIVERED, "delivery_sequence")
        else F.col("seen.at")
    )
    by_position = Window.partitionBy(*group).orderBy("offset")
    pairs = (
        rows.withColumn("turn", turn)
        .withColumns(
            {"before": F.lag("offset").over(by_position), "turn_before": F.lag("turn").over(by_position)}
        )
        .filter((F.col("turn_before") > F.col("turn")) & (F.col("before") < F.col("offset")))
    )
    return _descents(pairs, scope, BreakClass.REORDER_CONSUMER, Locus.CONSUMER, F.col("seen.at"))


def reorder_output(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs of one key whose first effects stand in another order than the log's, beyond clock skew."""
    rows = messages.filter(
        F.col("first_offset").isNotNull() & (F.col("attempts") > 0) & F.col("first_effect_at").isNotNull()
    ).select(
        "topic",
        "partition",
        F.array_min("sent_key_hash").alias("order_key"),
        F.col("first_offset").alias("offset"),
        F.col("first_effect_at").alias("seen_at"),
    )
    by_position = Window.partitionBy("topic", "partition", "order_key").orderBy("offset")
    skew = F.lit(scope.contract.clock_skew)
    pairs = (
        rows.filter(F.col("order_key").isNotNull())
        .withColumns(
            {"before": F.lag("offset").over(by_position), "seen_before": F.lag("seen_at").over(by_position)}
        )
        .filter(F.col("seen_before") > F.col("seen_at") + skew)
    )
    return _descents(pairs, scope, BreakClass.REORDER_OUTPUT, Locus.SINK, F.col("seen_at"))
