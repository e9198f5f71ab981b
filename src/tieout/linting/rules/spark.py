"""Spark: Structured Streaming's checkpoint, source and sinks, and the older DStreams."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, never
from tieout.linting.rule import Condition, Rule, is_any, is_missing, reads_aborted
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Severity

_SPARK: Final = "Apache Spark documentation, Structured Streaming Programming Guide"
_SPARK_KAFKA: Final = "Apache Spark documentation, Structured Streaming + Kafka Integration Guide"


def _of_query(condition: Condition) -> Condition:
    """Return the condition for a query of Structured Streaming: the older API has none of its options."""
    is_older = is_any("spark", "api", "dstreams")
    return lambda pipeline: both(never(is_older(pipeline)), condition(pipeline))


def _has_repeating_sink(pipeline: Pipeline) -> Truth:
    spark = pipeline["spark"]
    if not spark.is_declared or survives_rereading(pipeline, "spark"):
        return False
    return spark.is_any("sink", "kafka", "foreachbatch", "foreach")


def _stops_at_gaps(pipeline: Pipeline) -> Truth:
    spark = pipeline["spark"]
    is_direct = spark.is_any("api", "dstreams")
    return both(
        is_direct,
        pipeline.has_transactions,
        spark.is_any("spark.streaming.kafka.allowNonConsecutiveOffsets", "false"),
    )


RULES: Final = (
    Rule(
        name="spark_checkpoint",
        section="spark",
        setting="checkpointLocation",
        fires="not set, nor `spark.sql.streaming.checkpointLocation`, of a query",
        holds=_of_query(is_missing("spark", "checkpointLocation")),
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.OFFSET_RESET,
        failure="the query is started again: without its checkpoint it begins where startingOffsets says",
        advice="checkpointLocation on lasting storage, one for each query, never shared or deleted",
        severity=Severity.CRITICAL,
        source=f"{_SPARK}, Recovering from Failures with Checkpointing",
    ),
    Rule(
        name="spark_data_loss",
        section="spark",
        setting="failOnDataLoss",
        fires="`false`",
        holds=is_any("spark", "failOnDataLoss", "false"),
        classes=(BreakClass.LOST,),
        cause=Cause.RETENTION_OVERRUN,
        failure="retention, or a topic made anew, took offsets that the query has not read: it goes on behind them",
        advice="failOnDataLoss: true",
        severity=Severity.CRITICAL,
        source=_SPARK_KAFKA,
    ),
    Rule(
        name="spark_starting_offsets",
        section="spark",
        setting="startingOffsets",
        fires="`latest`",
        holds=_of_query(is_any("spark", "startingOffsets", "latest")),
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure="a query's first start, or one whose checkpoint is gone, begins at the end",
        advice="startingOffsets: earliest, or offsets by partition",
        severity=Severity.WARNING,
        source=_SPARK_KAFKA,
    ),
    Rule(
        name="spark_sink",
        section="spark",
        setting="sink",
        fires="`kafka`, `foreachBatch` or `foreach`, with an output that is not said to be keyed",
        holds=_has_repeating_sink,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "the query dies after a batch was written and before it was committed: the same batch is "
            "written again"
        ),
        advice=(
            "a sink of files, or an output keyed by message, or by the query's id and the batch's, and "
            "say so: spark: {output: keyed by id}"
        ),
        severity=Severity.CRITICAL,
        source=f"{_SPARK}, Output Sinks; {_SPARK_KAFKA}, Writing Data to Kafka",
    ),
    Rule(
        name="spark_isolation",
        section="spark",
        setting="kafka.isolation.level",
        fires="`read_uncommitted`, and the topic is written in transactions",
        holds=_of_query(reads_aborted("spark", "kafka.isolation.level")),
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted, and the query reads its records all the same",
        advice="kafka.isolation.level: read_committed",
        severity=Severity.CRITICAL,
        source=f"{_SPARK_KAFKA}, Kafka Specific Configurations",
    ),
    Rule(
        name="spark_gaps",
        section="spark",
        setting="spark.streaming.kafka.allowNonConsecutiveOffsets",
        fires="`false` with `api: dstreams`, and the topic is written in transactions",
        holds=_stops_at_gaps,
        classes=(),
        cause=None,
        failure="the job takes the offsets of markers for lost records, and stops",
        advice="spark.streaming.kafka.allowNonConsecutiveOffsets: true",
        severity=Severity.CRITICAL,
        source="Apache Spark issue SPARK-24720",
    ),
)
