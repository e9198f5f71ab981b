"""Kafka Streams: its processing guarantee, and handlers that go on after an error."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import EXACTLY_ONCE, Pipeline, Truth, both, either, never
from tieout.linting.rule import Rule, is_any, is_below
from tieout.model import BreakClass, Cause, Severity

_STREAMS: Final = "Apache Kafka documentation, Kafka Streams, Configuring a Streams Application"
_SERDE_HANDLERS: Final = ("deserialization.exception.handler", "default.deserialization.exception.handler")
_PRODUCTION_HANDLERS: Final = ("production.exception.handler", "default.production.exception.handler")


def _continues(pipeline: Pipeline, *handlers: str) -> Truth:
    classes = [value for name in handlers for value in pipeline["streams"].values(name)]
    return either(*(None if value is None else "continue" in value for value in classes))


def _is_without_guarantee(pipeline: Pipeline) -> Truth:
    streams = pipeline["streams"]
    return streams.is_declared and never(streams.is_any("processing.guarantee", *EXACTLY_ONCE))


def _asks_for_the_removed(pipeline: Pipeline) -> Truth:
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
        name="streams_guarantee_removed",
        section="streams",
        setting="processing.guarantee",
        fires="`exactly_once` or `exactly_once_beta` from 4.0 on",
        holds=_asks_for_the_removed,
        classes=(),
        cause=None,
        failure="the application does not start: these values were removed in 4.0",
        advice="processing.guarantee: exactly_once_v2",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Kafka Streams, Upgrade Guide, 4.0",
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
        name="streams_copies",
        section="streams",
        setting="replication.factor",
        fires="below `3`, but not `-1`, which takes the broker's",
        holds=lambda pipeline: both(
            is_below("streams", "replication.factor", 3)(pipeline),
            never(is_any("streams", "replication.factor", "-1")(pipeline)),
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
