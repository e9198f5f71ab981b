"""ActiveMQ Classic: acknowledgement, persistence, and what is kept on disk."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, either, negated
from tieout.linting.rule import Rule, is_any
from tieout.linting.rules.output import redelivers
from tieout.model import BreakClass, Cause, Severity

_ACTIVEMQ: Final = "Apache ActiveMQ Classic documentation"


def _expires(pipeline: Pipeline) -> Truth:
    return pipeline["activemq"].is_declared and negated(pipeline["activemq"].is_below("timeToLive", 1))


RULES: Final = (
    Rule(
        name="activemq_acknowledgement",
        section="activemq",
        setting="acknowledgement",
        fires="`stomp auto`, or `auto receive` or `dups-ok receive`: JMS without a listener",
        holds=is_any("activemq", "acknowledgement", "stomp auto", "auto receive", "dups-ok receive"),
        classes=(BreakClass.LOST,),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "a message counts as acknowledged when it is handed out: the process dies with it, and "
            "nobody gets it again"
        ),
        advice="acknowledgement: stomp client, stomp client-individual, auto listener, client or transacted",
        severity=Severity.CRITICAL,
        source=f"{_ACTIVEMQ}, Stomp; Jakarta Messaging specification, Message acknowledgment",
    ),
    Rule(
        name="activemq_redelivery",
        section="activemq",
        setting="output",
        fires="not said to be keyed, nor `commits` to be `with the output`",
        holds=redelivers("activemq"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="the consumer dies after its output and before its acknowledgement: the message comes again",
        advice="a keyed output, and say so: activemq: {output: keyed by id}",
        severity=Severity.CRITICAL,
        source=f"{_ACTIVEMQ}, Message Redelivery and DLQ Handling",
    ),
    Rule(
        name="activemq_persistence",
        section="activemq",
        setting="persistent",
        fires="`false`: non-persistent delivery; also of a broker with a `memoryPersistenceAdapter`",
        holds=lambda pipeline: either(
            is_any("activemq", "persistent", "false")(pipeline),
            pipeline["activemq"].text("memoryPersistenceAdapter") is not None,
        ),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="the broker restarts, and what it held in memory is gone, a receipt or not",
        advice="persistent: true",
        severity=Severity.CRITICAL,
        source=f"{_ACTIVEMQ}, What is the difference between persistent and non-persistent delivery?",
    ),
    Rule(
        name="activemq_async_send",
        section="activemq",
        setting="useAsyncSend",
        fires="`true`, or `receipt: false` over STOMP",
        holds=lambda pipeline: (
            pipeline["activemq"].is_any("useAsyncSend", "true") is True
            or pipeline["activemq"].is_any("receipt", "false")
        ),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="a send returns before the broker has the message: it fails meanwhile, and nobody is told",
        advice="useAsyncSend: false; over STOMP a receipt for every send",
        severity=Severity.CRITICAL,
        source=f"{_ACTIVEMQ}, Async Sends",
    ),
    Rule(
        name="activemq_journal",
        section="activemq",
        setting="journalDiskSyncStrategy",
        fires="`periodic` or `never`; also `enableJournalDiskSyncs: false`, its older form",
        holds=lambda pipeline: either(
            is_any("activemq", "journalDiskSyncStrategy", "periodic", "never")(pipeline),
            is_any("activemq", "enableJournalDiskSyncs", "false")(pipeline),
        ),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="the broker acknowledges what is not on disk yet, and loses power",
        advice="journalDiskSyncStrategy: always",
        severity=Severity.WARNING,
        source=f"{_ACTIVEMQ}, KahaDB",
    ),
    Rule(
        name="activemq_expiry",
        section="activemq",
        setting="timeToLive",
        fires="above `0`",
        holds=_expires,
        classes=(BreakClass.LOST,),
        cause=None,
        failure="a message that nobody takes in time is removed by the broker",
        advice="timeToLive: 0, or longer than any outage; where it may expire, declare the ledger filtered",
        severity=Severity.WARNING,
        source=f"{_ACTIVEMQ}, How do I set the message expiration",
    ),
    Rule(
        name="activemq_discarding",
        section="activemq",
        setting="dropAll",
        fires="`true`, of `discardingDLQBrokerPlugin`",
        holds=is_any("activemq", "dropAll", "true"),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="a message that was refused too often, or expired, is thrown away instead of parked",
        advice="no discardingDLQBrokerPlugin with dropAll: true, and a dead letter queue",
        severity=Severity.CRITICAL,
        source=f"{_ACTIVEMQ}, Message Redelivery and DLQ Handling",
    ),
    Rule(
        name="activemq_missing_journal",
        section="activemq",
        setting="ignoreMissingJournalfiles",
        fires="`true`",
        holds=is_any("activemq", "ignoreMissingJournalfiles", "true"),
        classes=(BreakClass.LOST,),
        cause=None,
        failure="a file of the journal is gone when the broker starts, and it goes on without the messages in it",
        advice="ignoreMissingJournalfiles: false",
        severity=Severity.WARNING,
        source=f"{_ACTIVEMQ}, KahaDB",
    ),
)
