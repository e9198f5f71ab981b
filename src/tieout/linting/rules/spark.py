"""Spark: Structured Streaming's checkpoint, source and sinks, and the older DStreams."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, either, negated
from tieout.linting.rule import Condition, Rule, is_any, is_missing, reads_aborted
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Severity

_SPARK: Final = "Apache Spark documentation, Structured Streaming Programming Guide"
_SPARK_KAFKA: Final = "Apache Spark documentation, Structured Streaming + Kafka Integration Guide"
_DIRECT: Final = "Apache Spark documentation, Spark Streaming + Kafka Integration Guide"
_REFUSED: Final = ("kafka.enable.auto.commit", "kafka.auto.offset.reset")


def _of_streams(condition: Condition) -> Condition:
    """Return the condition for DStreams, which pass Kafka's own names to Kafka's own consumer."""
    is_older = is_any("spark", "api", "dstreams")
    return lambda pipeline: both(is_older(pipeline), condition(pipeline))


def _of_query(condition: Condition) -> Condition:
    """Return the condition for a query of Structured Streaming: the older API has none of its options."""
    is_older = is_any("spark", "api", "dstreams")
    return lambda pipeline: both(negated(is_older(pipeline)), condition(pipeline))


def _has_repeating_sink(pipeline: Pipeline) -> Truth:
    spark = pipeline["spark"]
    if not spark.is_declared or survives_rereading(pipeline, "spark"):
        return False
    return spark.is_any("sink", "kafka", "foreachbatch", "foreach")


def _repeats_batches(pipeline: Pipeline) -> Truth:
    """Return whether recomputing a batch of DStreams duplicates its output."""
    is_lost_instead = pipeline["spark"].is_any("commits", "before processing")
    return both(not survives_rereading(pipeline, "spark"), negated(is_lost_instead))


def _commits_by_itself(pipeline: Pipeline) -> Truth:
    """Return whether the consumer's auto-commit moves the position that the stream starts from."""
    spark = pipeline["spark"]
    keeps_its_own = spark.is_any("commits", "with the output")
    return both(spark.is_any("enable.auto.commit", "true"), negated(keeps_its_own))


def _sets_the_refused(pipeline: Pipeline) -> Truth:
    return either(*(pipeline["spark"].has(name) for name in _REFUSED))


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
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted, and the query reads its records all the same",
        advice="kafka.isolation.level: read_committed",
        severity=Severity.CRITICAL,
        source=f"{_SPARK_KAFKA}, Kafka Specific Configurations",
    ),
    Rule(
        name="spark_refused",
        section="spark",
        setting=_REFUSED[0],
        fires=f"set at all, as well as `{_REFUSED[1]}`, of a query",
        holds=_of_query(_sets_the_refused),
        classes=(),
        cause=None,
        failure="the query does not start: its checkpoint holds the positions, not the consumer",
        advice="leave it out; startingOffsets says where a new query begins",
        severity=Severity.CRITICAL,
        source=f"{_SPARK_KAFKA}, Kafka Specific Configurations",
    ),
    Rule(
        name="spark_commits_before",
        section="spark",
        setting="commits",
        fires="`before processing`",
        holds=is_any("spark", "commits", "before processing"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure="the driver dies after a batch's offsets were stored and before its output: nobody reads it again",
        advice="store the offsets in the transaction of the output (commits: with the output), or after it",
        severity=Severity.CRITICAL,
        source=f"{_DIRECT}, Storing Offsets",
    ),
    Rule(
        name="spark_direct_output",
        section="spark",
        setting="commits",
        fires="not `with the output`, of `api: dstreams` with an output that is not said to be keyed",
        holds=_of_streams(_repeats_batches),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="the driver dies after a batch's output and before its offsets were stored: the batch is put out again",
        advice=(
            "store the offsets in the transaction of the output, where the stored end is the batch's beginning "
            "(commits: with the output); or key the output"
        ),
        severity=Severity.CRITICAL,
        source=f"{_DIRECT}, Storing Offsets",
    ),
    Rule(
        name="spark_direct_auto_commit",
        section="spark",
        setting="enable.auto.commit",
        fires="`true`, with `api: dstreams` and `commits` not `with the output`",
        holds=_of_streams(_commits_by_itself),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure="the driver's consumer commits what it polled, whether its batch was put out or not; the driver dies",
        advice="enable.auto.commit: false, and store offsets after the output or with it",
        severity=Severity.CRITICAL,
        source=f"{_DIRECT}, Storing Offsets, Kafka itself",
    ),
    Rule(
        name="spark_direct_reset",
        section="spark",
        setting="auto.offset.reset",
        fires="`latest`, with `api: dstreams`",
        holds=_of_streams(is_any("spark", "auto.offset.reset", "latest")),
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure="without a stored position, or with one that retention overran, the stream begins at the end",
        advice="auto.offset.reset: none, or earliest",
        severity=Severity.WARNING,
        source="Apache Kafka documentation, Consumer Configs: auto.offset.reset",
    ),
    Rule(
        name="spark_direct_isolation",
        section="spark",
        setting="isolation.level",
        fires="`read_uncommitted`, with `api: dstreams`, and the topic is written in transactions",
        holds=_of_streams(reads_aborted("spark", "isolation.level")),
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted, and the stream reads its records all the same",
        advice="isolation.level: read_committed",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Consumer Configs: isolation.level",
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
