"""Kafka Streams: its processing guarantee, and handlers that continue after an error."""

from __future__ import annotations

from itertools import product
from typing import Final

from tieout.linting.pipeline import EXACTLY_ONCE, Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule, is_any, is_below
from tieout.linting.rules.consumer import begins_at_the_end
from tieout.model import BreakClass, Cause, Severity

_STREAMS: Final = "Apache Kafka documentation, Kafka Streams, Configuring a Streams Application"
_ACKS: Final = "producer.acks"
_RESET: Final = "main.consumer.auto.offset.reset"
_SERDE_HANDLERS: Final = ("deserialization.exception.handler", "default.deserialization.exception.handler")
_PRODUCTION_HANDLERS: Final = ("production.exception.handler", "default.production.exception.handler")


def _continues(pipeline: Pipeline, *handlers: str) -> Truth:
    classes = [value for name in handlers for value in pipeline["streams"].values(name)]
    return either(*(None if value is None else "continue" in value for value in classes))


def _is_without_guarantee(pipeline: Pipeline) -> Truth:
    streams = pipeline["streams"]
    return streams.is_declared and negated(streams.is_any("processing.guarantee", *EXACTLY_ONCE))


def _may_lose_acked(pipeline: Pipeline) -> Truth:
    """Return whether the producers wait for one replica only; with exactly-once they refuse that."""
    streams = pipeline["streams"]
    if not streams.has(_ACKS):
        return False
    return both(negated(streams.is_any(_ACKS, "all", "-1")), _is_without_guarantee(pipeline))


def _begins_at_the_end(pipeline: Pipeline) -> Truth:
    """Return whether it is set to start at or near the end; the default of Streams is the beginning."""
    streams = pipeline["streams"]
    return streams.has(_RESET) and begins_at_the_end(streams, _RESET)


def _commits_too_late(pipeline: Pipeline) -> Truth:
    """Return whether transactions would time out before they are committed; Streams checks this when it starts."""
    streams = pipeline["streams"]
    if not streams.has("commit.interval.ms"):
        return False
    pairs = product(streams.values("commit.interval.ms"), streams.values("producer.transaction.timeout.ms"))
    is_late = {_is_above(interval, timeout) for interval, timeout in pairs}
    return both(
        streams.is_any("processing.guarantee", *EXACTLY_ONCE), is_late.pop() if len(is_late) == 1 else None
    )


def _is_above(interval: str | None, timeout: str | None) -> Truth:
    try:
        return int(interval or "") > int(timeout or "")
    except ValueError:
        return None


def _sets_removed_guarantee(pipeline: Pipeline) -> Truth:
    streams = pipeline["streams"]
    return both(
        streams.is_any("processing.guarantee", "exactly_once", "exactly_once_beta"), streams.runs_since("4.0")
    )


RULES: Final = (
    Rule(
        name="streams_guarantee",
        section="streams",
        setting="processing.guarantee",
        fires="`at_least_once`",
        holds=_is_without_guarantee,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "the application dies after its results were written and before it has committed: they are "
            "written again"
        ),
        advice=(
            "processing.guarantee: exactly_once_v2, and isolation.level: read_committed wherever its "
            "results are read"
        ),
        severity=Severity.CRITICAL,
        source=f"{_STREAMS}: processing.guarantee",
    ),
    Rule(
        name="streams_acks",
        section="streams",
        setting=_ACKS,
        fires="set to anything but `all` and `-1`, also as `acks`, without exactly-once",
        holds=_may_lose_acked,
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION),
        cause=Cause.UNCLEAN_ELECTION,
        failure=(
            "the leader acknowledges what no follower has yet; if it fails then, the input's offset is committed and "
            "the next leader does not have the result"
        ),
        advice="acks: all, with min.insync.replicas: 2 or more",
        severity=Severity.CRITICAL,
        source=f"{_STREAMS}: Resiliency, acks",
    ),
    Rule(
        name="streams_reset",
        section="streams",
        setting=_RESET,
        fires="`latest` or `by_duration`, also as `consumer.auto.offset.reset` and `auto.offset.reset`",
        holds=_begins_at_the_end,
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure=(
            "without a position (a new application, an expired group, one beyond a truncated log) the application "
            "begins at the end, and what lies before is processed by nobody"
        ),
        advice="leave it out: Streams' own is earliest",
        severity=Severity.WARNING,
        source=f"{_STREAMS}: Default Values",
    ),
    Rule(
        name="streams_guarantee_removed",
        section="streams",
        setting="processing.guarantee",
        fires="`exactly_once` or `exactly_once_beta` from 4.0 on",
        holds=_sets_removed_guarantee,
        classes=(),
        cause=None,
        failure="the application does not start: these values were removed in 4.0",
        advice="processing.guarantee: exactly_once_v2",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Kafka Streams, Upgrade Guide, 4.0",
    ),
    Rule(
        name="streams_commit_interval",
        section="streams",
        setting="commit.interval.ms",
        fires="above `producer.transaction.timeout.ms`, 10000 unless it is set, with exactly-once",
        holds=_commits_too_late,
        classes=(),
        cause=None,
        failure="the application does not start: its transactions would time out before it commits them",
        advice="commit.interval.ms of at most producer.transaction.timeout.ms; exactly-once sets it to 100",
        severity=Severity.CRITICAL,
        source=(
            "Apache Kafka, streams/src/main/java/org/apache/kafka/streams/StreamsConfig.java "
            "(verifyEOSTransactionTimeoutCompatibility)"
        ),
    ),
    Rule(
        name="streams_deserialization",
        section="streams",
        setting=_SERDE_HANDLERS[0],
        fires=f"a handler that continues; also as `{_SERDE_HANDLERS[1]}`, its name before 4.0",
        holds=lambda pipeline: _continues(pipeline, *_SERDE_HANDLERS),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.POISON,
        failure="a record that does not deserialize is logged and left out, and its offset committed",
        advice="LogAndFailExceptionHandler, or one that writes it to a queue that the ledger dead_letters shows",
        severity=Severity.CRITICAL,
        source=f"{_STREAMS}: deserialization.exception.handler",
    ),
    Rule(
        name="streams_production",
        section="streams",
        setting=_PRODUCTION_HANDLERS[0],
        fires=(
            f"a handler whose name says that it continues; also as `{_PRODUCTION_HANDLERS[1]}`, its name "
            "before 4.0"
        ),
        holds=lambda pipeline: _continues(pipeline, *_PRODUCTION_HANDLERS),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.POISON,
        failure="a result that the broker refuses is left out, and the input's offset committed",
        advice="DefaultProductionExceptionHandler, which fails",
        severity=Severity.CRITICAL,
        source=f"{_STREAMS}: production.exception.handler",
    ),
    Rule(
        name="streams_processing",
        section="streams",
        setting="processing.exception.handler",
        fires="a handler whose name says that it continues",
        holds=lambda pipeline: _continues(pipeline, "processing.exception.handler"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.POISON,
        failure="a record whose processing fails is logged and left out, and its offset committed",
        advice="LogAndFailProcessingExceptionHandler, the default",
        severity=Severity.CRITICAL,
        source=f"{_STREAMS}: processing.exception.handler",
    ),
    Rule(
        name="streams_copies",
        section="streams",
        setting="replication.factor",
        fires="below `3`, but not `-1`, which takes the broker's",
        holds=lambda pipeline: both(
            is_below("streams", "replication.factor", 3)(pipeline),
            negated(is_any("streams", "replication.factor", "-1")(pipeline)),
        ),
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=None,
        failure=(
            "a broker with the only copy of a changelog or repartition topic is gone, and state or "
            "records with it"
        ),
        advice="replication.factor: 3",
        severity=Severity.WARNING,
        source=f"{_STREAMS}: replication.factor",
    ),
)
