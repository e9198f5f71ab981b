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


def _descents(rows: DataFrame, scope: Scope, name: BreakClass, locus: Locus) -> DataFrame:
    """Return one break a pair in the wrong order, at its later row; both hold id, time and position."""
    placed = rows.select(
        "topic",
        "partition",
        F.col("later.offset").alias("offset"),
        F.col("later.message_id").alias("message_id"),
        F.col("later.at").alias("at"),
        F.array(
            F.struct("topic", "partition", F.col("earlier.offset").alias("offset")),
            F.struct("topic", "partition", F.col("later.offset").alias("offset")),
        ).alias("positions"),
    )
    found = placed.filter(scope.in_window(F.col("at")))
    subject = F.to_json(F.struct("positions"))
    return standing(found, name, "order", F.lit(locus.value), subject=subject, flags=F.array())


def reorder_producer(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs whose sequence rises and whose first position falls, per session and partition."""
    sent = F.struct(
        F.col("first_offset").alias("offset"), "message_id", "first_attempt.at", "first_attempt.sequence"
    )
    rows = (
        _ordered(scope, messages)
        .filter(F.col("first_attempt.sequence").isNotNull())
        .withColumn("later", sent)
    )
    session = _grouping(
        scope, "first_attempt.producer_id", "first_attempt.producer_session", "topic", "partition"
    )
    by_sequence = Window.partitionBy(*session).orderBy("later.sequence")
    pairs = rows.withColumn("earlier", F.lag("later").over(by_sequence)).filter(
        (F.col("earlier.offset") > F.col("later.offset"))
        & (F.col("earlier.sequence") < F.col("later.sequence"))
    )
    return _descents(pairs, scope, BreakClass.REORDER_PRODUCER, Locus.PRODUCER_TO_BROKER)


def reorder_consumer(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs whose position rises and whose first delivery falls, per consumer, generation and partition."""
    has_turns = scope.has(Ledger.DELIVERED, "delivery_sequence")
    turn = F.col("first_effect.delivery_sequence") if has_turns else F.col("first_effect.at")
    seen = F.struct(
        F.col("first_offset").alias("offset"), "message_id", "first_effect.at", turn.alias("turn")
    )
    is_known = F.col("first_effect.at").isNotNull() & F.col("first_effect.consumer_id").isNotNull()
    rows = _ordered(scope, messages).filter(is_known).withColumn("upper", seen)
    reader = _grouping(scope, "topic", "partition", "first_effect.consumer_id", "first_effect.generation")
    by_position = Window.partitionBy(*reader).orderBy("first_offset")
    pairs = rows.withColumn("lower", F.lag("upper").over(by_position)).filter(
        (F.col("lower.turn") > F.col("upper.turn")) & (F.col("lower.offset") < F.col("upper.offset"))
    )
    named = pairs.withColumns({"later": F.col("lower"), "earlier": F.col("upper")})
    return _descents(named, scope, BreakClass.REORDER_CONSUMER, Locus.CONSUMER)


def reorder_output(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs of one key whose first effects stand in another order than the log's, beyond clock skew."""
    seen = F.struct(F.col("first_offset").alias("offset"), "message_id", F.col("first_effect_at").alias("at"))
    rows = (
        messages.filter(F.col("first_offset").isNotNull() & (F.col("attempts") > 0))
        .withColumn("order_key", F.array_min("sent_key_hash"))
        .filter(F.col("order_key").isNotNull() & F.col("first_effect_at").isNotNull())
        .withColumn("upper", seen)
    )
    by_position = Window.partitionBy("topic", "partition", "order_key").orderBy("first_offset")
    pairs = rows.withColumn("lower", F.lag("upper").over(by_position)).filter(
        F.col("lower.at") > F.col("upper.at") + F.lit(scope.contract.clock_skew)
    )
    named = pairs.withColumns({"later": F.col("lower"), "earlier": F.col("upper")})
    return _descents(named, scope, BreakClass.REORDER_OUTPUT, Locus.SINK)
