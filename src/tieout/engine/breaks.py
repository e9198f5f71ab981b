"""Breaks: what the rules found, one row each, with a lasting id, a cause where it is proved, and an incident.

Docs: docs/reference/taxonomy.md, section 4 (causes, incidents) and section 6 (`break_id`).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.standing import COMMIT_ROWS
from tieout.engine.classifying import NO_BREAK
from tieout.engine.joining import same
from tieout.engine.positions import PLACE
from tieout.engine.scope import Scope
from tieout.model import BreakClass

UNKNOWN_CAUSE: Final = "unknown"
COMMIT_BEFORE_PROCESS: Final = "commit before process"
PROCESS_BEFORE_COMMIT: Final = "process before commit"
RETRY_WITHOUT_IDEMPOTENCE: Final = "retry without idempotence"
RESEND: Final = "producer restart or application resend"
ABORTED_READ: Final = "aborted transaction read"
ZOMBIE: Final = "zombie after rebalance"


def message_breaks(messages: DataFrame) -> DataFrame:
    """Return the broken and overdue messages of this window, with what causes need to know."""
    is_calm = (F.col("class") == BreakClass.IN_FLIGHT.value) & ~F.array_contains("flags", "OVERDUE")
    is_marked = F.array_contains("flags", BreakClass.PHANTOM_ABORTED.value)
    is_break = (~F.col("class").isin([name.value for name in NO_BREAK]) & ~is_calm) | is_marked
    broken = messages.filter(F.col("is_judged_here") & is_break)
    identity = F.coalesce(F.when(F.col("key").startswith("m:"), F.col("message_id")), F.col("key"))
    return broken.select(
        "key",
        "class",
        F.lit("message").alias("kind"),
        identity.alias("subject"),
        "locus",
        "topic",
        "partition",
        F.coalesce("first_offset", F.array_min("effect_positions")["offset"]).alias("offset"),
        F.slice(F.array_sort(F.array_union("asserted", "effect_positions")), 1, 20).alias("positions"),
        "flags",
        "message_id",
        F.col("first_attempt.producer_id").alias("producer_id"),
        "cover",
        _own_cause().alias("own_cause"),
        _admissible().alias("admissible"),
        F.size("effect_readers").alias("reader_count"),
        "last_effect_at",
        F.lit(None).cast("bigint").alias("run"),
        F.lit(UNKNOWN_CAUSE).alias("cause"),
    )


def _own_cause() -> Column:
    """Return the cause that a message's own row proves, else null."""
    in_log_twice = (F.col("class") == BreakClass.LOG_DUPLICATE.value) | F.array_contains("flags", "inherited")
    is_plain = F.coalesce(F.col("has_plain_record") & ~F.col("has_idempotent_record"), F.lit(False))
    is_phantom = F.col("class").eqNullSafe(BreakClass.PHANTOM_ABORTED.value)
    is_aborted = is_phantom & F.col("is_from_aborted")
    return (
        F.when(in_log_twice & (F.col("attempts") == 1) & is_plain, RETRY_WITHOUT_IDEMPOTENCE)
        .when(in_log_twice & (F.col("acked") >= F.size("visible")) & (F.col("acked") >= 2), RESEND)
        .when(is_aborted, ABORTED_READ)
    )


def _admissible() -> Column:
    """Return the causes that the kind of break admits, before evidence decides between them."""
    name = F.col("class")
    in_log_twice = (name == BreakClass.LOG_DUPLICATE.value) | F.array_contains("flags", "inherited")
    return (
        F.when(in_log_twice, F.array(F.lit(RETRY_WITHOUT_IDEMPOTENCE), F.lit(RESEND)))
        .when(name == BreakClass.OUTPUT_DUPLICATE.value, F.array(F.lit(PROCESS_BEFORE_COMMIT), F.lit(ZOMBIE)))
        .when(
            (name == BreakClass.LOST.value) & (F.col("locus") == "consumer"),
            F.array(F.lit(COMMIT_BEFORE_PROCESS), F.lit("swallowed poison record")),
        )
        .otherwise(F.array().cast("array<string>"))
    )


def lined_up(messages: DataFrame, breaks: DataFrame) -> DataFrame:
    """Return, for partitions with breaks, each message's rank by position and who processed its neighbours.

    Columns: `key`, `rank`, `previous_offset`, `next_offset`, `reader_before`, `reader_after`.
    """
    places = breaks.select(*[F.col(name).alias(f"broken_{name}") for name in PLACE]).distinct()
    placed = messages.filter(F.col("first_offset").isNotNull()).join(
        F.broadcast(places), same(PLACE, "broken_"), how="left_semi"
    )
    upwards = Window.partitionBy(*PLACE).orderBy("first_offset", "key")
    downwards = Window.partitionBy(*PLACE).orderBy(F.col("first_offset").desc(), F.col("key").desc())
    reader = F.when(F.col("effect_rows") > 0, F.struct("first_effect.consumer_id", "first_effect.generation"))
    return placed.withColumn("reader", reader).select(
        "key",
        F.row_number().over(upwards).alias("rank"),
        F.lag("first_offset").over(upwards).alias("previous_offset"),
        F.lead("first_offset").over(upwards).alias("next_offset"),
        F.last("reader", ignorenulls=True)
        .over(upwards.rowsBetween(Window.unboundedPreceding, -1))
        .alias("reader_before"),
        F.last("reader", ignorenulls=True)
        .over(downwards.rowsBetween(Window.unboundedPreceding, -1))
        .alias("reader_after"),
    )


def with_runs(breaks: DataFrame, lined: DataFrame) -> DataFrame:
    """Return breaks with `run`: a number shared by touching breaks of one class, locus and covering commit."""
    ranked = breaks.drop("run").join(
        lined.withColumnRenamed("key", "line_key"), F.col("key") == F.col("line_key"), how="left"
    )
    alike = [*PLACE, "class", "locus", "own_cause", "flags", "commit"]
    among = Window.partitionBy(*alike).orderBy("rank")
    commit = F.when(F.col("class") == BreakClass.LOST.value, F.col("cover.committed_offset"))
    return (
        ranked.withColumn("commit", commit)
        .withColumn("run", F.col("rank") - F.row_number().over(among))
        .drop("line_key")
    )


def with_causes(breaks: DataFrame, commits: DataFrame | None) -> DataFrame:
    """Return breaks with `cause`: the one that the evidence of the message or of its run proves, else `unknown`."""
    run = Window.partitionBy(*PLACE, "class", "locus", "own_cause", "flags", "commit", "run")
    in_order = run.orderBy("rank").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ends = breaks.withColumns(
        {
            "run_first": F.min("offset").over(run),
            "run_last": F.max("offset").over(run),
            "run_previous": F.first("previous_offset").over(in_order),
            "run_next": F.last("next_offset").over(in_order),
            "run_before": F.first("reader_before").over(in_order),
            "run_after": F.last("reader_after").over(in_order),
            "restarted_at": F.min("last_effect_at").over(run),
        }
    )
    known = _with_restart_position(ends, commits)
    ends_at_commit = (F.col("commit") > F.col("run_last")) & (
        F.col("run_next").isNull() | (F.col("commit") <= F.col("run_next"))
    )
    reader_changed = (
        F.col("run_before").isNotNull()
        & F.col("run_after").isNotNull()
        & (F.col("run_before") != F.col("run_after"))
    )
    is_commit_first = (
        (F.col("class") == "LOST") & (F.col("locus") == "consumer") & ends_at_commit & reader_changed
    )
    starts_at_commit = (F.col("restart_offset") <= F.col("run_first")) & (
        F.col("run_previous").isNull() | (F.col("restart_offset") > F.col("run_previous"))
    )
    is_process_first = (
        (F.col("class") == "OUTPUT_DUPLICATE")
        & ~F.array_contains("flags", "inherited")
        & (F.col("reader_count") >= 2)
        & starts_at_commit
    )
    cause = F.coalesce(
        F.col("own_cause"),
        F.when(F.coalesce(is_commit_first, F.lit(False)), COMMIT_BEFORE_PROCESS),
        F.when(F.coalesce(is_process_first, F.lit(False)), PROCESS_BEFORE_COMMIT),
        F.lit(UNKNOWN_CAUSE),
    )
    admissible = F.when(F.col("cause") == UNKNOWN_CAUSE, F.col("admissible")).otherwise(F.array("cause"))
    return known.withColumn("cause", cause).withColumn("admissible", admissible)


def _with_restart_position(breaks: DataFrame, commits: DataFrame | None) -> DataFrame:
    """Return breaks with `restart_offset`: where the commits stood when the run's messages had their last effect."""
    if commits is None:
        return breaks.withColumn("restart_offset", F.lit(None).cast("bigint"))
    names = breaks.columns
    marks = commits.filter(F.col("committed_at").isNotNull()).select(
        *PLACE,
        F.col("committed_at").alias("restarted_at"),
        F.lit(0).alias("turn"),
        F.col("committed_offset").alias("stood"),
    )
    points = breaks.withColumns({"turn": F.lit(1), "stood": F.lit(None).cast("bigint")})
    by_time = (
        Window.partitionBy(*PLACE).orderBy("restarted_at", "turn").rowsBetween(Window.unboundedPreceding, 0)
    )
    together = points.unionByName(marks, allowMissingColumns=True).withColumn(
        "restart_offset", F.last("stood", ignorenulls=True).over(by_time)
    )
    return together.filter(F.col("turn") == 1).select(*names, "restart_offset")


def all_breaks(scope: Scope, of_messages: DataFrame, standing: list[DataFrame]) -> DataFrame:
    """Return every break with `break_id` and `incident_id`; breaks of one cause, partition and run share the latter."""
    columns = [
        "key", "class", "kind", "subject", "locus", "topic", "partition", "offset", "positions", "flags",
        "message_id", "producer_id", "cause", "admissible", "run", "commit_rows",
    ]  # fmt: skip
    together = of_messages.withColumn("commit_rows", F.lit(None).cast(COMMIT_ROWS)).select(*columns)
    for rows in standing:
        together = together.unionByName(
            rows.withColumns({"cause": F.lit(UNKNOWN_CAUSE), "admissible": F.array().cast("array<string>")}),
            allowMissingColumns=True,
        )
    judged = F.struct(F.lit(scope.contract.pipeline), F.lit(scope.contract.group))
    run = F.coalesce(F.col("run").cast("string"), F.when(F.col("kind") != "message", F.col("subject")))
    incident = F.struct(
        judged, "class", "locus", "cause", "topic", "partition", run, F.concat_ws(",", "flags")
    )
    start = F.min("offset").over(
        Window.partitionBy("class", "locus", "cause", "topic", "partition", run, "flags")
    )
    return (
        together.withColumn("incident_start", start)
        .withColumn(
            "break_id",
            _digest(F.struct(judged, "kind", F.when(F.col("kind") != "message", F.col("class")), "subject")),
        )
        .withColumn("incident_id", _digest(F.struct(incident, "incident_start")))
        .withColumn("rule", F.lower("class"))
        .drop("incident_start", "run", "subject")
    )


def _digest(value: Column) -> Column:
    """Return 32 hex digits that name the value; JSON with field names keeps ('a', 'bc') and ('ab', 'c') apart."""
    return F.substring(F.sha2(F.to_json(value), 256), 1, 32)
