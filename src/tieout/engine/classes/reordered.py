"""REORDER_PRODUCER, REORDER_CONSUMER, REORDER_OUTPUT: pairs whose order differs between two neighbouring ledgers.

Jepsen's Kafka checker calls them nonmonotonic sends and polls (`jepsen/src/jepsen/tests/kafka.clj`). Only each
message's first position and first effect count, so a retry or a redelivery is no reorder; one break an adjacent
descent.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.key_order import (
    came_before,
    descents,
    in_one_partition,
    is_before,
    moved,
    undecided,
)
from tieout.engine.classes.standing import standing
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus


def _grouping(scope: Scope, *names: str) -> list[Column]:
    """Return the columns within which order is promised: under `ordering: key` only equal keys have one."""
    columns = [F.col(name) for name in names]
    return [*columns, F.col("order_key")] if scope.contract.ordering == "key" else columns


def _ordered(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return messages that have a position, with `order_key`; under `ordering: key` those with a key."""
    is_placed = F.col("first_offset").isNotNull() & (F.col("acceptance") == "accepted")
    keyed = messages.filter(is_placed).withColumn("order_key", F.array_min("sent_key_hash"))
    return keyed.filter(F.col("order_key").isNotNull()) if scope.contract.ordering == "key" else keyed


def _descents(rows: DataFrame, scope: Scope, name: BreakClass, locus: Locus, shown_by: Ledger) -> DataFrame:
    """Return one break per pair in the wrong order, at its later row; both hold id, time, partition and offset.

    It is shown where the ledger that has the rows covers the later one: before, an earlier one may be missing.
    """
    clues = [name for name in ("is_plain_overlap",) if name in rows.columns]
    placed = rows.select(
        *clues,
        "topic",
        F.col("later.partition").alias("partition"),
        F.col("later.offset").alias("offset"),
        F.col("later.message_id").alias("message_id"),
        F.col("later.at").alias("at"),
        F.array(
            F.struct("topic", "earlier.partition", "earlier.offset"),
            F.struct("topic", "later.partition", "later.offset"),
        ).alias("positions"),
    )
    at = F.col("at")
    is_shown = scope.covered_between(shown_by, at, at)
    found = placed.filter(scope.holds(at, F.col("offset"))).withColumn("is_shown", is_shown)
    subject = F.to_json(F.struct("positions"))
    return standing(found, name, "order", F.lit(locus.value), subject=subject, flags=F.array())


def reorder_producer(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the pairs whose sequence rises and whose first position falls, per session and partition.

    The sequence is that of the first attempt that did not fail: what failed was not sent before anything.
    `is_plain_overlap`: the second was sent before the first was acknowledged, both without a producer id.
    """
    sent = F.struct(
        "partition",
        F.col("first_offset").alias("offset"),
        "message_id",
        "sent.at",
        "sent.sequence",
        "first_acked.done_at",
        (F.col("has_plain_record") & ~F.col("has_idempotent_record")).alias("is_plain"),
    )
    rows = (
        _ordered(scope, messages)
        .withColumn("sent", F.coalesce("first_sent", "first_attempt"))
        .filter(F.col("sent.sequence").isNotNull())
        .withColumn("later", sent)
    )
    session = _grouping(scope, "sent.producer_id", "sent.producer_session", "topic", "partition")
    by_sequence = Window.partitionBy(*session).orderBy("later.sequence", "later.offset", "later.message_id")
    pairs = rows.withColumn("earlier", F.lag("later").over(by_sequence)).filter(
        (F.col("earlier.offset") > F.col("later.offset"))
        & (F.col("earlier.sequence") < F.col("later.sequence"))
    )
    is_overlap = F.col("later.at") < F.col("earlier.done_at")
    clued = pairs.withColumn(
        "is_plain_overlap", is_overlap & F.col("later.is_plain") & F.col("earlier.is_plain")
    )
    return _descents(clued, scope, BreakClass.REORDER_PRODUCER, Locus.PRODUCER_TO_BROKER, Ledger.PRODUCED)


def shows_turns(scope: Scope) -> bool:
    """Return whether the evidence shows who was handed what and when, and the keys where only these have an order.

    A queue hands records to many readers at once, and again to others: it promises no order of handing out.
    """
    shows_keys = scope.contract.ordering != "key" or scope.has(Ledger.PRODUCED, "key_hash")
    return (
        not scope.contract.is_queue
        and shows_keys
        and scope.has(scope.reader_ledger, "consumer_id", "generation", "processed_at")
    )


def with_order_keys(rows: DataFrame, messages: DataFrame) -> DataFrame:
    """Return keyed rows with `order_key`, the key that their message was sent with; only those that have one."""
    sent = messages.select("key", F.array_min("sent_key_hash").alias("order_key"))
    return rows.join(sent.filter(F.col("order_key").isNotNull()), on="key", how="inner")


def reorder_consumer(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return the pairs whose position rises and whose first delivery falls, per consumer, generation and partition.

    `rows` are the group's reads, or where none are known its output; with `order_key` only equal keys make a pair.
    Which delivery of a position came first their `delivery_sequence` says where all have one, else their time.
    """
    keys = [name for name in ("order_key",) if name in rows.columns]
    reader = ("topic", "partition", "consumer_id", "generation", *keys)
    is_known = F.col("offset").isNotNull() & F.col("processed_at").isNotNull()
    for name in ("consumer_id", "generation"):
        is_known = is_known & F.col(name).isNotNull()
    delivery = F.struct(F.col("processed_at").alias("at"), "delivery_sequence", "message_id")
    has_turns = F.count("delivery_sequence") == F.count("*")
    by_turn = F.min(F.struct("delivery_sequence", delivery.alias("delivery")))["delivery"]
    first = F.when(has_turns, by_turn).otherwise(F.min(delivery))
    firsts = (
        rows.filter(is_known)
        .groupBy(*reader, "offset")
        .agg(first.alias("first"))
        .withColumn("upper", F.struct("partition", "offset", "first.*"))
    )
    by_position = Window.partitionBy(*reader).orderBy("offset")
    pairs = firsts.withColumn("lower", F.lag("upper").over(by_position)).filter(
        came_before(F.col("upper"), F.col("lower"))
    )
    named = pairs.withColumns({"later": F.col("lower"), "earlier": F.col("upper")})
    return _descents(named, scope, BreakClass.REORDER_CONSUMER, Locus.CONSUMER, scope.reader_ledger)


def reorder_output(scope: Scope, messages: DataFrame, *, may_cross: bool = False) -> DataFrame:
    """Return the pairs of one key whose first effects stand in another order than the log's.

    Keys that lie in several partitions, where any may, are left to `key_order.py`.
    """
    seen = F.struct(
        "partition",
        F.col("first_offset").alias("offset"),
        "message_id",
        "first_effect.at",
        "first_effect.delivery_sequence",
        "first_effect.consumer_id",
    )
    rows = _seen(scope, messages)
    if may_cross:
        rows = in_one_partition(rows)
    rows = rows.withColumn("upper", seen)
    of_key = Window.partitionBy("topic", "partition", "order_key")
    by_position = of_key.orderBy("first_offset", "message_id")
    pairs = rows.withColumn("lower", F.lag("upper").over(by_position)).filter(
        F.col("lower").isNotNull() & is_before(scope, F.col("upper"), F.col("lower"))
    )
    named = pairs.withColumns({"later": F.col("lower"), "earlier": F.col("upper")})
    return _descents(named, scope, BreakClass.REORDER_OUTPUT, Locus.SINK, scope.effect_ledger)


def reorder_across_partitions(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the neighbours of keys in several partitions whose first effects are in another order than the sends."""
    found = descents(scope, moved(_seen(scope, messages)))
    return _descents(found, scope, BreakClass.REORDER_OUTPUT, Locus.SINK, scope.effect_ledger)


def undecided_across_partitions(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return by topic of how many messages the order is not known, as `key_order.undecided`."""
    return undecided(scope, moved(_seen(scope, messages)))


def _seen(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return messages that have a position, one key and a dated effect, with the key as `order_key`."""
    is_seen = (F.size("sent_key_hash") == 1) & F.col("first_effect.at").isNotNull()
    return _ordered(scope, messages).filter(is_seen)
