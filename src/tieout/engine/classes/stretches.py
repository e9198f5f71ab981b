"""SKIPPED and COMMIT_STALE: what a consumer jumped between two reads, and output that no commit followed.

Both are breaks of a stretch, not of one row. Jepsen's Kafka checker calls the first a poll skip
(`jepsen/src/jepsen/tests/kafka.clj`). Docs: docs/reference/taxonomy.md, section 3, and interpretations.md, 58.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.standing import standing
from tieout.engine.keys import PLACE
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus

SKIPPED_NEEDS: Final = (
    (Ledger.READ, ("consumer_id", "generation", "processed_at", "partition", "offset")),
    (Ledger.ASSIGNED, ()),
    (Ledger.LOG, ()),
)
"""Without a consumer's assignments a jump may be a rebalance, and without the log a hole."""


def skipped(scope: Scope, reads: DataFrame, records: DataFrame) -> DataFrame:
    """Return one break a pair of consecutive reads that jumped a visible record while the partition stayed assigned.

    `reads` and `records` are the keyed rows of `read` and of the log's data records.
    """
    reader = ("consumer_id", "generation", *PLACE)
    is_known = F.col("effect_state").isin("ok", "again") & F.col("offset").isNotNull()
    for name in ("consumer_id", "generation", "processed_at"):
        is_known = is_known & F.col(name).isNotNull()
    in_time = Window.partitionBy(*reader).orderBy(
        "processed_at", F.coalesce("delivery_sequence", F.lit(0)), "offset"
    )
    pairs = (
        reads.filter(is_known)
        .select(
            *reader,
            "offset",
            F.lead("offset").over(in_time).alias("next_offset"),
            F.col("processed_at").alias("read_at"),
            F.lead("processed_at").over(in_time).alias("next_at"),
        )
        .filter(F.col("next_offset") > F.col("offset") + 1)
    )
    # Backwards, because Spark goes through all following rows anew for each row: the square of a partition's size.
    backwards = Window.partitionBy(*PLACE).orderBy(F.desc("offset"), F.desc("turn"))
    following = backwards.rowsBetween(Window.unboundedPreceding, -1)
    visible = records.filter("is_visible").select(
        *PLACE, "offset", F.col("offset").alias("record_offset"), F.lit(0).alias("turn")
    )
    jumped = (
        pairs.withColumn("turn", F.lit(1))
        .unionByName(visible, allowMissingColumns=True)
        .withColumn("jumped", F.last("record_offset", ignorenulls=True).over(following))
        .filter((F.col("turn") == 1) & (F.col("jumped") < F.col("next_offset")))
    )
    kept = jumped.join(_changes(scope), _is_reset(), how="left_anti").filter(
        scope.holds(F.col("next_at"), F.col("jumped"))
    )
    position = F.struct("topic", "partition", F.col("jumped").alias("offset"))
    rows = kept.withColumns({"offset": F.col("jumped"), "positions": F.array(position)})
    subject = F.to_json(F.struct("positions", "consumer_id", "generation", "next_at"))
    locus = F.lit(Locus.BROKER_TO_CONSUMER.value)
    return standing(rows, BreakClass.SKIPPED, "order", locus, subject=subject, flags=F.array())


def _changes(scope: Scope) -> DataFrame:
    """Return when the group's consumers were assigned, lost or moved their partitions."""
    return (
        scope.rows(Ledger.ASSIGNED)
        .filter(scope.is_ours())
        .select(F.col("consumer_id").alias("changed_id"), F.col("assigned_at").alias("changed_at"))
    )


def _is_reset() -> Column:
    """Return whether a change of the consumer's assignment lies between the two reads; an undated one may."""
    is_between = (F.col("changed_at") >= F.col("read_at")) & (F.col("changed_at") <= F.col("next_at"))
    return (F.col("changed_id") == F.col("consumer_id")) & (F.col("changed_at").isNull() | is_between)


def commit_stale(scope: Scope, commits: DataFrame, progress: DataFrame) -> DataFrame:
    """Return one break a stretch in which output went on for longer than it may while no commit followed.

    `progress` is `positions.progress_of`. After a partition's last commit the stretch lasts until `committed` ends.
    """
    until = scope.evidence[Ledger.COMMITTED].coverage.complete_until
    by_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    instants = (
        commits.filter(F.col("committed_at").isNotNull())
        .groupBy(*PLACE, "committed_at")
        .agg(F.max("committed_offset").alias("stood"))
        .withColumn("following", F.coalesce(F.lead("committed_at").over(by_time), F.lit(until)))
    )
    marks = instants.select(
        *PLACE,
        F.col("committed_at").alias("at"),
        F.lit(0).alias("turn"),
        F.struct("committed_at", "stood", "following").alias("mark"),
    )
    effects = progress.filter(F.col("by") == "effect").select(*PLACE, "at", "offset", F.lit(1).alias("turn"))
    onwards = Window.partitionBy(*PLACE).orderBy("at", "turn")
    latest = F.last("mark", ignorenulls=True).over(onwards.rowsBetween(Window.unboundedPreceding, 0))
    rows = (
        effects.filter(F.col("at").isNotNull())
        .unionByName(marks, allowMissingColumns=True)
        .withColumn("since", latest)
        .filter((F.col("turn") == 1) & (F.col("offset") >= F.col("since.stood")))
        .filter(F.col("at") < F.col("since.following"))
        .groupBy(*PLACE, "since")
        .agg(F.min(F.struct("at", "offset")).alias("first"))
        .filter(F.col("since.following") - F.col("first.at") > F.lit(scope.patience))
        .filter(scope.holds(F.col("first.at"), F.col("first.offset")))
        .select(*PLACE, F.col("first.offset").alias("offset"), F.col("first.at").alias("at"))
        .withColumn("positions", F.array(F.struct("topic", "partition", "offset")))
    )
    subject = F.to_json(F.struct("positions", "at"))
    locus = F.lit(Locus.OFFSET_STORE.value)
    return standing(rows, BreakClass.COMMIT_STALE, "commit", locus, subject=subject, flags=F.array())
