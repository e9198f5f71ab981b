"""Kafka's brokers and topics: replication, elections, retention."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, negated
from tieout.linting.rule import Rule, is_any, is_below
from tieout.model import BreakClass, Cause, Severity

_BROKER: Final = "Apache Kafka documentation, Broker Configs"
_MILLISECOND: Final = timedelta(milliseconds=1)


def _is_lone_leader(pipeline: Pipeline) -> Truth:
    broker = pipeline["broker"]
    return broker.is_declared and broker.is_below("min.insync.replicas", 2)


def _is_lone_copy(pipeline: Pipeline) -> Truth:
    broker = pipeline["broker"]
    return broker.is_declared and broker.is_below("replication.factor", 2)


def _has_two_copies(pipeline: Pipeline) -> Truth:
    broker = pipeline["broker"]
    return broker.is_declared and broker.is_any("replication.factor", "2")


def _is_unsaid(pipeline: Pipeline) -> Truth:
    producer = pipeline["producer"]
    return producer.is_declared and not pipeline["broker"].is_declared


def _retains_less_than_look_back(pipeline: Pipeline) -> Truth:
    broker = pipeline["broker"]
    look_back = pipeline.contract.look_back / _MILLISECOND
    is_endless = broker.is_below("retention.ms", 0)
    return broker.has("retention.ms") and both(
        broker.is_below("retention.ms", look_back), negated(is_endless)
    )


def longest_transaction(pipeline: Pipeline) -> float | None:
    """Return the longest transaction timeout in ms that the broker allows; None if it is not known."""
    values = [value for value in pipeline["broker"].values("transaction.max.timeout.ms") if value]
    return min(float(value) for value in values) if values and all(map(str.isdigit, values)) else None


RULES: Final = (
    Rule(
        name="broker_unsaid",
        section="broker",
        setting="min.insync.replicas",
        fires="a producer is declared and the broker is not",
        holds=_is_unsaid,
        classes=(BreakClass.LOST,),
        cause=None,
        failure=(
            "what an acknowledgement is worth depends on replication.factor, min.insync.replicas and "
            "unclean.leader.election.enable, and nothing is said of them"
        ),
        advice=(
            "declare the topic's: broker: {replication.factor: 3, min.insync.replicas: 2, "
            "unclean.leader.election.enable: false}"
        ),
        severity=Severity.INFO,
        source=f"{_BROKER}: min.insync.replicas",
    ),
    Rule(
        name="broker_in_sync",
        section="broker",
        setting="min.insync.replicas",
        fires="below `2`",
        holds=_is_lone_leader,
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION),
        cause=Cause.UNCLEAN_ELECTION,
        failure="the followers fall behind, acks=all waits for the leader alone, and the leader fails",
        advice="min.insync.replicas: 2 with replication.factor: 3",
        severity=Severity.WARNING,
        source=f"{_BROKER}: min.insync.replicas",
    ),
    Rule(
        name="broker_unclean_election",
        section="broker",
        setting="unclean.leader.election.enable",
        fires="`true`",
        holds=is_any("broker", "unclean.leader.election.enable", "true"),
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION, BreakClass.LOG_IDENTITY_CONFLICT),
        cause=Cause.UNCLEAN_ELECTION,
        failure=(
            "all replicas in sync are gone, one that lags becomes leader, and the others cut their logs "
            "to its length"
        ),
        advice="unclean.leader.election.enable: false, on the topic as well: its own setting hides the broker's",
        severity=Severity.CRITICAL,
        source=f"{_BROKER}: unclean.leader.election.enable",
    ),
    Rule(
        name="broker_one_copy",
        section="broker",
        setting="replication.factor",
        fires="below `2`",
        holds=_is_lone_copy,
        classes=(BreakClass.LOST,),
        cause=None,
        failure="one broker's disk is gone, and the records with it",
        advice="replication.factor: 3",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Design, Replication",
    ),
    Rule(
        name="broker_two_copies",
        section="broker",
        setting="replication.factor",
        fires="`2`",
        holds=_has_two_copies,
        classes=(BreakClass.LOST,),
        cause=None,
        failure="while one broker is down there is one copy, or with min.insync.replicas: 2 nothing can be written",
        advice="replication.factor: 3",
        severity=Severity.WARNING,
        source="Apache Kafka documentation, Design, Replication",
    ),
    Rule(
        name="broker_offsets_copies",
        section="broker",
        setting="offsets.topic.replication.factor",
        fires="below `3`",
        holds=is_below("broker", "offsets.topic.replication.factor", 3),
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.OFFSET_RESET,
        failure="the broker with the group's positions is gone; the group begins where auto.offset.reset says",
        advice="offsets.topic.replication.factor: 3",
        severity=Severity.WARNING,
        source=f"{_BROKER}: offsets.topic.replication.factor",
    ),
    Rule(
        name="broker_transactions_copies",
        section="broker",
        setting="transaction.state.log.replication.factor",
        fires="below `3`, and the topic is written in transactions",
        holds=lambda pipeline: both(
            pipeline.has_transactions is True,
            pipeline["broker"].is_below("transaction.state.log.replication.factor", 3),
        ),
        classes=(BreakClass.LOST, BreakClass.TORN_TRANSACTION),
        cause=None,
        failure="the broker that knows which transactions were committed is gone, in the middle of one",
        advice="transaction.state.log.replication.factor: 3",
        severity=Severity.WARNING,
        source=f"{_BROKER}: transaction.state.log.replication.factor",
    ),
    Rule(
        name="broker_offsets_retention",
        section="broker",
        setting="offsets.retention.minutes",
        fires="below `10080`, a week",
        holds=is_below("broker", "offsets.retention.minutes", 10_080),
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.OFFSETS_EXPIRED,
        failure=(
            "a group without members for longer than that has no position any more, and begins where "
            "auto.offset.reset says"
        ),
        advice="offsets.retention.minutes: 10080 or more, longer than any outage",
        severity=Severity.WARNING,
        source=f"{_BROKER}: offsets.retention.minutes; Upgrading, KIP-186",
    ),
    Rule(
        name="broker_retention",
        section="broker",
        setting="retention.ms",
        fires="shorter than the contract's `look_back`; also as `log.retention.ms`, `.minutes`, `.hours`",
        holds=_retains_less_than_look_back,
        classes=(BreakClass.LOST,),
        cause=Cause.RETENTION_OVERRUN,
        failure="the consumer is down or behind for longer than the topic keeps its records",
        advice="retention of at least look_back, or a look_back that says how late an effect may really come",
        severity=Severity.WARNING,
        source="Apache Kafka documentation, Topic Configs: retention.ms",
    ),
)
