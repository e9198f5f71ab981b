"""What the log says of positions: whether they have expired, are covered, or were compacted away.

Docs: docs/reference/taxonomy.md, section 3 (dispositions EXPIRED, COMPACTED and LOST).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import NEVER, PLACE
from tieout.engine.known_contents import NULLS, bit_of
from tieout.engine.materialising import materialised
from tieout.engine.positions import with_first_passing
from tieout.engine.scope import Scope
from tieout.model import Ledger

_OF_COMPACTION: Final = ("is_superseded", "is_compacted", "was_committed_first", "may_have_passed_first")
_LOG_FACTS: Final = ("is_expired", "is_covered", *_OF_COMPACTION)
_LIMITS: Final = ("log_start", "stated_start", "log_end", "observed_at")


def with_log_facts(
    scope: Scope,
    positions: DataFrame,
    bounds: DataFrame | None,
    superseding: DataFrame | None,
    progress: DataFrame | None,
    doubts: DataFrame | None = None,
) -> DataFrame:
    """Return positions with `is_expired`, `is_covered` and what compaction did to them; all false without a log.

    `is_superseded`: compaction took it; `is_compacted`: before the group had come so far; `was_committed_first`: a
    dated commit had passed it before compaction could; `may_have_passed_first`: a poll of unknown outcome may have.
    `is_uncovered` says of a position that its own attempt, which may be later than the message's first, is not covered.
    """
    if bounds is None:
        return positions.withColumns(dict.fromkeys(_LOG_FACTS, F.lit(False)))
    covered = with_log_coverage(scope, positions, bounds)
    covered = covered.withColumn("is_covered", F.col("is_covered") & ~F.col("is_uncovered"))
    if superseding is None:
        return covered.withColumns(dict.fromkeys(_OF_COMPACTION, F.lit(False)))
    known = _with_superseding(covered, superseding)
    since, unknown = F.col("superseded_at"), F.lit(NEVER).cast("timestamp")
    was_passed = was_committed = may_have_passed = F.lit(False)
    if doubts is not None:
        doubted = with_first_passing(known, doubts).withColumnRenamed("passed_at", "doubted_at")
        known = materialised(doubted)  # or the plan is too deep for Spark Connect
        may_have_passed = F.col("is_superseded") & F.coalesce(F.col("doubted_at") <= since, F.lit(False))
    if progress is not None:
        commits = progress.filter((F.col("by") == "commit") & F.col("at").isNotNull())
        known = with_first_passing(known, commits).withColumnRenamed("passed_at", "committed_at")
        known = with_first_passing(known, progress)
        was_passed = F.coalesce(F.col("passed_at") <= since, F.lit(False))
        was_committed = F.coalesce((F.col("committed_at") <= since) & (since < unknown), F.lit(False))
    return known.withColumns(
        {
            "is_compacted": F.col("is_superseded") & ~was_passed,
            "was_committed_first": F.col("is_superseded") & was_committed,
            "may_have_passed_first": may_have_passed,
        }
    ).drop("passed_at", "committed_at", "doubted_at", "superseded_at")


def compacts(scope: Scope, bounds: DataFrame) -> bool:
    """Return whether any partition of the log may be compacted."""
    if not scope.has(Ledger.LOG, "cleanup_policy"):
        return False
    return not bounds.filter(F.col("cleanup_policy").contains("compact")).isEmpty()


def absent_positions(
    scope: Scope, attempts: DataFrame, log: DataFrame, bounds: DataFrame, records: DataFrame
) -> DataFrame:
    """Return the acked positions at which the log has no record, with `is_covered`, `is_expired`, `is_superseded`."""
    held = log.select(*[F.col(name).alias(f"held_{name}") for name in (*PLACE, "offset")])
    acked = attempts.filter((F.col("outcome") == "acked") & F.col("offset").isNotNull())
    absent = acked.join(held, same((*PLACE, "offset"), "held_"), how="left_anti").select(
        *PLACE,
        "offset",
        "message_id",
        "key_hash",
        F.col("attempted_at").alias("sent_at"),
        F.coalesce("completed_at", "attempted_at").alias("done_at"),
        F.lit(0).alias("held_count"),
        F.lit(False).alias("is_uncovered"),
    )
    return with_log_facts(scope, absent, bounds, superseding_of(scope, records, attempts, bounds), None)


def with_log_coverage(scope: Scope, positions: DataFrame, bounds: DataFrame | None) -> DataFrame:
    """Return positions with `is_expired`, `is_covered` and `cleanup_policy`, given their `offset` and `done_at`.

    What lies below a start that the log states has expired. The log covers a position from its start on: below its end
    as far as its records are complete, from there on where the end was observed after the acknowledgement. An older
    observation cannot miss a younger record, and a partition of which the log shows nothing is none of its.
    """
    none = F.lit(None).cast("string")
    if bounds is None:
        return positions.withColumns(
            {"is_expired": F.lit(False), "is_covered": F.lit(False), "cleanup_policy": none}
        )
    limits = bounds.select(*[F.col(name).alias(f"b_{name}") for name in (*PLACE, *_LIMITS)], "cleanup_policy")
    known = positions.join(F.broadcast(limits), same(PLACE, "b_"), how="left")
    settled_at = F.col("done_at") + F.lit(scope.contract.clock_skew)
    was_observed = F.when(F.col("b_observed_at").isNotNull(), F.col("b_observed_at") >= settled_at).otherwise(
        scope.covered_until(Ledger.LOG, settled_at)
    )
    coverage = scope.evidence[Ledger.LOG].coverage
    is_told = F.lit(coverage.is_sound and coverage.complete_until is not None)
    is_below = F.coalesce(F.col("offset") < F.col("b_log_start"), F.lit(False))
    is_inside = F.coalesce(F.col("offset") < F.col("b_log_end"), F.lit(False))
    is_complete = F.col("done_at").isNull() | scope.covered_until(Ledger.LOG, F.col("done_at"))
    is_held = F.when(is_inside, is_complete).otherwise(F.coalesce(was_observed, F.lit(False)))
    is_reached = F.col("done_at").isNull() | scope.covered_from(Ledger.LOG, F.col("done_at"))
    is_sound = F.lit(coverage.is_sound) & is_reached
    is_shown = F.col("b_log_end").isNotNull()
    told = {
        "is_expired": is_told & F.coalesce(F.col("offset") < F.col("b_stated_start"), F.lit(False)),
        "is_covered": is_sound & is_shown & ~is_below & is_held,
    }
    return known.withColumns(told).drop(*[f"b_{name}" for name in (*PLACE, *_LIMITS)])


def superseding_of(
    scope: Scope, records: DataFrame, attempts: DataFrame, bounds: DataFrame
) -> DataFrame | None:
    """Return what takes a key's records from a compacted log: place, `key_hash`, `offset`, and `record`, since when.

    None where no partition may be compacted.
    A committed record takes those before it (`turn` 0). So does an acked tombstone, a keyed send that is known to have
    no payload where others of its topic have one. It is gone itself in the end, nobody knows when (`turn` 2, before its
    own position).
    """
    if not compacts(scope, bounds):
        return None
    never = F.lit(NEVER).cast("timestamp")
    is_written = F.col("transaction_state").isin("none", "committed") & F.col("key_hash").isNotNull()
    stamped = F.coalesce("record_timestamp", never)
    later = records.filter(is_written).select(
        *PLACE, "key_hash", "offset", stamped.alias("record"), F.lit(0).alias("turn")
    )
    if not scope.has(Ledger.PRODUCED, "payload_hash"):
        return later
    held = records.select(*[F.col(name).alias(f"held_{name}") for name in (*PLACE, "offset")])
    shown = (
        attempts.filter(F.col("payload_hash").isNotNull())
        .select(F.col("topic").alias("told_topic"))
        .distinct()
    )
    is_null = F.col(NULLS).bitwiseAND(bit_of("payload_hash")) != 0
    is_tombstone = F.col("key_hash").isNotNull() & is_null
    is_acked = (F.col("outcome") == "acked") & F.col("offset").isNotNull()
    gone = (
        attempts.filter(is_acked & is_tombstone)
        .join(shown, same(("topic",), "told_"), how="left_semi")
        .join(held, same((*PLACE, "offset"), "held_"), how="left_anti")
    )
    sent_at = F.coalesce("completed_at", "attempted_at", never)
    deleted = gone.groupBy(*PLACE, "key_hash", "offset").agg(F.min(sent_at).alias("record"))
    itself = deleted.withColumns({"record": never, "turn": F.lit(2)})
    return later.unionByName(deleted.withColumn("turn", F.lit(0))).unionByName(itself)


def _with_superseding(positions: DataFrame, superseding: DataFrame) -> DataFrame:
    """Return positions with `is_superseded`: gone, keyed, and something of `superseding` at or above them.

    `superseded_at` is since when, the end of time where that is not known.
    """
    names = positions.columns
    points = positions.withColumn("turn", F.lit(1))
    downwards = Window.partitionBy(*PLACE, "key_hash").orderBy(F.col("offset").desc(), F.col("turn").desc())
    nearest = F.last("record", ignorenulls=True).over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    together = (
        points.unionByName(superseding, allowMissingColumns=True)
        .withColumn("superseded_at", nearest)
        .filter(F.col("turn") == 1)
    )
    is_compacting = F.coalesce(F.col("cleanup_policy").contains("compact"), F.lit(False))
    is_gone = F.col("is_covered") & (F.col("held_count") == 0) & F.col("key_hash").isNotNull()
    is_superseded = F.coalesce(is_gone & F.col("superseded_at").isNotNull() & is_compacting, F.lit(False))
    return together.withColumn("is_superseded", is_superseded).select(
        *names, "superseded_at", "is_superseded"
    )
