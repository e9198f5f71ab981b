"""Pulsar: deduplication, acknowledgement, and what is kept on disk."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule, is_any, is_below
from tieout.linting.rules.output import redelivers, survives_resending
from tieout.model import BreakClass, Cause, Severity

_PULSAR: Final = "Apache Pulsar documentation"


def _is_deduplicated(pipeline: Pipeline) -> Truth:
    pulsar = pipeline["pulsar"]
    return pulsar.is_declared and pulsar.is_any("brokerDeduplicationEnabled", "true")


def _doubles_sends(pipeline: Pipeline) -> Truth:
    if not pipeline["pulsar"].is_declared or survives_resending(pipeline):
        return False
    return negated(_is_deduplicated(pipeline))


def _is_non_persistent(pipeline: Pipeline) -> Truth:
    topics = pipeline["pulsar"].values("topic")
    return either(*(None if topic is None else topic.startswith("non-persistent://") for topic in topics))


def _expires(pipeline: Pipeline) -> Truth:
    return pipeline["pulsar"].is_declared and negated(
        pipeline["pulsar"].is_below("ttlDurationDefaultInSeconds", 1)
    )


RULES: Final = (
    Rule(
        name="pulsar_deduplication",
        section="pulsar",
        setting="brokerDeduplicationEnabled",
        fires="`false`, and no namespace or topic policy said to have it",
        holds=_doubles_sends,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RETRY_WITHOUT_IDEMPOTENCE,
        failure="a receipt is lost and the client sends the message again: the topic has both",
        advice="brokerDeduplicationEnabled: true, with a producerName and sendTimeoutMs: 0",
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Message deduplication",
    ),
    Rule(
        name="pulsar_producer_name",
        section="pulsar",
        setting="producerName",
        fires="not set beside deduplication",
        holds=lambda pipeline: both(_is_deduplicated(pipeline), not pipeline["pulsar"].has("producerName")),
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure="a producer that is started again gets another name, under which the broker has seen nothing yet",
        advice="producerName: one that stays, and sequence ids that go on after a restart",
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Message deduplication",
    ),
    Rule(
        name="pulsar_send_timeout",
        section="pulsar",
        setting="sendTimeoutMs",
        fires="above `0` beside deduplication",
        holds=lambda pipeline: both(
            _is_deduplicated(pipeline), negated(pipeline["pulsar"].is_below("sendTimeoutMs", 1))
        ),
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure=(
            "a send times out and the application sends the message again, with a new sequence id that "
            "the broker has not seen"
        ),
        advice="sendTimeoutMs: 0, which waits for ever",
        severity=Severity.WARNING,
        source=f"{_PULSAR}, Message deduplication",
    ),
    Rule(
        name="pulsar_non_persistent",
        section="pulsar",
        setting="topic",
        fires="`non-persistent://…`",
        holds=_is_non_persistent,
        classes=(BreakClass.LOST,),
        cause=None,
        failure="the broker keeps nothing on disk: what no consumer has at hand when it restarts is gone",
        advice="topic: persistent://…",
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Messaging, Non-persistent topics",
    ),
    Rule(
        name="pulsar_ttl",
        section="pulsar",
        setting="ttlDurationDefaultInSeconds",
        fires="above `0`",
        holds=_expires,
        classes=(BreakClass.LOST,),
        cause=Cause.RETENTION_OVERRUN,
        failure="a message that is not acknowledged in time is acknowledged by the broker",
        advice="ttlDurationDefaultInSeconds: 0, or longer than any outage",
        severity=Severity.WARNING,
        source=f"{_PULSAR}, Message retention and expiry",
    ),
    Rule(
        name="pulsar_journal",
        section="pulsar",
        setting="journalSyncData",
        fires="`false`",
        holds=is_any("pulsar", "journalSyncData", "false"),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="bookies acknowledge what is not on disk yet, and lose power together",
        advice="journalSyncData: true",
        severity=Severity.WARNING,
        source="Apache BookKeeper documentation, Configuration: journalSyncData",
    ),
    Rule(
        name="pulsar_ack_quorum",
        section="pulsar",
        setting="managedLedgerDefaultAckQuorum",
        fires="below `2`",
        holds=is_below("pulsar", "managedLedgerDefaultAckQuorum", 2),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="one bookie has the message when it is acknowledged, and that one fails",
        advice="managedLedgerDefaultAckQuorum: 2, of a write quorum of 3",
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Broker configuration: managedLedgerDefaultAckQuorum",
    ),
    Rule(
        name="pulsar_redelivery",
        section="pulsar",
        setting="output",
        fires="not said to be keyed, nor `commits` to be `with the output`",
        holds=redelivers("pulsar"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "the consumer dies after its output and before its acknowledgement, or that is late: the "
            "message comes again"
        ),
        advice=(
            "a keyed output, and say so: pulsar: {output: keyed by id}; or transactions, which take the "
            "acknowledgement in"
        ),
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Transactions; Messaging, Acknowledgment",
    ),
    Rule(
        name="pulsar_batch_acknowledgement",
        section="pulsar",
        setting="acknowledgmentAtBatchIndexLevelEnabled",
        fires="`false`",
        holds=lambda pipeline: both(
            redelivers("pulsar")(pipeline),
            is_any("pulsar", "acknowledgmentAtBatchIndexLevelEnabled", "false")(pipeline),
        ),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="one message of a batch is not acknowledged, and the whole batch comes again",
        advice="acknowledgmentAtBatchIndexLevelEnabled: true",
        severity=Severity.WARNING,
        source=f"{_PULSAR}, Messaging, Batching",
    ),
    Rule(
        name="pulsar_shared",
        section="pulsar",
        setting="subscriptionType",
        fires="`Shared`",
        holds=is_any("pulsar", "subscriptionType", "shared"),
        classes=(BreakClass.REORDER_CONSUMER, BreakClass.REORDER_OUTPUT),
        cause=None,
        failure="consumers take turns, and a message that comes again comes behind later ones",
        advice="subscriptionType: Key_Shared, Failover or Exclusive",
        severity=Severity.CRITICAL,
        source=f"{_PULSAR}, Messaging, Subscription types",
    ),
)
