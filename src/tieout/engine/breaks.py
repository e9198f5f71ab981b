"""Breaks: what the rules found, one row each, with a lasting id and an incident; causes are in `causes.py`.

Docs: docs/reference/taxonomy.md, section 4 (causes, incidents) and section 6 (`break_id`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.causes import admissible, own_cause
from tieout.engine.classes.standing import COMMIT_ROWS
from tieout.engine.classifying import NO_BREAK
from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Cause


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
        own_cause().alias("own_cause"),
        admissible().alias("admissible"),
        "effect_readers",
        "last_effect",
        F.col("first_attempt.at").alias("sent_at"),
        F.col("first_acked.done_at").alias("acked_at"),
        F.lit(None).cast("bigint").alias("run"),
        F.lit(Cause.UNKNOWN.value).alias("cause"),
    )


def lined_up(messages: DataFrame, breaks: DataFrame) -> DataFrame:
    """Return, for partitions with breaks, each message's rank by position and who processed its neighbours.

    Columns: `key`, `rank`, `previous_offset`, `previous_effect_at`, `next_offset`, `reader_before`, `reader_after`.
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
        F.lag("first_effect_at").over(upwards).alias("previous_effect_at"),
        F.lead("first_offset").over(upwards).alias("next_offset"),
        F.last("reader", ignorenulls=True)
        .over(upwards.rowsBetween(Window.unboundedPreceding, -1))
        .alias("reader_before"),
        F.last("reader", ignorenulls=True)
        .over(downwards.rowsBetween(Window.unboundedPreceding, -1))
        .alias("reader_after"),
    )


def with_runs(breaks: DataFrame, lined: DataFrame) -> DataFrame:
    """Return breaks with `run`: the first offset of the touching breaks of one class, locus and covering commit.

    It does not depend on what lies before the run: an incident keeps its id when older evidence is gone.
    """
    ranked = breaks.drop("run").join(
        lined.withColumnRenamed("key", "line_key"), F.col("key") == F.col("line_key"), how="left"
    )
    alike = [*PLACE, "class", "locus", "own_cause", "flags", "commit"]
    among = Window.partitionBy(*alike).orderBy("rank")
    commit = F.when(F.col("class") == BreakClass.LOST.value, F.col("cover.committed_offset"))
    touching = F.min("offset").over(Window.partitionBy(*alike, "distance"))
    return (
        ranked.withColumn("commit", commit)
        .withColumn("distance", F.col("rank") - F.row_number().over(among))
        .withColumn("run", F.when(F.col("distance").isNotNull(), touching))
        .drop("line_key", "distance")
    )


def all_breaks(scope: Scope, of_messages: DataFrame, standing: DataFrame) -> DataFrame:
    """Return every break with `break_id` and `incident_id`; breaks of one cause, partition and run share the latter."""
    columns = [
        "key", "class", "kind", "subject", "locus", "topic", "partition", "offset", "positions", "flags",
        "message_id", "producer_id", "cause", "admissible", "run", "commit_rows", "is_covered",
    ]  # fmt: skip
    own = {"commit_rows": F.lit(None).cast(COMMIT_ROWS), "is_covered": F.lit(True)}
    together = of_messages.withColumns(own).select(*columns)
    together = together.unionByName(standing.drop("clues"), allowMissingColumns=True)
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
