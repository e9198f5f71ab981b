"""Where the group stands: its commits, its frontier per partition, and which commit first covered a position.

Docs: docs/reference/taxonomy.md, section 2 (due, frontier) and section 3 (COMMIT_*).
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.commit_ranges import COVER, ranges_of, with_first_range
from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Ledger

_OF_THE_GROUP: Final = (Ledger.COMMITTED, Ledger.READ, Ledger.DELIVERED)
"""The ledgers that say how far the group came."""


def commits_of(scope: Scope, ledger: Ledger = Ledger.COMMITTED) -> DataFrame | None:
    """Return the group's commits, one row a distinct commit, or None where no offset table is declared."""
    if ledger not in scope.evidence:
        return None
    return (
        scope.rows(ledger)
        .filter(scope.is_ours(ledger) & F.col("committed_offset").isNotNull())
        .select(
            *PLACE,
            "first_offset",
            "committed_offset",
            "committed_at",
            "taken_at",
            "generation",
            "leader_epoch",
            "consumer_group",
            "metadata",
        )
        .distinct()
    )


def epochs_of(scope: Scope, log: DataFrame | None, bounds: DataFrame | None) -> DataFrame | None:
    """Return where each leader's records begin; None where the log shows the first one's alone, or nobody names any.

    | e_topic | e_partition | epochs           |
    |---------|-------------|------------------|
    | orders  | 0           | [(0, 0), (1, 5)] |
    """
    is_named = any(scope.has(ledger, "leader_epoch") for ledger in _OF_THE_GROUP)
    if log is None or bounds is None or not is_named or bounds.filter("has_epochs").isEmpty():
        return None
    firsts = log.groupBy(*PLACE, "leader_epoch").agg(F.min("offset").alias("first"))
    epochs = F.collect_list(F.struct("leader_epoch", "first")).alias("epochs")
    return firsts.groupBy(*[F.col(name).alias(f"e_{name}") for name in PLACE]).agg(epochs)


def held_back(rows: DataFrame, position: str, epochs: DataFrame | None, *, last: int) -> DataFrame:
    """Return rows that name their leader's epoch with `position` not beyond the first record of a newer one.

    What a reader passed there under a former leader was cut off since; it is not what the log holds now (KIP-320,
    "Allow fetchers to detect and handle log truncation"). `last` is how far before that record `position` may lie:
    0 for the next offset to read, 1 for one that was read. Rows without an epoch stay as they are.
    """
    if epochs is None:
        return rows
    newer = F.filter("epochs", lambda epoch: epoch["leader_epoch"] > F.col("leader_epoch"))
    begins = F.array_min(F.transform(newer, lambda epoch: epoch["first"]))
    known = rows.join(F.broadcast(epochs), same(PLACE, "e_"), how="left")
    return known.withColumn(position, F.least(position, begins - last)).drop(
        "e_topic", "e_partition", "epochs"
    )


def progress_of(
    messages: DataFrame,
    effects: DataFrame,
    reads: DataFrame | None,
    commits: DataFrame | None,
    epochs: DataFrame | None,
    *,
    may_lack_position: bool,
) -> DataFrame:
    """Return every proof that the group went past a position: an effect, a read or a commit, and when.

    Columns: `topic`, `partition`, `offset` (passed, inclusive), `at`, `by` in {effect, read, commit}. An effect that
    names no position (where any `may_lack_position`) counts at the lowest of its message. `effects` and `reads` are
    keyed rows of the group's output and reads; `commits` are `held_back` already.
    """
    is_ok, is_placed = F.col("effect_state").isin("ok", "again"), F.col("offset").isNotNull()
    by = {name: F.lit(name).alias("by") for name in ("effect", "read", "commit")}
    at = F.col("processed_at").alias("at")
    shown = held_back(effects.filter(is_ok & is_placed), "offset", epochs, last=1)
    parts = [shown.select(*PLACE, "offset", at, by["effect"])]
    if may_lack_position:
        lowest = messages.filter(F.col("first_offset").isNotNull()).select(
            *PLACE, F.col("first_offset").alias("offset"), F.col("key").alias("lowest_key")
        )
        unplaced = effects.filter(is_ok & ~is_placed).select("key", at)
        known = unplaced.join(lowest, F.col("key") == F.col("lowest_key"), how="inner")
        parts.append(known.select(*PLACE, "offset", "at", by["effect"]))
    if reads is not None:
        polled = held_back(reads.filter(is_ok & is_placed), "offset", epochs, last=1)
        parts.append(polled.select(*PLACE, "offset", at, by["read"]))
    if commits is not None:
        last = (F.col("committed_offset") - 1).alias("offset")
        parts.append(commits.select(*PLACE, last, F.col("committed_at").alias("at"), by["commit"]))
    return reduce(DataFrame.unionByName, parts)


def doubtful_progress_of(reads: DataFrame, epochs: DataFrame | None) -> DataFrame:
    """Return where polls of unknown outcome may have passed, and when: `topic`, `partition`, `offset` and `at`."""
    is_doubtful = (F.col("effect_state") == "unknown") & F.col("offset").isNotNull()
    polled = held_back(reads.filter(is_doubtful), "offset", epochs, last=1)
    return polled.select(*PLACE, "offset", F.col("processed_at").alias("at"))


def frontier_of(progress: DataFrame) -> DataFrame:
    """Return per topic partition the last position the group is known to have passed.

    Columns: `topic`, `partition`, `passed` (inclusive offset), `committed` (exclusive, highest ever). Holes below are
    ignored; a partition without any proof has no row.
    """
    committed = F.max(F.when(F.col("by") == "commit", F.col("offset") + 1))
    return progress.groupBy(*PLACE).agg(F.max("offset").alias("passed"), committed.alias("committed"))


def rising_commits_of(commits: DataFrame) -> DataFrame:
    """Return the commits that moved the group's position beyond all earlier ones."""
    by_time = Window.partitionBy(*PLACE).orderBy(F.col("committed_at").asc_nulls_last(), "committed_offset")
    earlier = by_time.rowsBetween(Window.unboundedPreceding, -1)
    highest = F.max("committed_offset").over(earlier)
    return (
        commits.withColumn("previous_commit", highest)
        .filter(F.col("previous_commit").isNull() | (F.col("committed_offset") > F.col("previous_commit")))
        .select(*PLACE, "committed_offset", "committed_at")
    )


def with_first_cover(positions: DataFrame, commits: DataFrame | None, *, has_ranges: bool) -> DataFrame:
    """Return positions with `cover`: the first commit that covers them, null where none does.

    One that says where it begins covers a range (`commit_ranges.COVER`), any other all below its position. `positions`
    has `topic`, `partition`, `offset` and may repeat. One sort per partition replaces a range join.
    """
    if commits is None:
        return positions.withColumn("cover", F.lit(None).cast(COVER))
    if not has_ranges:
        return _with_first_beyond(positions, commits)
    known = materialised(_with_first_beyond(positions, commits.filter(F.col("first_offset").isNull())))
    return with_first_range(known, ranges_of(commits))


def _with_first_beyond(positions: DataFrame, commits: DataFrame) -> DataFrame:
    """Return positions with `cover`: the first commit whose position lies beyond them."""
    names = positions.columns
    cover = F.struct(
        "committed_offset",
        "committed_at",
        F.lit(None).cast("bigint").alias("first_offset"),
        F.lit(None).cast("boolean").alias("is_next"),
    )
    marks = rising_commits_of(commits).select(
        *PLACE, (F.col("committed_offset") - 1).alias("offset"), F.lit(0).alias("turn"), cover.alias("mark")
    )
    points = positions.withColumns({"turn": F.lit(1), "mark": F.lit(None).cast(COVER)})
    downwards = Window.partitionBy(*PLACE).orderBy(F.col("offset").desc(), F.col("turn"))
    nearest = F.last("mark", ignorenulls=True).over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    together = points.unionByName(marks, allowMissingColumns=True).withColumn("cover", nearest)
    return together.filter(F.col("turn") == 1).select(*names, "cover")


def with_first_passing(positions: DataFrame, progress: DataFrame) -> DataFrame:
    """Return positions with `passed_at`, when a commit, a read or an effect first showed the group at or beyond them.

    What had been passed before compaction could take it was there to be read: compaction excuses nothing.
    """
    names = positions.columns
    marks = progress.select(*PLACE, "offset", F.col("at").alias("mark"), F.lit(0).alias("turn"))
    points = positions.withColumn("turn", F.lit(1))
    downwards = Window.partitionBy(*PLACE).orderBy(F.col("offset").desc(), F.col("turn"))
    first = F.min("mark").over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    together = points.unionByName(marks, allowMissingColumns=True).withColumn("passed_at", first)
    return together.filter(F.col("turn") == 1).select(*names, "passed_at")
