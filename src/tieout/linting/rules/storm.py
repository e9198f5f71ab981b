"""Storm: the Kafka spout's guarantee, acknowledgement, Trident's state."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both
from tieout.linting.rule import Rule, is_any
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Severity

_STORM: Final = "Apache Storm documentation"


def _replays_tuples(pipeline: Pipeline) -> Truth:
    storm = pipeline["storm"]
    if survives_rereading(pipeline, "storm") or storm.has("trident.state"):
        return False
    return storm.is_declared and storm.is_any("processing.guarantee", "at_least_once", "no_guarantee")


def _skips_added_records(pipeline: Pipeline) -> Truth:
    storm = pipeline["storm"]
    return both(storm.is_any("trident.state", "transactional"), storm.is_any("trident.spout", "opaque"))


RULES: Final = (
    Rule(
        name="storm_at_most_once",
        section="storm",
        setting="processing.guarantee",
        fires="`AT_MOST_ONCE` or `NO_GUARANTEE`",
        holds=is_any("storm", "processing.guarantee", "at_most_once", "no_guarantee"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "offsets are committed before a tuple is processed, or whether or not it is: the worker "
            "dies, and nobody reads it again"
        ),
        advice="processing.guarantee: AT_LEAST_ONCE",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Apache Kafka Integration (storm-kafka-client), Processing Guarantees",
    ),
    Rule(
        name="storm_replays",
        section="storm",
        setting="processing.guarantee",
        fires="`AT_LEAST_ONCE` or `NO_GUARANTEE`, with an output that a second writing changes",
        holds=_replays_tuples,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "a tuple fails, takes longer than topology.message.timeout.secs (30 by default), or its "
            "worker dies: the spout emits it again"
        ),
        advice="a keyed output, or Trident with transactional or opaque state",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Guaranteeing Message Processing",
    ),
    Rule(
        name="storm_ackers",
        section="storm",
        setting="topology.acker.executors",
        fires="`0`",
        holds=is_any("storm", "topology.acker.executors", "0"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure="tuples count as processed when they are emitted",
        advice="topology.acker.executors of one or more, or not set",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Guaranteeing Message Processing",
    ),
    Rule(
        name="storm_auto_commit",
        section="storm",
        setting="enable.auto.commit",
        fires="set at all",
        holds=lambda pipeline: pipeline["storm"].has("enable.auto.commit"),
        classes=(),
        cause=None,
        failure="the spout refuses it: it commits by its processing guarantee",
        advice="leave it out, and set the processing guarantee",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Apache Kafka Integration (storm-kafka-client)",
    ),
    Rule(
        name="storm_trident_state",
        section="storm",
        setting="trident.state",
        fires="`non-transactional`",
        holds=is_any("storm", "trident.state", "non-transactional"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="a batch fails after its update and is replayed: the state counts it twice",
        advice="trident.state: opaque, or transactional with a transactional spout",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Trident State",
    ),
    Rule(
        name="storm_trident_spout",
        section="storm",
        setting="trident.spout",
        fires="`opaque`, with `trident.state: transactional`",
        holds=_skips_added_records,
        classes=(BreakClass.LOST,),
        cause=None,
        failure=(
            "a batch fails after its update and comes again with more messages: the state knows the batch, and "
            "leaves them out"
        ),
        advice="trident.state: opaque, or a transactional spout",
        severity=Severity.CRITICAL,
        source=f"{_STORM}, Trident State: Opaque transactional spouts",
    ),
)
