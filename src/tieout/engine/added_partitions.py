"""Partitions that were added to a topic while the group was reading it, and what it had not heard of in time.

A consumer learns of a new partition late (`metadata.max.age.ms`) and, told to begin at the latest offset, passes over
what is there by then. Docs: docs/reference/taxonomy.md, section 4, "partition count changed".
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.scope import Scope
from tieout.model import Ledger

_NEEDED: Final = ("generation", "kind", "assigned_at", "partitions")


def with_added_partitions(scope: Scope, breaks: DataFrame, progress: DataFrame) -> DataFrame:
    """Return breaks with `is_of_added`: sent to a partition after the group began, before it was first given this one.

    A group is given all partitions there are in its first generation, so one that it is given in a later one, and never
    before, was added since. Only assignments with a generation are a group's; needs `offset` and `sent_at`.
    """
    if not _is_told(scope):
        return breaks.withColumn("is_of_added", F.lit(False))
    given = (
        scope.rows(Ledger.ASSIGNED)
        .filter(scope.is_ours() & (F.lower("kind") == "assign") & F.col("generation").isNotNull())
        .select(F.explode("partitions").alias("place"), "generation", "assigned_at")
        .select("place.*", "generation", "assigned_at")
    )
    first = [F.min("generation").alias("generation"), F.min("assigned_at").alias("given_at")]
    of_partition = given.groupBy(*[F.col(name).alias(f"g_{name}") for name in PLACE]).agg(*first)
    of_topic = given.groupBy(F.col("topic").alias("t_topic")).agg(
        F.min("generation").alias("first_generation"), F.min("assigned_at").alias("group_began_at")
    )
    begun = progress.groupBy(*[F.col(name).alias(f"p_{name}") for name in PLACE]).agg(
        F.min("at").alias("progress_at"), F.bool_or(F.col("at").isNull()).alias("is_undated")
    )
    known = (
        breaks.join(F.broadcast(of_partition), same(PLACE, "g_"), how="left")
        .join(F.broadcast(of_topic), same(("topic",), "t_"), how="left")
        .join(F.broadcast(begun), same(PLACE, "p_"), how="left")
    )
    return known.withColumn("is_of_added", F.coalesce(_is_of_added(scope), F.lit(False))).select(
        *breaks.columns, "is_of_added"
    )


def _is_told(scope: Scope) -> bool:
    """Return whether `assigned` says what the group was given since before the window."""
    if not scope.has(Ledger.ASSIGNED, *_NEEDED):
        return False
    return scope.evidence[Ledger.ASSIGNED].coverage.covers(scope.window.start, scope.window.end)


def _is_of_added(scope: Scope) -> Column:
    skew = F.lit(scope.contract.clock_skew)
    was_sent_since = F.col("sent_at") >= F.col("group_began_at") + skew
    was_sent_before = F.col("sent_at") + skew < F.col("given_at")
    had_begun = F.coalesce(F.col("is_undated") | (F.col("progress_at") < F.col("given_at")), F.lit(False))
    return (F.col("generation") > F.col("first_generation")) & was_sent_since & was_sent_before & ~had_begun
