"""Kafka Connect: exactly-once sources, sinks, tolerated errors, and the clients that a worker makes."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import STANDALONE, Part, Pipeline, Truth, both, negated
from tieout.linting.rule import Rule
from tieout.linting.rules.consumer import begins_at_the_end
from tieout.linting.rules.output import survives_rereading, survives_resending
from tieout.linting.rules.sinks import is_known_sink, is_sink
from tieout.model import BreakClass, Cause, Ledger, Severity

_CONNECT: Final = "Apache Kafka documentation, Kafka Connect"
_WORKER: Final = "Apache Kafka, Worker.baseProducerConfigs and baseConsumerConfigs (connect/runtime)"
_IDEMPOTENCE: Final = "enable.idempotence"


def _is_source(pipeline: Pipeline) -> bool:
    connector = pipeline["connector"]
    return connector.is_declared and connector.is_understood and not is_sink(pipeline)


def _has_plain_source(pipeline: Pipeline) -> Truth:
    if not _is_source(pipeline) or survives_resending(pipeline):
        return False
    return negated(pipeline.has_exact_sources)


def _has_unchecked_source(pipeline: Pipeline) -> Truth:
    if not _is_source(pipeline) or survives_resending(pipeline):
        return False
    is_checked = pipeline["connector"].is_any("exactly.once.support", "required")
    return both(pipeline.has_exact_sources, negated(is_checked))


def _requires_disabled_support(pipeline: Pipeline) -> Truth:
    """Return whether a distributed worker refuses the connector; a standalone one ignores the setting."""
    worker = pipeline["connect"]
    if not _is_source(pipeline) or not worker.is_declared or worker.has(STANDALONE):
        return False
    is_required = pipeline["connector"].is_any("exactly.once.support", "required")
    return both(is_required, negated(pipeline.has_exact_sources))


def _has_forgetful_source(pipeline: Pipeline) -> Truth:
    return _is_source(pipeline) and pipeline["connect"].has(STANDALONE)


def _is_without_connector(pipeline: Pipeline) -> Truth:
    return pipeline["connect"].is_declared and not pipeline["connector"].is_declared


def _of_client(pipeline: Pipeline, client: str, setting: str) -> tuple[Part, str]:
    """Return the part that sets the connector's producer or consumer: the connector, else its worker."""
    override = f"{client}.override.{setting}"
    connector = pipeline["connector"]
    return (connector, override) if connector.has(override) else (pipeline["connect"], f"{client}.{setting}")


def _has_plain_producer(pipeline: Pipeline) -> Truth:
    part, setting = _of_client(pipeline, "producer", _IDEMPOTENCE)
    return both(_has_plain_source(pipeline), negated(part.is_any(setting, "true")))


def _may_lose_acked(pipeline: Pipeline) -> Truth:
    part, setting = _of_client(pipeline, "producer", "acks")
    return both(_is_source(pipeline), part.has(setting), negated(part.is_any(setting, "all", "-1")))


def _sink_begins_at_the_end(pipeline: Pipeline) -> Truth:
    part, setting = _of_client(pipeline, "consumer", "auto.offset.reset")
    return both(is_sink(pipeline), begins_at_the_end(part, setting))


def _has_plain_sink(pipeline: Pipeline) -> Truth:
    is_declared = survives_rereading(pipeline, "connector") or is_known_sink(pipeline)
    return is_sink(pipeline) and not is_declared


def _drops_errors(pipeline: Pipeline) -> Truth:
    connector = pipeline["connector"]
    has_queue = is_sink(pipeline) and connector.has("errors.deadletterqueue.topic.name")
    return both(connector.is_declared and connector.is_any("errors.tolerance", "all"), not has_queue)


def _queues_errors_unseen(pipeline: Pipeline) -> Truth:
    connector = pipeline["connector"]
    has_queue = is_sink(pipeline) and connector.has("errors.deadletterqueue.topic.name")
    is_ledger = Ledger.DEAD_LETTERS in pipeline.contract.ledgers
    return both(connector.is_any("errors.tolerance", "all"), has_queue, not is_ledger)


def _sink_reads_aborted(pipeline: Pipeline) -> Truth:
    if not is_sink(pipeline):
        return False
    part, setting = _of_client(pipeline, "consumer", "isolation.level")
    return both(pipeline.has_transactions, negated(part.is_any(setting, "read_committed")))


RULES: Final = (
    Rule(
        name="connector_unsaid",
        section="connector",
        setting="connector.class",
        fires="workers are declared and no connector is",
        holds=_is_without_connector,
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=None,
        failure=(
            "what the workers' settings are worth depends on whether they run a source or a sink, and on what that "
            "sets itself: nothing is said of either"
        ),
        advice="declare the connector: connector: {connector.class: …, topics: …}, or name a file with its settings",
        severity=Severity.INFO,
        source=f"{_CONNECT}, Configuring Connectors",
    ),
    Rule(
        name="connect_source_support",
        section="connect",
        setting="exactly.once.source.support",
        fires="anything but `enabled`, or the worker is a standalone one, with a source connector",
        holds=_has_plain_source,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure=(
            "the worker dies after its records were written and before it has stored the source's "
            "offsets: its successor writes them again"
        ),
        advice=(
            "exactly.once.source.support: enabled on every worker (distributed mode only), and on the "
            "connector exactly.once.support: required, so that one that cannot do it is refused"
        ),
        severity=Severity.CRITICAL,
        source=f"{_CONNECT}, Exactly-once support; KIP-618",
    ),
    Rule(
        name="connect_source_unchecked",
        section="connector",
        setting="exactly.once.support",
        fires="anything but `required`, with a source connector on workers whose exactly-once support is enabled",
        holds=_has_unchecked_source,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure=(
            "a connector that cannot go on exactly where its stored offsets say is started all the same, and "
            "writes again what it wrote before its worker died"
        ),
        advice=(
            "exactly.once.support: required; a connector that can do it but does not say so to Connect is refused "
            "then, and has to be vouched for by its own documentation"
        ),
        severity=Severity.WARNING,
        source="Apache Kafka documentation, Source Connector Configs: exactly.once.support; KIP-618",
    ),
    Rule(
        name="connect_source_refused",
        section="connector",
        setting="exactly.once.support",
        fires="`required`, on distributed workers whose `exactly.once.source.support` is not `enabled`",
        holds=_requires_disabled_support,
        classes=(),
        cause=None,
        failure="the workers refuse the connector: requests to create or validate it fail",
        advice="exactly.once.source.support: enabled on every worker",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Source Connector Configs: exactly.once.support",
    ),
    Rule(
        name="connect_standalone_offsets",
        section="connect",
        setting=STANDALONE,
        fires="set: the worker is a standalone one, with a source connector",
        holds=_has_forgetful_source,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure=(
            "the file of offsets is rewritten in place; a worker that dies meanwhile leaves none, and "
            "its successor begins the source from its start"
        ),
        advice="run the worker in distributed mode, which keeps offsets in a topic",
        severity=Severity.WARNING,
        source=f"{_CONNECT}, Running Kafka Connect",
    ),
    Rule(
        name="connect_source_idempotence",
        section="connector",
        setting=f"producer.override.{_IDEMPOTENCE}",
        fires=(
            "not `true`, nor the worker's `producer.enable.idempotence`, with a source connector "
            "without exactly-once support"
        ),
        holds=_has_plain_producer,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RETRY_WITHOUT_IDEMPOTENCE,
        failure=(
            "Connect switches idempotence off in its producers, whatever the client's default; a lost "
            "acknowledgement is enough for a record to be written twice"
        ),
        advice="producer.override.enable.idempotence: true, or exactly-once support",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Upgrading, notable changes in 3.1.1 (KAFKA-13759)",
    ),
    Rule(
        name="connect_source_acks",
        section="connector",
        setting="producer.override.acks",
        fires="set to anything but `all` and `-1`, here or as the worker's `producer.acks`, with a source connector",
        holds=_may_lose_acked,
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION),
        cause=Cause.UNCLEAN_ELECTION,
        failure=(
            "the leader acknowledges what no follower has yet; if it fails then, the source's offset is stored and "
            "the next leader does not have the record"
        ),
        advice="leave it out: Connect's own is all; with min.insync.replicas: 2 or more",
        severity=Severity.CRITICAL,
        source=_WORKER,
    ),
    Rule(
        name="connect_sink",
        section="connector",
        setting="output",
        fires="not said to be keyed, nor `commits` to be `with the output`, of a sink connector",
        holds=_has_plain_sink,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "a sink's offsets are committed every offset.flush.interval.ms; a worker that dies before "
            "writes again what it wrote since"
        ),
        advice=(
            "a connector that upserts or keeps offsets with its rows, and say so: connector: {output: "
            "keyed by position}"
        ),
        severity=Severity.CRITICAL,
        source=f"{_CONNECT}, Connector Development Guide, Sink Tasks; Worker Configs: offset.flush.interval.ms",
    ),
    Rule(
        name="connect_tolerance",
        section="connector",
        setting="errors.tolerance",
        fires="`all` without `errors.deadletterqueue.topic.name`, which only sinks have",
        holds=_drops_errors,
        classes=(BreakClass.LOST,),
        cause=Cause.POISON,
        failure=(
            "a record that cannot be converted or transformed is left out without a word, and its "
            "offset committed"
        ),
        advice="errors.tolerance: none, or for a sink a dead letter queue",
        severity=Severity.CRITICAL,
        source=f"{_CONNECT}, Error Reporting in Connect; Sink Connector Configs: errors.tolerance",
    ),
    Rule(
        name="connect_dead_letters",
        section="connector",
        setting="errors.deadletterqueue.topic.name",
        fires="set, and the contract has no ledger `dead_letters`",
        holds=_queues_errors_unseen,
        classes=(BreakClass.LOST,),
        cause=Cause.POISON,
        failure="what the connector parks is judged to be lost, because the evidence does not show the queue",
        advice="declare the queue as the ledger dead_letters",
        severity=Severity.WARNING,
        source=f"{_CONNECT}, Error Reporting in Connect",
    ),
    Rule(
        name="connect_sink_isolation",
        section="connector",
        setting="consumer.override.isolation.level",
        fires=(
            "not `read_committed`, nor the worker's `consumer.isolation.level`, of a sink connector "
            "whose topic is written in transactions"
        ),
        holds=_sink_reads_aborted,
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted, and the sink writes its records all the same",
        advice="consumer.override.isolation.level: read_committed",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Consumer Configs: isolation.level",
    ),
    Rule(
        name="connect_sink_reset",
        section="connector",
        setting="consumer.override.auto.offset.reset",
        fires="`latest` or `by_duration`, here or as the worker's `consumer.auto.offset.reset`, of a sink connector",
        holds=_sink_begins_at_the_end,
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure=(
            "without a position (a new connector, an expired group, one beyond a truncated log) the sink begins "
            "at the end, and what lies before is written by nobody"
        ),
        advice="leave it out: Connect's own is earliest",
        severity=Severity.WARNING,
        source=_WORKER,
    ),
)
