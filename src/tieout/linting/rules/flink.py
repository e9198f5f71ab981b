"""Flink: checkpoints, and the settings of its Kafka sink and source."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule, is_any, is_missing, reads_aborted
from tieout.linting.rules.broker import longest_transaction
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Severity

_FLINK: Final = "Apache Flink documentation, Apache Kafka Connector"
_CHECKPOINTS: Final = "Apache Flink documentation, Configuration, Checkpointing"
_INTERVAL: Final = "execution.checkpointing.interval"
_NO_INTERVAL: Final = (
    "pt0s",
    *(f"0{unit}" for unit in ("", "ms", " ms", "s", " s", "sec", " sec", "min", " min", "m", "h")),
)
"""Intervals of zero: Flink makes no checkpoints then, or does not start, depending on its version."""
_GUARANTEE: Final = "sink.delivery-guarantee"
_TIMEOUT: Final = "properties.transaction.timeout.ms"
_RETENTION: Final = "execution.checkpointing.externalized-checkpoint-retention"
_BROKERS_MOST: Final = 900_000


def _has_no_checkpoints(pipeline: Pipeline) -> Truth:
    return either(
        is_missing("flink", _INTERVAL)(pipeline), is_any("flink", _INTERVAL, *_NO_INTERVAL)(pipeline)
    )


def _is_exactly_once(pipeline: Pipeline) -> Truth:
    flink = pipeline["flink"]
    return flink.is_declared and flink.is_any(_GUARANTEE, "exactly-once", "exactly_once")


def _may_forget_buffer(pipeline: Pipeline) -> Truth:
    flink = pipeline["flink"]
    is_elsewhere = not flink.has(_GUARANTEE) and flink.is_any("commits", "with the output") is True
    return both(is_any("flink", _GUARANTEE, "none")(pipeline), not is_elsewhere)


def _writes_twice(pipeline: Pipeline) -> Truth:
    flink = pipeline["flink"]
    if not flink.is_declared or survives_rereading(pipeline, "flink"):
        return False
    return negated(flink.is_any(_GUARANTEE, "exactly-once", "exactly_once"))


def _outlasts_broker(pipeline: Pipeline) -> Truth:
    longest = longest_transaction(pipeline)
    too_long = None if longest is None else negated(pipeline["flink"].is_below(_TIMEOUT, longest + 1))
    return both(_is_exactly_once(pipeline), too_long)


def _expires_soon(pipeline: Pipeline) -> Truth:
    return both(_is_exactly_once(pipeline), pipeline["flink"].is_below(_TIMEOUT, _BROKERS_MOST))


RULES: Final = (
    Rule(
        name="flink_checkpoints",
        section="flink",
        setting=_INTERVAL,
        fires="not set, or 0: there are no checkpoints",
        holds=_has_no_checkpoints,
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=None,
        failure=(
            "an at-least-once sink never waits for its acknowledgements, an exactly-once one never commits, and after "
            "a failure the job begins where the source's start mode says"
        ),
        advice="execution.checkpointing.interval, shorter than any consumer can wait",
        severity=Severity.CRITICAL,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_sink_none",
        section="flink",
        setting=_GUARANTEE,
        fires=(
            "`none`, the default of the DataStream API; not set, it is left open, unless `commits` is "
            "`with the output`"
        ),
        holds=_may_forget_buffer,
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=None,
        failure=(
            "records in the producer's buffer are gone when the job fails, although the checkpoint "
            "counts them as written"
        ),
        advice=f"{_GUARANTEE}: at-least-once or exactly-once",
        severity=Severity.CRITICAL,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_sink_twice",
        section="flink",
        setting=_GUARANTEE,
        fires="anything but `exactly-once`, with an output that is not said to be keyed",
        holds=_writes_twice,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="after a failure the job goes on from its last checkpoint and writes again what it wrote since",
        advice=(
            f"{_GUARANTEE}: exactly-once with sink.transactional-id-prefix, and isolation.level: "
            "read_committed wherever the results are read"
        ),
        severity=Severity.CRITICAL,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_checkpoint_mode",
        section="flink",
        setting="execution.checkpointing.mode",
        fires="`AT_LEAST_ONCE`",
        holds=is_any("flink", "execution.checkpointing.mode", "at_least_once"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="after a failure records between two barriers are in the restored state already, and come again",
        advice="execution.checkpointing.mode: EXACTLY_ONCE",
        severity=Severity.CRITICAL,
        source=_CHECKPOINTS,
    ),
    Rule(
        name="flink_prefix",
        section="flink",
        setting="sink.transactional-id-prefix",
        fires="not set beside `exactly-once`",
        holds=lambda pipeline: both(
            _is_exactly_once(pipeline), not pipeline["flink"].has("sink.transactional-id-prefix")
        ),
        classes=(),
        cause=None,
        failure=(
            "the sink is not built without it; one shared by two jobs, or changed at a restart, fences "
            "the wrong producer or leaves transactions open"
        ),
        advice="sink.transactional-id-prefix: one text for this job alone, the same after every restart",
        severity=Severity.CRITICAL,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_transaction_refused",
        section="flink",
        setting=_TIMEOUT,
        fires="above the broker's `transaction.max.timeout.ms` beside `exactly-once`",
        holds=_outlasts_broker,
        classes=(),
        cause=None,
        failure=(
            "the broker refuses the sink's transactions, and the job does not start: Flink's default is "
            "an hour, the broker allows 15 minutes by default"
        ),
        advice=(
            "raise the broker's transaction.max.timeout.ms above the longest outage; lowering Flink's "
            "value trades the error for loss"
        ),
        severity=Severity.CRITICAL,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_transaction_expires",
        section="flink",
        setting=_TIMEOUT,
        fires="below `900000`, 15 minutes, beside `exactly-once`",
        holds=_expires_soon,
        classes=(BreakClass.LOST, BreakClass.TORN_TRANSACTION),
        cause=Cause.NOT_COMMITTED,
        failure=(
            "the job is down, or a checkpoint takes, for longer than that: the broker aborts what the "
            "checkpoint counts as written, and the job goes on without failing"
        ),
        advice="a timeout longer than the longest checkpoint and the longest outage together",
        severity=Severity.WARNING,
        source=f"{_FLINK}, Fault Tolerance",
    ),
    Rule(
        name="flink_retention",
        section="flink",
        setting=_RETENTION,
        fires="`NO_EXTERNALIZED_CHECKPOINTS` or `DELETE_ON_CANCELLATION`",
        holds=is_any("flink", _RETENTION, "no_externalized_checkpoints", "delete_on_cancellation"),
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.OFFSET_RESET,
        failure=(
            "the job is cancelled and started again: without a checkpoint to start from it begins where "
            "the source's start mode says"
        ),
        advice=f"{_RETENTION}: RETAIN_ON_CANCELLATION, and start from the last checkpoint",
        severity=Severity.WARNING,
        source=_CHECKPOINTS,
    ),
    Rule(
        name="flink_isolation",
        section="flink",
        setting="properties.isolation.level",
        fires="`read_uncommitted`, and the topic is written in transactions",
        holds=reads_aborted("flink", "properties.isolation.level"),
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted, and the source reads its records all the same",
        advice="properties.isolation.level: read_committed",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Consumer Configs: isolation.level",
    ),
)
