"""REORDER_OUTPUT between partitions: with `ordering: key` a key keeps its order wherever its messages lie.

A key moves to another partition when partitions are added to its topic, or when a producer partitions by something
else. No log orders messages of two partitions. Two facts do: the sequence of a session, and that one send was
completed before another one began. Docs: docs/reference/interpretations.md, 61 and 90.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION, SESSION
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

_KEY: Final = ("topic", "order_key")


def orders_keys(scope: Scope) -> bool:
    """Return whether the contract promises an order of keys that the evidence can be held against."""
    is_promised = scope.contract.ordering == "key" and scope.contract.identity != Identity.CONTENT
    return is_promised and scope.has(Ledger.PRODUCED, "key_hash")


def keys_in_several_partitions(rows: DataFrame) -> DataFrame:
    """Return each key of a topic whose rows lie in more than one of its partitions: `topic` and `order_key`."""
    ends = rows.groupBy(*_KEY).agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return ends.filter(F.col("low") < F.col("high")).select(*_KEY)


def crosses_partitions(scope: Scope) -> bool:
    """Return whether a key that has an order was sent to several partitions of a topic, as sends and log show it."""
    if not orders_keys(scope) or not scope.has(Ledger.PRODUCED, *POSITION):
        return False
    is_placed = F.coalesce(F.col("offset") >= 0, F.lit(False))
    sent = scope.rows(Ledger.PRODUCED).filter(F.col("key_hash").isNotNull())
    placed = sent.filter(is_placed).select(*PLACE, F.col("key_hash").alias("order_key"))
    if scope.has(Ledger.LOG, "message_id", *PLACE):
        unplaced = sent.filter(~is_placed & F.col("message_id").isNotNull()).select(
            F.col("message_id").alias("sent_id"), F.col("key_hash").alias("order_key")
        )
        is_same = F.col("message_id") == F.col("sent_id")
        logged = scope.rows(Ledger.LOG).join(small_side(materialised(unplaced)), is_same, how="inner")
        placed = placed.unionByName(logged.select(*PLACE, "order_key"))
    return not keys_in_several_partitions(placed).isEmpty()


def pairs_across_partitions(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return messages of keys in several partitions, each with those of other partitions that had to come before it.

    Columns: `topic`, `order_key`, `partition`, `is_owned`, `own`, and what was sent before it, null where nothing in
    another partition was: `previous`, the one before it in its session; `overtaken`, the one whose first effect is the
    latest of all that were completed before it began; `unsure`, the same of those of which nobody knows when they
    were; `unnumbered`, the same of those of its session that no number orders before or behind it.
    `messages` have a position, a key as `order_key`, and a first effect.
    """
    return _with_latest_before(scope, _with_previous(_moved(messages)))


def descents(scope: Scope, pairs: DataFrame) -> DataFrame:
    """Return the pairs whose later send certainly had its first effect first, as `earlier` and `later` by effect.

    A message has one pair at most, and what was overtaken by several in a row of one partition is told once.
    """
    in_log = Window.partitionBy(*_KEY, "partition").orderBy("own.offset", "own.message_id")
    is_told = F.col("overtaken").eqNullSafe(F.lag("overtaken").over(in_log))
    is_of_another = F.col("overtaken").isNotNull() & ~_is_of_session("overtaken")
    is_overtaken = is_of_another & ~is_told & is_before(scope, "own", "overtaken")
    later = F.when(is_before(scope, "own", "previous"), F.col("previous")).when(
        is_overtaken, F.col("overtaken")
    )
    return pairs.withColumns({"later": later, "earlier": F.col("own")}).filter(F.col("later").isNotNull())


def undecided(scope: Scope, pairs: DataFrame) -> DataFrame:
    """Return how many of the window's messages may be out of their key's order, or not, by topic and what is missing.

    | topic  | unnumbered | uncompleted | close | example                    |
    |--------|------------|----------------|-------|----------------------------|
    | orders | 0          | 1              | 2     | {1, 17, the message's id}  |
    """

    def is_open(name: str) -> Column:
        return F.col(name).isNotNull() & ~is_before(scope, name, "own")

    is_unnumbered, is_uncompleted = is_open("unnumbered"), is_open("unsure") & ~_is_of_session("unsure")
    is_close = F.lit(False)
    for name in ("previous", "overtaken"):
        is_close = is_close | (is_open(name) & ~is_before(scope, "own", name))
    reasons = {
        "is_unnumbered": is_unnumbered,
        "is_uncompleted": ~is_unnumbered & is_uncompleted,
        "is_close": ~is_unnumbered & ~is_uncompleted & is_close,
    }
    example = F.struct("partition", "own.offset", "own.message_id")
    return (
        pairs.filter("is_owned")
        .withColumns(reasons)
        .filter(" OR ".join(reasons))
        .groupBy("topic")
        .agg(
            *[F.count_if(name).alias(name.removeprefix("is_")) for name in reasons],
            F.min(example).alias("example"),
        )
    )


def is_before(scope: Scope, one: str, other: str) -> Column:
    """Return whether one message's first effect certainly came before another's; false, never null, without either.

    Effects of one consumer are ordered by it; those of two by their clocks, beyond the skew.
    """
    first, second = F.col(one), F.col(other)
    is_far = first["at"] + F.lit(scope.contract.clock_skew) < second["at"]
    is_same_consumer = first["consumer_id"].eqNullSafe(second["consumer_id"])
    is_known = first.isNotNull() & second.isNotNull()
    return F.coalesce(
        is_known & F.when(is_same_consumer, came_before(first, second)).otherwise(is_far), F.lit(False)
    )


def came_before(one: Column, other: Column) -> Column:
    """Return whether one row of a consumer certainly came before another; ties in time tell nothing."""
    has_turns = one["delivery_sequence"].isNotNull() & other["delivery_sequence"].isNotNull()
    by_turn = one["delivery_sequence"] < other["delivery_sequence"]
    return F.when(has_turns, by_turn).otherwise(one["at"] < other["at"])


def _moved(messages: DataFrame) -> DataFrame:
    """Return what order asks of the messages whose keys lie in several partitions, kept; mostly none."""
    own = F.struct(
        F.col("first_effect.at").alias("at"),
        "partition",
        F.col("first_offset").alias("offset"),
        "message_id",
        "first_effect.delivery_sequence",
        "first_effect.consumer_id",
        *[F.col(f"sent.{name}").alias(name) for name in (*SESSION, "sequence")],
    )
    sent = messages.withColumn("sent", F.coalesce("first_sent", "first_attempt"))
    rows = sent.select(
        *_KEY,
        "partition",
        "is_owned",
        own.alias("own"),
        F.col("sent.at").alias("sent_at"),
        "completed_at",
    )
    keys = materialised(keys_in_several_partitions(rows))
    moved = small_side(keys.withColumnsRenamed({name: f"k_{name}" for name in _KEY}))
    return materialised(rows.join(moved, same(_KEY, "k_"), how="left_semi"))


def _with_previous(rows: DataFrame) -> DataFrame:
    """Return messages with `previous`, the one before it by the numbers of their session, if in another partition.

    `unnumbered` is the one with the latest first effect of those in another partition that the session sent no later
    by its clock, and that have no number, or of which the message has none: a clock proves nothing.
    """
    session = (*_KEY, *[f"own.{name}" for name in SESSION])
    by_number = Window.partitionBy(*session).orderBy("own.sequence", "sent_at", "partition", "own.offset")
    before = F.lag("own").over(by_number)
    known = rows.withColumn("before", before)
    is_next = (F.col("before.partition") != F.col("partition")) & (
        F.col("before.sequence") < F.col("own.sequence")
    )
    known = known.withColumn("previous", F.when(is_next, F.col("before"))).drop("before")
    starts, ends = (known.withColumns({"turn": F.lit(turn), "turn_at": F.col("sent_at")}) for turn in (1, 0))
    is_end, has_number = F.col("turn") == 0, F.col("own.sequence").isNotNull()
    turns = _with_latest(starts.unionByName(ends), F.when(is_end, F.col("own")), "any_before", session)
    turns = _with_latest(turns, F.when(is_end & ~has_number, F.col("own")), "unnumbered", session)
    unnumbered = F.when(has_number, F.col("unnumbered")).otherwise(F.col("any_before"))
    told = turns.filter(~is_end).withColumn("unnumbered", unnumbered)
    return told.drop("any_before", "turn", "turn_at")


def _with_latest_before(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return messages with `overtaken` and `unsure`, each the one with the latest first effect.

    Beginnings and completions of sends are walked through in the order of time. What nobody knows the completion of may
    have been sent before all that began after it.
    """
    completed_at, skew = F.col("completed_at"), F.lit(scope.contract.clock_skew)
    starts = rows.withColumns({"turn": F.lit(0), "turn_at": F.col("sent_at")})
    ends = rows.withColumns({"turn": F.lit(1), "turn_at": F.coalesce(completed_at, "sent_at") + skew})
    is_end, own = F.col("turn") == 1, F.col("own")
    known = starts.unionByName(ends)
    known = _with_latest(known, F.when(is_end & completed_at.isNotNull(), own), "overtaken", _KEY)
    known = _with_latest(known, F.when(is_end & completed_at.isNull(), own), "unsure", _KEY)
    return known.filter(~is_end).drop("turn", "turn_at", "sent_at", "completed_at")


def _with_latest(turns: DataFrame, value: Column, name: str, by: Sequence[str]) -> DataFrame:
    """Return turns with the greatest value before each that lies in another partition than the turn's own.

    The greatest of all lies in one partition. For turns in it the greatest of the others is asked: since the greatest
    last changed its partition that is the greatest from elsewhere, or the one that was the greatest until then.
    """
    best, before, stretch, second = (f"{name}_{word}" for word in ("best", "before", "stretch", "second"))
    in_order = Window.partitionBy(*by).orderBy("turn_at", "turn", "own")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    known = turns.withColumn(name, value)
    known = known.withColumn(best, F.max(name).over(so_far)).withColumn(before, F.lag(best).over(in_order))
    has_moved = F.coalesce(F.col(f"{best}.partition") != F.col(f"{before}.partition"), F.lit(False))
    known = known.withColumn(stretch, F.sum(has_moved.cast("int")).over(so_far))
    is_from_elsewhere = F.col(f"{name}.partition") != F.col(f"{best}.partition")
    candidate = F.when(has_moved, F.col(before)).when(is_from_elsewhere, F.col(name))
    of_stretch = Window.partitionBy(*by, stretch).orderBy("turn_at", "turn", "own")
    known = known.withColumn(
        second, F.max(candidate).over(of_stretch.rowsBetween(Window.unboundedPreceding, 0))
    )
    is_elsewhere = F.col(f"{best}.partition") != F.col("partition")
    chosen = F.when(is_elsewhere, F.col(best)).otherwise(F.col(second))
    return known.withColumn(name, chosen).drop(best, before, stretch, second)


def _is_of_session(name: str) -> Column:
    same_fields = [F.col(f"{name}.{field}").eqNullSafe(F.col(f"own.{field}")) for field in SESSION]
    return same_fields[0] & same_fields[1]
