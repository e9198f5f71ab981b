"""SKIPPED and COMMIT_STALE: what a consumer jumped between two reads, and output that no commit followed.

Both are breaks of a stretch, not of one row. Jepsen's Kafka checker calls the first a poll skip
(`jepsen/src/jepsen/tests/kafka.clj`). Docs: docs/reference/taxonomy.md, section 3, and interpretations.md, 58.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.asserting import accepted_sends, placed_reads
from tieout.engine.classes.standing import standing
from tieout.engine.joining import same
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.matching import Matched
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus

SKIPPED_NEEDS: Final = (
    (Ledger.READ, ("consumer_id", "generation", "processed_at", "partition", "offset")),
    (Ledger.ASSIGNED, ()),
)
"""Without a consumer's assignments a jump may be a rebalance."""
_READER: Final = ("consumer_id", "generation", *PLACE)


def skipped(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return one break a pair of consecutive reads that jumped a record while the partition stayed assigned.

    What is known to exist is what a log shows as visible; without a log what accepted sends and other reads assert. It
    was not jumped where the same consumer read it, whatever came of that, or where it was set aside.
    """
    reads = found.keyed[Ledger.READ] if found.reads is None else found.reads
    pairs = _jumps(reads)
    aside = set_aside_positions(scope, messages, found).select(*_prefixed("a_", POSITION))
    known = _existing(messages, found, reads).join(aside, same(POSITION, "a_"), how="left_anti")
    readers = pairs.select("consumer_id", *_prefixed("r_", PLACE)).distinct()
    by_reader = ("consumer_id", *POSITION)
    own = reads.filter(F.col("offset").isNotNull()).select(*_prefixed("o_", by_reader)).distinct()
    unread = known.join(readers, same(PLACE, "r_"), how="inner").join(
        own, same(by_reader, "o_"), how="left_anti"
    )
    # Backwards, because Spark goes through all following rows anew for each row: the square of a partition's size.
    backwards = Window.partitionBy("consumer_id", *PLACE).orderBy(F.desc("offset"), F.desc("turn"))
    following = backwards.rowsBetween(Window.unboundedPreceding, -1)
    points = unread.select(
        "consumer_id", *POSITION, F.col("offset").alias("record_offset"), F.lit(0).alias("turn")
    )
    jumped = (
        pairs.withColumn("turn", F.lit(1))
        .unionByName(points, allowMissingColumns=True)
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


def _prefixed(prefix: str, names: Sequence[str]) -> list[Column]:
    return [F.col(name).alias(f"{prefix}{name}") for name in names]


def _jumps(reads: DataFrame) -> DataFrame:
    """Return the pairs of a consumer's consecutive reads that have offsets between them."""
    is_known = F.col("effect_state").isin("ok", "again") & F.col("offset").isNotNull()
    for name in ("consumer_id", "generation", "processed_at"):
        is_known = is_known & F.col(name).isNotNull()
    in_time = Window.partitionBy(*_READER).orderBy(
        "processed_at", F.coalesce("delivery_sequence", F.lit(0)), "offset"
    )
    next_ones = {
        "next_offset": F.lead("offset").over(in_time),
        "next_at": F.lead("processed_at").over(in_time),
    }
    return (
        reads.filter(is_known)
        .select(
            *_READER, "offset", F.col("processed_at").alias("read_at"), "processed_at", "delivery_sequence"
        )
        .withColumns(next_ones)
        .filter(F.col("next_offset") > F.col("offset") + 1)
        .drop("processed_at", "delivery_sequence")
    )


def _existing(messages: DataFrame, found: Matched, reads: DataFrame) -> DataFrame:
    """Return the positions at which a reader had to come across a record, as far as the evidence shows them."""
    if found.log is not None:
        return found.keyed[Ledger.LOG].filter("is_visible").select(*POSITION)
    sent = accepted_sends(messages, found.keyed[Ledger.PRODUCED]).select(*POSITION)
    return sent.unionByName(placed_reads(reads).select(*POSITION)).distinct()


def set_aside_positions(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return the positions of what was set aside."""
    held = F.explode(F.array_union("asserted", "visible")).alias("at")
    of_messages = messages.filter(F.col("set_aside_rows") > 0).select(held).select("at.*")
    is_placed = (F.col("effect_state") == "ok") & F.col("offset").isNotNull()
    named = [found.keyed[ledger].filter(is_placed).select(*POSITION) for ledger in scope.sets_aside]
    return reduce(DataFrame.unionByName, named, of_messages).distinct()


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


def _end_of_range() -> Column:
    """Return where a commit ends that says where it begins: one that lies below it takes nothing back."""
    return F.when(F.col("first_offset").isNotNull(), F.col("committed_offset"))


def commit_stale(scope: Scope, commits: DataFrame, progress: DataFrame) -> DataFrame:
    """Return one break a stretch in which output went on for longer than it may while no commit followed.

    `progress` is `positions.progress_of`. After a partition's last commit the stretch lasts until `committed` ends.
    """
    until = scope.evidence[Ledger.COMMITTED].coverage.complete_until
    by_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    instants = (
        commits.filter(F.col("committed_at").isNotNull())
        .groupBy(*PLACE, "committed_at")
        .agg(F.max("committed_offset").alias("latest"), F.max(_end_of_range()).alias("furthest"))
        .withColumn("stood", F.greatest("latest", F.max("furthest").over(by_time)))
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
