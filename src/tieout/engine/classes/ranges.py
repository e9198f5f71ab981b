"""COMMIT_GAP, and COMMIT_REGRESSION of ranges: what lies between two ranges of positions, and where two intersect.

Rows of `committed` that say where they begin are held against each other by position, whatever their times: the names
of files have none. Docs: docs/reference/taxonomy.md, sections 3 and 8 (item 7); docs/reference/interpretations.md, 141
to 144.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.asserting import accepted_sends, placed_reads
from tieout.engine.classes.standing import (
    POSITIONS_KEPT,
    at_place,
    commit_row,
    is_annotated,
    resets_of,
    standing,
)
from tieout.engine.classes.stretches import set_aside_positions
from tieout.engine.commit_ranges import ranges_of
from tieout.engine.joining import same
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.matching import Matched
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus

_HOLE: Final = (*PLACE, "hole_from", "hole_to")


def range_breaks(scope: Scope, messages: DataFrame, found: Matched) -> list[DataFrame]:
    """Return the breaks of ranges; none where no row of `committed` says where it begins."""
    if found.commits is None or not scope.has(Ledger.COMMITTED, "first_offset"):
        return []
    ranges = materialised(ranges_of(found.commits))
    gaps = None if scope.contract.is_queue else commit_gap(scope, messages, found, ranges)
    return [intersections(scope, ranges), *([] if gaps is None else [gaps])]


def intersections(scope: Scope, ranges: DataFrame) -> DataFrame:
    """Return one break a range that begins below the end of one that begins no later, as a COMMIT_REGRESSION.

    `ranges` are `commit_ranges.ranges_of`. Without both times nobody can tell whether an operator's reset explains it.
    """
    pairs = _of_pairs(
        scope, ranges.filter(F.col("first_offset") < F.col("before.end")), F.col("first_offset")
    )
    may_be_annotated = F.lit(bool(resets_of(scope))) & F.col("before_at").isNull()
    rows = pairs.withColumns(
        {
            "positions": F.array(F.struct("topic", "partition", "offset")),
            "is_shown": F.col("is_shown") & ~may_be_annotated,
        }
    )
    flags = F.array_compact(F.array(F.when(is_annotated(scope), "annotated")))
    subject = at_place("first_offset", "committed_offset", "own_at", "metadata")
    return _standing(rows, BreakClass.COMMIT_REGRESSION, subject, flags)


def commit_gap(scope: Scope, messages: DataFrame, found: Matched, ranges: DataFrame) -> DataFrame | None:
    """Return one break a hole between two ranges in which something lies that nothing covers; None where none has one.

    A log that covers the hole shows what does: visible records. Else it is those, accepted sends and reads, and where
    none of these is known the whole hole, unless the topic has transactions, which leave markers, or is compacted. What
    was filtered or parked was not left out.
    """
    if found.commits is None:
        return None
    holes = _holes(found.commits, ranges)
    if holes.isEmpty():
        return None
    lying = _lying_in(scope, messages, found, holes)
    end = F.least("hole_to", F.col("hole_from") + POSITIONS_KEPT)
    offsets = F.coalesce("known", F.sequence("hole_from", end - 1))
    positions = F.transform(offsets, lambda offset: F.struct("topic", "partition", offset.alias("offset")))
    named = lying.withColumns({"positions": positions, "lowest": F.array_min(offsets)})
    rows = _of_pairs(scope, named, F.col("lowest"))
    return _standing(rows, BreakClass.COMMIT_GAP, at_place("hole_from", "hole_to"), F.array())


def _holes(commits: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return the ranges that begin above all that is covered before them, kept, with `hole_from` and `hole_to`.

    A row that does not say where it begins covers all from the beginning.
    """
    of_all = commits.filter(F.col("first_offset").isNull()).groupBy(
        *[F.col(name).alias(f"a_{name}") for name in PLACE]
    )
    known = ranges.filter(F.col("first_offset") > F.col("before.end")).join(
        F.broadcast(of_all.agg(F.max("committed_offset").alias("reached"))), same(PLACE, "a_"), how="left"
    )
    holes = known.withColumns(
        {"hole_from": F.greatest("before.end", "reached"), "hole_to": F.col("first_offset")}
    ).filter(F.col("hole_from") < F.col("hole_to"))
    return materialised(holes.drop("a_topic", "a_partition", "reached"))


def _lying_in(scope: Scope, messages: DataFrame, found: Matched, holes: DataFrame) -> DataFrame:
    """Return the holes in which something lies, with `known`: the first positions of it, null where none is known."""
    sent = accepted_sends(messages, found.keyed[Ledger.PRODUCED]).select(*POSITION)
    claimed = sent if found.reads is None else sent.unionByName(placed_reads(found.reads).select(*POSITION))
    parts = [claimed.withColumn("kind", F.lit("claimed"))]
    if found.log is not None:
        visible = found.keyed[Ledger.LOG].filter("is_visible").select(*POSITION)
        parts.append(visible.withColumn("kind", F.lit("visible")))
    parts.append(set_aside_positions(scope, messages, found).withColumn("kind", F.lit("aside")))
    placed = _within(reduce(DataFrame.unionByName, parts), holes)
    held = placed.groupBy(*_HOLE, "offset").agg(
        F.bool_or(F.col("kind") == "claimed").alias("is_claimed"),
        F.bool_or(F.col("kind") == "visible").alias("is_visible"),
        F.bool_or(F.col("kind") == "aside").alias("is_aside"),
    )
    names = [F.col(name).alias(f"h_{name}") for name in (*_HOLE, "offset")]
    told_of = held.select(*names, "is_claimed", "is_visible", "is_aside")
    known = _with_log(scope, found, holes).join(told_of, same(_HOLE, "h_"), how="left")
    is_owed = ~F.col("is_aside") & (F.col("is_visible") | (F.col("is_claimed") & ~F.col("is_logged")))
    told = known.groupBy(*holes.columns, "is_logged", "may_be_empty").agg(
        F.slice(F.array_sort(F.collect_set(F.when(is_owed, F.col("h_offset")))), 1, POSITIONS_KEPT).alias(
            "owed"
        ),
        F.count_if("is_aside").alias("aside"),
    )
    is_known = F.size("owed") > 0
    is_full = ~F.col("is_logged") & ~F.col("may_be_empty")
    is_left = F.col("aside") < F.col("hole_to") - F.col("hole_from")
    return told.filter(is_known | (is_full & is_left)).withColumn("known", F.when(is_known, F.col("owed")))


def _within(positions: DataFrame, holes: DataFrame) -> DataFrame:
    """Return the positions that lie in holes, with those; holes of a partition are apart, so one sort finds them."""
    marks = holes.select(
        *PLACE,
        F.col("hole_from").alias("offset"),
        F.lit(0).alias("turn"),
        F.struct("hole_from", "hole_to").alias("hole"),
    ).distinct()
    upwards = Window.partitionBy(*PLACE).orderBy("offset", "turn")
    nearest = F.last("hole", ignorenulls=True).over(upwards.rowsBetween(Window.unboundedPreceding, 0))
    return (
        positions.withColumn("turn", F.lit(1))
        .unionByName(marks, allowMissingColumns=True)
        .withColumn("in_hole", nearest)
        .filter((F.col("turn") == 1) & (F.col("offset") < F.col("in_hole.hole_to")))
        .select(*PLACE, "offset", "kind", "in_hole.hole_from", "in_hole.hole_to")
    )


def _with_log(scope: Scope, found: Matched, holes: DataFrame) -> DataFrame:
    """Return holes with whether the log covers them, and whether such positions of the topic may hold nothing."""
    sends = found.keyed[Ledger.PRODUCED].filter(F.col("transaction_id").isNotNull()).select("topic")
    legal = [sends]
    none = F.lit(None).cast("bigint")
    limits = holes.select(*PLACE, none.alias("log_start"), none.alias("log_end")).limit(0)
    if found.log is not None and found.bounds is not None:
        coverage = scope.evidence[Ledger.LOG].coverage
        is_sound = F.lit(coverage.is_sound and coverage.complete_until is not None)
        limits = found.bounds.filter(is_sound).select(*PLACE, "log_start", "log_end")
        is_of_transaction = F.col("is_control") | (F.col("transaction_state") != "none")
        legal.append(found.log.filter(is_of_transaction).select("topic"))
        legal.append(found.bounds.filter(F.col("cleanup_policy").contains("compact")).select("topic"))
    topics = reduce(DataFrame.unionByName, legal).distinct().withColumnRenamed("topic", "l_topic")
    limits = limits.select(*[F.col(name).alias(f"b_{name}") for name in (*PLACE, "log_start", "log_end")])
    known = holes.join(F.broadcast(limits), same(PLACE, "b_"), how="left").join(
        F.broadcast(topics.withColumn("is_legal", F.lit(True))), same(("topic",), "l_"), how="left"
    )
    is_logged = (F.col("b_log_start") <= F.col("hole_from")) & (F.col("hole_to") <= F.col("b_log_end"))
    return known.select(
        *holes.columns,
        F.coalesce(is_logged, F.lit(False)).alias("is_logged"),
        F.col("is_legal").isNotNull().alias("may_be_empty"),
    )


def _of_pairs(scope: Scope, rows: DataFrame, offset: Column) -> DataFrame:
    """Return ranges with what a break of them and the ones before them is made of, those of the window alone.

    It is of the later one's window. Ranges without times are what their table shows: of every window that begins
    before that was taken. What is told by both times has `before_at` and `committed_at`.
    """
    one, other = F.col("committed_at"), F.col("before.committed_at")
    is_dated = one.isNotNull() & other.isNotNull()
    at, taken_at = F.greatest(one, other), F.greatest("taken_at", "before.taken_at")
    start = F.lit(scope.window.start)
    is_standing = F.coalesce(taken_at >= start, F.lit(True)) & scope.holds(start, F.col("offset"))
    coverage = scope.evidence[Ledger.COMMITTED].coverage
    is_told = F.lit(coverage.is_sound and coverage.complete_until is not None)
    before = F.col("before")
    first_row = F.struct(
        "topic", "partition", before["first"].alias("first_offset"), before["end"].alias("committed_offset"),
        before["committed_at"].alias("committed_at"), before["metadata"].alias("metadata"),
    )  # fmt: skip
    second_row = commit_row("committed_offset", "committed_at", "first_offset", "metadata")
    own = F.struct(one.alias("at"), F.col("generation"))
    earlier = F.least(own, F.struct(other.alias("at"), before["generation"].alias("generation")))
    later = F.greatest(own, F.struct(other.alias("at"), before["generation"].alias("generation")))
    known = rows.withColumns(
        {
            "offset": offset,
            "commit_rows": F.array(first_row, second_row),
            "own_at": one,
            "at": at,
            "earlier": F.when(is_dated, earlier),
            "later": F.when(is_dated, later),
            "is_told": is_told,
        }
    ).withColumns(
        {
            "before_at": F.col("earlier.at"),
            "generation_before": F.col("earlier.generation"),
            "generation": F.col("later.generation"),
        }
    )
    is_here = F.when(F.col("at").isNotNull(), scope.holds(F.col("at"), F.col("offset"))).otherwise(
        is_standing
    )
    is_shown = F.when(
        F.col("before_at").isNotNull(),
        scope.covered_between(Ledger.COMMITTED, F.col("before_at"), F.col("later.at")),
    ).otherwise(F.col("is_told"))
    return (
        known.filter(is_here).withColumn("is_shown", is_shown).withColumn("committed_at", F.col("later.at"))
    )


def _standing(rows: DataFrame, name: BreakClass, subject: Column, flags: Column) -> DataFrame:
    return standing(rows, name, "commit", F.lit(Locus.OFFSET_STORE.value), subject=subject, flags=flags)
