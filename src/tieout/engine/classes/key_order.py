"""REORDER_OUTPUT between partitions: with `ordering: key` a key keeps its order wherever its messages lie.

A key moves to another partition when partitions are added to its topic, or when a producer partitions by something
else. No log orders messages of two partitions. Two facts do: the sequence of a session, and that one send was
completed before another one began. Docs: docs/reference/interpretations.md, 61 and 100.
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
    """Return each key of a topic whose rows lie in more than one of its partitions, and these as `places`."""
    found = rows.groupBy(*_KEY).agg(F.collect_set("partition").alias("places"))
    return found.filter(F.size("places") > 1)


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
    # By a hash: two keys of one hash can but look as if one lay in both their partitions.
    of_key = placed.groupBy(F.xxhash64(*_KEY).alias("key_hash"))
    ends = of_key.agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return not ends.filter(F.col("low") < F.col("high")).isEmpty()


def in_one_partition(messages: DataFrame) -> DataFrame:
    """Return the messages of keys that lie in one partition of their topic: of these its log alone says the order."""
    keys = materialised(keys_in_several_partitions(messages).select(*_KEY))
    moved = small_side(keys.withColumnsRenamed({name: f"k_{name}" for name in _KEY}))
    return messages.join(moved, same(_KEY, "k_"), how="left_anti")


def moved(messages: DataFrame) -> DataFrame:
    """Return what order asks of messages whose keys lie in several partitions, kept; mostly none.

    `own` is the message as others see it, `places` are the partitions of its key. The messages have a position, a key
    as `order_key`, and a dated first effect.
    """
    own = F.struct(
        F.col("first_effect.at").alias("at"),
        "partition",
        F.col("first_offset").alias("offset"),
        "message_id",
        "first_effect.delivery_sequence",
        "first_effect.consumer_id",
        *[F.col(f"sent.{name}").alias(name) for name in (*SESSION, "sequence")],
        F.col("sent.at").alias("sent_at"),
        "completed_at",
    )
    sent = messages.withColumn("sent", F.coalesce("first_sent", "first_undated", "first_attempt"))
    rows = sent.select(*_KEY, "partition", "is_owned", own.alias("own"))
    keys = materialised(keys_in_several_partitions(rows)).withColumnsRenamed(
        {name: f"k_{name}" for name in _KEY}
    )
    joined = rows.join(small_side(keys), same(_KEY, "k_"), how="inner")
    return materialised(joined.drop(*(f"k_{name}" for name in _KEY)))


def descents(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return the neighbours of which the one sent later certainly had its first effect first, given `moved` messages.

    They are `earlier` and `later` by effect. Neighbours have no message between them that is known to be sent after the
    one and before the other. In each partition a message has one candidate, the last that was sent before it.
    """
    known = _with_last_before(scope, rows)
    candidate = F.greatest("by_time", "by_number")["own"]
    elsewhere = known.groupBy(*_KEY, "own").agg(F.collect_list(candidate).alias("candidates"))
    in_log = Window.partitionBy(*_KEY, "partition").orderBy("own.offset", "own.message_id")
    below = rows.select(*_KEY, "own", F.lag("own").over(in_log).alias("below"))
    below = below.withColumnsRenamed({name: f"b_{name}" for name in (*_KEY, "own")})
    is_below = F.col("below.offset") < F.col("own.offset")
    every = F.array_compact(F.concat("candidates", F.array(F.when(is_below, F.col("below")))))
    found = elsewhere.join(below, same((*_KEY, "own"), "b_"), how="inner").withColumn("every", every)
    last = F.filter("every", lambda one: ~F.exists("every", lambda other: _is_sent_before(scope, one, other)))
    pairs = found.select(*_KEY, F.col("own").alias("earlier"), F.explode(last).alias("later"))
    return materialised(pairs.filter(is_before(scope, F.col("earlier"), F.col("later"))))


def undecided(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return how many of the window's messages may be out of their key's order, or not, by topic and what is missing.

    | topic  | unnumbered | uncompleted | close | example                   |
    |--------|------------|-------------|-------|---------------------------|
    | orders | 0          | 1           | 2     | {1, 17, the message's id} |

    `unnumbered`: one of its session in another partition was sent no later by their clock, and one of both has no
    sequence. `uncompleted`: one of another session began before, and nobody knows when it was completed. `close`: their
    order is known, and that of their first effects is not. Of all such messages that with the latest effect is asked.
    """
    own = F.col("own")

    def is_open(name: str) -> Column:
        one = F.col(name)["own"]
        return one.isNotNull() & ~is_before(scope, one, own)

    def is_close(name: str) -> Column:
        return is_open(name) & ~is_before(scope, own, F.col(name)["own"])

    known = _with_latest_before(scope, _with_latest_of_session(rows))
    is_of_another = ~_is_of_session(F.col("unsure")["own"], own)
    reasons = {
        "unnumbered": is_open("unordered"),
        "uncompleted": is_open("unsure") & is_of_another,
        "close": is_close("numbered")
        | (is_close("completed") & ~_is_of_session(F.col("completed")["own"], own)),
    }
    first = F.coalesce(*[F.when(held, name) for name, held in reasons.items()])
    example = F.struct("partition", "own.offset", "own.message_id")
    return (
        known.filter("is_owned")
        .withColumn("reason", first)
        .filter(F.col("reason").isNotNull())
        .groupBy("topic")
        .agg(
            *[F.count_if(F.col("reason") == name).alias(name) for name in reasons],
            F.min(example).alias("example"),
        )
    )


def is_before(scope: Scope, one: Column, other: Column) -> Column:
    """Return whether one message's first effect certainly came before another's; false, never null.

    Effects of one consumer are ordered by it; those of two by their clocks, beyond the skew.
    """
    is_far = one["at"] + F.lit(scope.contract.clock_skew) < other["at"]
    is_same_consumer = one["consumer_id"].eqNullSafe(other["consumer_id"])
    return F.coalesce(F.when(is_same_consumer, came_before(one, other)).otherwise(is_far), F.lit(False))


def came_before(one: Column, other: Column) -> Column:
    """Return whether one row of a consumer certainly came before another; ties in time tell nothing."""
    has_turns = one["delivery_sequence"].isNotNull() & other["delivery_sequence"].isNotNull()
    by_turn = one["delivery_sequence"] < other["delivery_sequence"]
    return F.when(has_turns, by_turn).otherwise(one["at"] < other["at"])


def _is_of_session(one: Column, other: Column) -> Column:
    first, second = (one[name].eqNullSafe(other[name]) for name in SESSION)
    return first & second


def _is_sent_before(scope: Scope, one: Column, other: Column) -> Column:
    """Return whether one message is known to be sent before another: by the log, by number or in time."""
    in_time = one["completed_at"] + F.lit(scope.contract.clock_skew) < other["sent_at"]
    in_session = F.when(_is_of_session(one, other), one["sequence"] < other["sequence"]).otherwise(in_time)
    is_one_log = one["partition"] == other["partition"]
    return F.coalesce(F.when(is_one_log, one["offset"] < other["offset"]).otherwise(in_session), F.lit(False))


def _with_last_before(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return messages once for each `target`, another partition of their key, with the last one there sent before them.

    `by_time` is that of other sessions, `by_number` that of their own: `own` as they are there, after its offset.
    """
    skew = F.lit(scope.contract.clock_skew)
    value = F.struct(F.col("own.offset").alias("rank"), "own")
    others = F.explode(F.array_remove("places", F.col("partition"))).alias("target")
    known = rows.select("*", others).drop("places")
    there = rows.withColumn("target", F.col("partition")).drop("places")
    by_time = _together(known, there, F.col("own.sent_at"), F.col("own.completed_at") + skew)
    known = _with_greatest(by_time, value, "by_time", (*_KEY, "target"), apart=SESSION)
    by_number = _together(known, there, F.col("own.sequence"), F.col("own.sequence"))
    session = [f"own.{name}" for name in SESSION]
    return _with_greatest(by_number, value, "by_number", (*_KEY, "target", *session), apart=())


def _with_latest_of_session(rows: DataFrame) -> DataFrame:
    """Return messages with those of their session in other partitions whose first effect is the latest.

    `numbered`: of those with a lower number. `unordered`: of those that were sent no later by their clock, where one of
    both has no number.
    """
    value = F.struct(F.col("own.at").alias("rank"), "own")
    session, has_number = (*_KEY, *[f"own.{name}" for name in SESSION]), F.col("own.sequence").isNotNull()
    numbers = _together(rows, rows, F.col("own.sequence"), F.col("own.sequence"))
    known = _with_greatest(numbers, value, "numbered", session, apart=("partition",))
    sent_at = F.col("own.sent_at")
    clocks = _together(known, rows, sent_at, sent_at, is_inclusive=True)
    known = _with_greatest(clocks, value, "sent_before", session, apart=("partition",))
    clocks = _together(known, rows.filter(~has_number), sent_at, sent_at, is_inclusive=True)
    known = _with_greatest(clocks, value, "unnumbered", session, apart=("partition",))
    unordered = F.when(has_number, F.col("unnumbered")).otherwise(F.col("sent_before"))
    return known.withColumn("unordered", unordered).drop("sent_before", "unnumbered")


def _with_latest_before(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return messages with those in other partitions, of any session, whose first effect is the latest.

    `completed`: of those completed before the message was sent. `unsure`: of those that began before, and of which
    nobody knows when they were completed.
    """
    skew, sent_at, completed_at = (
        F.lit(scope.contract.clock_skew),
        F.col("own.sent_at"),
        F.col("own.completed_at"),
    )
    value = F.struct(F.col("own.at").alias("rank"), "own")
    names = rows.columns
    known = _with_greatest(
        _together(rows, rows, sent_at, completed_at + skew), value, "completed", _KEY, apart=("partition",)
    )
    unknown = known.filter(completed_at.isNull()).select(*names)
    return _with_greatest(
        _together(known, unknown, sent_at, sent_at + skew), value, "unsure", _KEY, apart=("partition",)
    )


def _together(
    rows: DataFrame, others: DataFrame, at: Column, other_at: Column, *, is_inclusive: bool = False
) -> DataFrame:
    """Return rows as turns at a time or number, with others as turns that those behind them look back to."""
    mine = rows.withColumns(
        {"turn_at": at, "turn": F.lit(1 if is_inclusive else 0), "is_other": F.lit(False)}
    )
    theirs = others.withColumns(
        {"turn_at": other_at, "turn": F.lit(0 if is_inclusive else 1), "is_other": F.lit(True)}
    ).filter(F.col("turn_at").isNotNull())
    return mine.unionByName(theirs, allowMissingColumns=True)


def _with_greatest(
    turns: DataFrame, value: Column, name: str, by: Sequence[str], *, apart: Sequence[str]
) -> DataFrame:
    """Return the turns that look back, with the greatest value before each that differs from it in `apart`.

    The greatest of all has one session, or partition. For turns of the same the greatest of the others is asked: since
    the greatest last passed to another one that is the greatest from elsewhere, or the one that was the greatest then.
    """
    best, before, stretch, second = (f"{name}_{word}" for word in ("best", "before", "stretch", "second"))
    in_order = Window.partitionBy(*by).orderBy(F.col("turn_at").asc_nulls_first(), "turn", "own")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    known = turns.withColumn(name, F.when(F.col("is_other"), value))
    known = known.withColumn(best, F.max(name).over(so_far))
    if not apart:
        chosen = F.col(best)
        found = known.filter(~F.col("is_other")).withColumn(name, chosen)
        return materialised(found.drop(best, "turn_at", "turn", "is_other"))
    known = known.withColumn(before, F.lag(best).over(in_order))
    has_moved = F.col(before).isNotNull() & _differs(F.col(best)["own"], F.col(before)["own"], apart)
    known = known.withColumn(stretch, F.sum(has_moved.cast("int")).over(so_far))
    is_from_elsewhere = F.col(name).isNotNull() & _differs(F.col(name)["own"], F.col(best)["own"], apart)
    candidate = F.when(has_moved, F.col(before)).when(is_from_elsewhere, F.col(name))
    of_stretch = Window.partitionBy(*by, stretch).orderBy(F.col("turn_at").asc_nulls_first(), "turn", "own")
    known = known.withColumn(
        second, F.max(candidate).over(of_stretch.rowsBetween(Window.unboundedPreceding, 0))
    )
    is_elsewhere = _differs(F.col(best)["own"], F.col("own"), apart)
    chosen = F.when(F.col(best).isNotNull() & is_elsewhere, F.col(best)).otherwise(F.col(second))
    found = known.filter(~F.col("is_other")).withColumn(name, chosen)
    return materialised(found.drop(best, before, stretch, second, "turn_at", "turn", "is_other"))


def _differs(one: Column, other: Column, names: Sequence[str]) -> Column:
    """Return whether two messages differ in any of these; nulls are equal."""
    differs = F.lit(False)
    for name in names:
        differs = differs | ~one[name].eqNullSafe(other[name])
    return differs
