"""Every rule of the linter fires where it should, and only there."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.unit.linting.contracts import FILES, contract

from tieout.linting import Finding, findings
from tieout.linting.linting import DECLARATION
from tieout.linting.rules import RULES
from tieout.model import BreakClass, Severity

SAFE_PRODUCER = "client: java-4.0, acks: all, enable.idempotence: true, transactional.id: orders-1"
CASES = {
    "producer_acks": (
        "producer: {client: java-4.0, acks: 1}",
        "producer: {client: java-4.0}",
    ),
    "producer_idempotence": (
        "producer: {client: librdkafka-2.3, acks: all}",
        "producer: {client: java-4.0, acks: all}",
    ),
    "producer_order": (
        "producer: {client: java-4.0, enable.idempotence: false}",
        "producer: {client: java-4.0, enable.idempotence: false, max.in.flight.requests.per.connection: 1}",
    ),
    "producer_refuses": (
        "producer: {client: java-4.0, acks: 1, enable.idempotence: true}",
        "producer: {client: java-4.0, acks: 1}",
    ),
    "producer_restart": (
        "producer: {client: java-4.0}",
        "{producer: {client: java-4.0}, consumer: {output: keyed by id}}",
    ),
    "producer_transaction_timeout": (
        f"producer: {{{SAFE_PRODUCER}, transaction.timeout.ms: 900001}}",
        f"producer: {{{SAFE_PRODUCER}, transaction.timeout.ms: 900000}}",
    ),
    "consumer_isolation": (
        f"{{producer: {{{SAFE_PRODUCER}}}, consumer: {{client: java-4.0}}}}",
        f"{{producer: {{{SAFE_PRODUCER}}}, consumer: {{client: librdkafka}}}}",
    ),
    "consumer_auto_commit_store": (
        "consumer: {client: librdkafka}",
        "consumer: {client: librdkafka, enable.auto.offset.store: false}",
    ),
    "consumer_auto_commit_threads": (
        "consumer: {client: java-4.0}",
        "consumer: {client: java-4.0, enable.auto.commit: false}",
    ),
    "consumer_auto_commit_twice": (
        "consumer: {client: java-4.0, output: appended}",
        "consumer: {client: java-4.0, output: keyed by position}",
    ),
    "consumer_commits_before": (
        "consumer: {commits: before processing}",
        "consumer: {commits: after processing}",
    ),
    "consumer_commits_after": (
        "consumer: {enable.auto.commit: false, commits: after processing}",
        "consumer: {enable.auto.commit: false, commits: after processing, output: keyed by position}",
    ),
    "consumer_commits_unsaid": (
        "consumer: {enable.auto.commit: false}",
        "consumer: {enable.auto.commit: false, commits: with the output}",
    ),
    "consumer_output_unsaid": (
        "consumer: {client: java-4.0}",
        "consumer: {client: java-4.0, output: appended}",
    ),
    "consumer_reset_latest": (
        "consumer: {client: java-4.0}",
        "consumer: {client: java-4.0, auto.offset.reset: none}",
    ),
    "consumer_reset_earliest": (
        "consumer: {client: librdkafka, auto.offset.reset: smallest}",
        "consumer: {client: librdkafka, auto.offset.reset: smallest, output: keyed by id}",
    ),
    "smallrye_failures": (
        "consumer: {failure-strategy: ignore}",
        "consumer: {failure-strategy: fail}",
    ),
    "smallrye_dead_letters": (
        "consumer: {failure-strategy: dead-letter-queue}",
        "consumer: {failure-strategy: delayed-retry-topic}",
    ),
    "smallrye_retries": (
        "consumer: {failure-strategy: delayed-retry-topic, dead-letter-queue.topic: q}",
        "consumer: {failure-strategy: dead-letter-queue}",
    ),
    "smallrye_commits_latest": (
        "consumer: {commit-strategy: latest}",
        "consumer: {commit-strategy: throttled}",
    ),
    "smallrye_commits_nothing_end": (
        "consumer: {enable.auto.commit: false, commit-strategy: ignore, auto.offset.reset: latest}",
        "consumer: {enable.auto.commit: true, commit-strategy: ignore, auto.offset.reset: latest}",
    ),
    "smallrye_commits_nothing_start": (
        "consumer: {enable.auto.commit: false, commit-strategy: ignore, auto.offset.reset: earliest}",
        "consumer: {enable.auto.commit: false, commit-strategy: ignore, commits: with the output}",
    ),
    "share_group_commits": (
        "share_group: {commits: before processing}",
        "share_group: {commits: after processing}",
    ),
    "share_group_redelivery": (
        "share_group: {commits: after processing}",
        "share_group: {output: keyed by position}",
    ),
    "share_group_reset": (
        "share_group: {client: share_group-4.3}",
        "share_group: {share.auto.offset.reset: earliest}",
    ),
    "share_group_isolation": (
        "producer: {transactional.id: t}\nshare_group: {share.isolation.level: read_uncommitted}",
        "producer: {transactional.id: t}\nshare_group: {share.isolation.level: read_committed}",
    ),
    "broker_unsaid": (
        "producer: {acks: all}",
        "{producer: {acks: all}, broker: {min.insync.replicas: 2}}",
    ),
    "broker_in_sync": ("broker: {replication.factor: 3}", "broker: {min.insync.replicas: 2}"),
    "broker_unclean_election": (
        "broker: {unclean.leader.election.enable: true}",
        "broker: {min.insync.replicas: 1}",
    ),
    "broker_one_copy": ("broker: {default.replication.factor: 1}", "broker: {replication.factor: 2}"),
    "broker_two_copies": ("broker: {replication.factor: 2}", "broker: {replication.factor: 3}"),
    "broker_offsets_copies": (
        "broker: {offsets.topic.replication.factor: 1}",
        "broker: {replication.factor: 1}",
    ),
    "broker_transactions_copies": (
        f"{{producer: {{{SAFE_PRODUCER}}}, broker: {{transaction.state.log.replication.factor: 1}}}}",
        "{producer: {client: java-4.0}, broker: {transaction.state.log.replication.factor: 1}}",
    ),
    "broker_offsets_retention": (
        "broker: {offsets.retention.minutes: 1440}",
        "broker: {offsets.retention.minutes: 10080}",
    ),
    "broker_retention": ("broker: {log.retention.hours: 24}", "broker: {retention.ms: -1}"),
    "connector_unsaid": (
        "connect: {exactly.once.source.support: disabled, producer.acks: 1}",
        "{connect: {exactly.once.source.support: disabled}, connector: {topics: orders, output: keyed by id}}",
    ),
    "connect_source_support": (
        "connector: {connector.class: FileStreamSource}",
        "{connect: {exactly.once.source.support: enabled}, connector: {connector.class: FileStreamSource}}",
    ),
    "connect_source_unchecked": (
        "{connect: {exactly.once.source.support: enabled}, connector: {connector.class: Source}}",
        "{connect: {exactly.once.source.support: enabled}, "
        "connector: {connector.class: Source, exactly.once.support: required}}",
    ),
    "connect_source_refused": (
        "{connect: {exactly.once.source.support: preparing}, "
        "connector: {connector.class: Source, exactly.once.support: required}}",
        "{connect: {exactly.once.source.support: preparing}, connector: {connector.class: Source}}",
    ),
    "connect_standalone_offsets": (
        "{connect: {offset.storage.file.filename: /o}, connector: {connector.class: Source}}",
        "{connect: {offset.storage.file.filename: /o}, connector: {connector.class: Sink, topics: a}}",
    ),
    "connect_source_idempotence": (
        "connector: {connector.class: FileStreamSource}",
        "connector: {connector.class: FileStreamSource, producer.override.enable.idempotence: true}",
    ),
    "connect_source_acks": (
        "{connect: {producer.acks: 1}, connector: {connector.class: FileStreamSource}}",
        "{connect: {producer.acks: 1}, connector: {connector.class: FileStreamSource, producer.override.acks: all}}",
    ),
    "connect_sink": (
        "connector: {topics: orders}",
        "connector: {topics: orders, output: keyed by position}",
    ),
    "connect_tolerance": (
        "connector: {topics: orders, errors.tolerance: all}",
        "connector: {topics: orders, errors.tolerance: all, errors.deadletterqueue.topic.name: dlq}",
    ),
    "connect_dead_letters": (
        "connector: {topics: orders, errors.tolerance: all, errors.deadletterqueue.topic.name: dlq}",
        "connector: {topics: orders, errors.deadletterqueue.topic.name: dlq}",
    ),
    "connect_sink_isolation": (
        f"{{producer: {{{SAFE_PRODUCER}}}, connector: {{topics: orders}}}}",
        f"{{producer: {{{SAFE_PRODUCER}}}, connect: {{consumer.isolation.level: read_committed}}, "
        "connector: {topics: orders}}",
    ),
    "connect_sink_reset": (
        "{connect: {consumer.auto.offset.reset: latest}, connector: {topics: orders}}",
        "{connect: {consumer.auto.offset.reset: latest}, "
        "connector: {topics: orders, consumer.override.auto.offset.reset: earliest}}",
    ),
    "connect_file_sink": (
        "connector: {topics: a, connector.class: org.apache.kafka.connect.file.FileStreamSinkConnector, "
        "output: keyed by id}",
        "connector: {connector.class: FileStreamSink}",
    ),
    "connect_jdbc_insert": (
        "connector: {topics: a, connector.class: io.aiven.connect.jdbc.JdbcSinkConnector, insert.mode: upsert}",
        "connector: {topics: a, connector.class: JdbcSink, insert.mode: upsert, pk.mode: kafka}",
    ),
    "streams_guarantee": (
        "streams: {application.id: a}",
        "streams: {processing.guarantee: exactly_once_v2}",
    ),
    "streams_acks": (
        "streams: {producer.acks: 1}",
        "streams: {producer.acks: -1}",
    ),
    "streams_reset": (
        "streams: {auto.offset.reset: latest}",
        "streams: {consumer.auto.offset.reset: latest, main.consumer.auto.offset.reset: earliest}",
    ),
    "streams_guarantee_removed": (
        "streams: {client: streams-4.0, processing.guarantee: exactly_once}",
        "streams: {client: streams-3.9, processing.guarantee: exactly_once}",
    ),
    "streams_commit_interval": (
        "streams: {processing.guarantee: exactly_once_v2, commit.interval.ms: 10001}",
        "streams: {processing.guarantee: exactly_once_v2, commit.interval.ms: 10000}",
    ),
    "streams_deserialization": (
        "streams: {default.deserialization.exception.handler: o.a.k.LogAndContinueExceptionHandler}",
        "streams: {deserialization.exception.handler: o.a.k.LogAndFailExceptionHandler}",
    ),
    "streams_production": (
        "streams: {production.exception.handler: our.ContinueHandler}",
        "streams: {production.exception.handler: o.a.k.DefaultProductionExceptionHandler}",
    ),
    "streams_processing": (
        "streams: {processing.exception.handler: o.a.k.LogAndContinueProcessingExceptionHandler}",
        "streams: {processing.exception.handler: o.a.k.LogAndFailProcessingExceptionHandler}",
    ),
    "streams_copies": ("streams: {replication.factor: 1}", "streams: {replication.factor: -1}"),
    "flink_checkpoints": (
        "flink: {sink.delivery-guarantee: exactly-once}",
        "flink: {execution.checkpointing.interval: 10 s}",
    ),
    "flink_sink_none": (
        "flink: {sink.delivery-guarantee: none}",
        "flink: {sink.delivery-guarantee: at-least-once}",
    ),
    "flink_sink_twice": (
        "flink: {sink.delivery-guarantee: at-least-once}",
        "flink: {sink.delivery-guarantee: at-least-once, output: keyed by id}",
    ),
    "flink_checkpoint_mode": (
        "flink: {execution.checkpointing.mode: AT_LEAST_ONCE}",
        "flink: {execution.checkpointing.interval: 10 s}",
    ),
    "flink_prefix": (
        "flink: {sink.delivery-guarantee: exactly-once}",
        "flink: {sink.delivery-guarantee: exactly-once, sink.transactional-id-prefix: orders}",
    ),
    "flink_transaction_refused": (
        "flink: {sink.delivery-guarantee: exactly-once}",
        "{flink: {sink.delivery-guarantee: exactly-once}, broker: {transaction.max.timeout.ms: 7200000}}",
    ),
    "flink_transaction_expires": (
        "flink: {sink.delivery-guarantee: exactly-once, properties.transaction.timeout.ms: 60000}",
        "flink: {sink.delivery-guarantee: exactly-once, properties.transaction.timeout.ms: 900000}",
    ),
    "flink_retention": (
        "flink: {execution.checkpointing.interval: 10 s}",
        "flink: {execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION}",
    ),
    "flink_isolation": (
        f"{{producer: {{{SAFE_PRODUCER}}}, flink: {{execution.checkpointing.interval: 10 s}}}}",
        "{producer: {client: java-4.0}, flink: {execution.checkpointing.interval: 10 s}}",
    ),
    "spark_checkpoint": ("spark: {sink: kafka}", "spark: {checkpointLocation: s3://b/c}"),
    "spark_data_loss": ("spark: {failOnDataLoss: false}", "spark: {checkpointLocation: s3://b/c}"),
    "spark_starting_offsets": ("spark: {sink: file}", "spark: {startingOffsets: earliest}"),
    "spark_sink": ("spark: {sink: foreachBatch}", "spark: {sink: file}"),
    "spark_isolation": (
        f"{{producer: {{{SAFE_PRODUCER}}}, spark: {{sink: file}}}}",
        f"{{producer: {{{SAFE_PRODUCER}}}, spark: {{kafka.isolation.level: read_committed}}}}",
    ),
    "spark_refused": (
        "spark: {kafka.auto.offset.reset: earliest}",
        "spark: {api: dstreams, kafka.auto.offset.reset: earliest}",
    ),
    "spark_commits_before": (
        "spark: {api: dstreams, commits: before processing}",
        "spark: {api: dstreams, commits: after processing}",
    ),
    "spark_direct_output": (
        "spark: {api: dstreams, commits: after processing}",
        "spark: {api: dstreams, commits: before processing}",
    ),
    "spark_direct_auto_commit": (
        "spark: {api: dstreams}",
        "spark: {api: dstreams, enable.auto.commit: false}",
    ),
    "spark_direct_reset": (
        "spark: {api: dstreams}",
        "spark: {api: dstreams, auto.offset.reset: none}",
    ),
    "spark_direct_isolation": (
        f"{{producer: {{{SAFE_PRODUCER}}}, spark: {{api: dstreams}}}}",
        f"{{producer: {{{SAFE_PRODUCER}}}, spark: {{api: dstreams, isolation.level: read_committed}}}}",
    ),
    "spark_gaps": (
        f"{{producer: {{{SAFE_PRODUCER}}}, spark: {{api: dstreams}}}}",
        "{producer: {client: java-4.0}, spark: {api: dstreams}}",
    ),
    "storm_at_most_once": (
        "storm: {processing.guarantee: NO_GUARANTEE}",
        "storm: {processing.guarantee: AT_LEAST_ONCE}",
    ),
    "storm_replays": ("storm: {topology.workers: 2}", "storm: {output: keyed by id}"),
    "storm_ackers": ("storm: {topology.acker.executors: 0}", "storm: {topology.acker.executors: 1}"),
    "storm_auto_commit": ("storm: {enable.auto.commit: true}", "storm: {topology.workers: 2}"),
    "storm_trident_state": (
        "storm: {trident.state: non-transactional}",
        "storm: {trident.state: opaque}",
    ),
    "storm_trident_spout": (
        "storm: {trident.state: transactional, trident.spout: opaque}",
        "storm: {trident.state: transactional, trident.spout: transactional}",
    ),
    "pulsar_deduplication": (
        "pulsar: {producerName: a}",
        "pulsar: {brokerDeduplicationEnabled: true}",
    ),
    "pulsar_producer_name": (
        "pulsar: {brokerDeduplicationEnabled: true}",
        "pulsar: {brokerDeduplicationEnabled: true, producerName: a}",
    ),
    "pulsar_send_timeout": (
        "pulsar: {brokerDeduplicationEnabled: true}",
        "pulsar: {brokerDeduplicationEnabled: true, sendTimeoutMs: 0}",
    ),
    "pulsar_non_persistent": (
        "pulsar: {topic: 'non-persistent://public/default/a'}",
        "pulsar: {topic: 'persistent://public/default/a'}",
    ),
    "pulsar_ttl": ("pulsar: {ttlDurationDefaultInSeconds: 3600}", "pulsar: {producerName: a}"),
    "pulsar_journal": ("pulsar: {journalSyncData: false}", "pulsar: {producerName: a}"),
    "pulsar_ack_quorum": (
        "pulsar: {managedLedgerDefaultAckQuorum: 1}",
        "pulsar: {managedLedgerDefaultAckQuorum: 2}",
    ),
    "pulsar_redelivery": ("pulsar: {producerName: a}", "pulsar: {commits: with the output}"),
    "pulsar_batch_acknowledgement": (
        "pulsar: {client: pulsar-4.0, producerName: a}",
        "pulsar: {client: pulsar-4.1, producerName: a}",
    ),
    "pulsar_shared": ("pulsar: {subscriptionType: Shared}", "pulsar: {subscriptionType: Key_Shared}"),
    "activemq_acknowledgement": (
        "activemq: {acknowledgement: stomp auto}",
        "activemq: {acknowledgement: stomp client}",
    ),
    "activemq_redelivery": ("activemq: {persistent: true}", "activemq: {output: keyed by id}"),
    "activemq_persistence": ("activemq: {persistent: false}", "activemq: {persistent: true}"),
    "activemq_async_send": ("activemq: {receipt: false}", "activemq: {receipt: true}"),
    "activemq_journal": (
        "activemq: {enableJournalDiskSyncs: false}",
        "activemq: {journalDiskSyncStrategy: always}",
    ),
    "activemq_expiry": ("activemq: {timeToLive: 500}", "activemq: {timeToLive: 0}"),
    "activemq_discarding": ("activemq: {dropAll: true}", "activemq: {dropAll: false}"),
    "activemq_missing_journal": (
        "activemq: {ignoreMissingJournalfiles: true}",
        "activemq: {ignoreMissingJournalfiles: false}",
    ),
}
"""Per rule settings with which it fires for certain, and settings, as like them as can be, with which it does not."""


def lint(settings: str, guarantee: str = "exactly_once", **fields: Any) -> dict[str, Finding]:
    """Return the findings about settings written in YAML, by rule."""
    found = findings(contract(yaml.safe_load(settings), guarantee, **fields))
    assert len({finding.rule for finding in found}) == len(found)
    return {finding.rule: finding for finding in found}


def test_every_rule_has_its_cases() -> None:
    """No rule without an example of both, no example without its rule, no rule's name twice."""
    assert [rule.name for rule in RULES] == list(CASES)
    assert not DECLARATION.keys() & CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_and_does_not_fire(name: str) -> None:
    """With ordering promised and a guarantee of exactly once, every rule's class matters."""
    fires, quiet = CASES[name]
    rule = next(rule for rule in RULES if rule.name == name)

    found = lint(fires, ordering="partition")[name]

    assert found.is_certain
    assert found.severity is rule.severity
    assert name not in lint(quiet, ordering="partition")


@pytest.mark.parametrize("name", CASES)
def test_a_finding_says_everything(name: str) -> None:
    """What is set or what applies, what follows and how, what to do, and where one can read that."""
    found = lint(CASES[name][0], ordering="partition")[name]

    assert found.failure
    assert found.advice
    assert found.source.startswith(("Apache", "Confluent", "librdkafka", "SmallRye"))
    assert found.subject.startswith(f"{found.section}.{found.setting}")
    assert set(found.as_dict()) == set(Finding.__dataclass_fields__)


CLIENTS = [
    ("java-2.8", "1", "acks", True),
    ("java-3.0", "all", "acks", False),
    ("java-2.8", "false", "enable.idempotence", True),
    ("java-3.0.0", "false", "enable.idempotence", True),
    ("java-3.0.1", "true", "enable.idempotence", False),
    ("java-3.1.0", "false", "enable.idempotence", True),
    ("java-3.1.2", "true", "enable.idempotence", False),
    ("java-3.2", "true", "enable.idempotence", False),
    ("java-4", "true", "enable.idempotence", False),
    ("librdkafka-0.11", "1", "acks", True),
    ("librdkafka-2.11.0", "all", "acks", False),
    ("confluent-kafka-2.5", "false", "enable.idempotence", True),
    ("kafka-python-2.2", "1", "acks", True),
    ("kafka-python-3.0.7", "true", "enable.idempotence", False),
]


@pytest.mark.parametrize(("client", "default", "setting", "fires"), CLIENTS)
def test_defaults_are_those_of_the_client_and_its_version(
    client: str, default: str, setting: str, fires: bool
) -> None:
    """Idempotence by default was promised for 3.0.0 and came with 3.0.1, again not in 3.1.0; others never had it."""
    found = lint(f"producer: {{client: {client}}}")
    rule = {"acks": "producer_acks", "enable.idempotence": "producer_idempotence"}[setting]

    assert (rule in found) is fires
    if fires:
        assert found[rule].value is None
        assert found[rule].default.startswith(default)


@pytest.mark.parametrize(
    "settings", ["producer: {client: java}", "producer: {retries: 5}", "producer: {client: java-3.1}"]
)
def test_an_open_version_leaves_a_finding_open(settings: str) -> None:
    """A default that some of the possible versions have may apply: a warning that says so, and both defaults."""
    found = lint(settings)["producer_idempotence"]

    assert (found.is_certain, found.severity) == (False, Severity.WARNING)
    assert "true from 3.1.1" in found.default
    assert "false" in found.default


def test_what_conflicts_switches_a_default_off_without_a_word() -> None:
    """Java's idempotence by default gives way to acks=1, retries=0 and, before 4.0, to six in flight."""
    for conflict in ("acks: 1", "max.in.flight.requests.per.connection: 6"):
        found = lint(f"producer: {{client: java-3.9, {conflict}}}")
        assert found["producer_idempotence"].is_certain
        assert "producer_refuses" not in found

    assert "producer_refuses" in lint(
        "producer: {client: java-4.1, max.in.flight.requests.per.connection: 6}"
    )
    assert "producer_refuses" in lint("producer: {client: librdkafka, transactional.id: a, acks: 1}")
    assert "producer_refuses" in lint("producer: {transactional.id: a, enable.idempotence: false}")


def test_true_and_false_are_read_as_java_reads_them() -> None:
    """`TRUE` asks for idempotence as `true` does, and the client refuses what does not go with it."""
    found = lint("producer: {client: java-4.0, enable.idempotence: 'TRUE', acks: 1}")
    worker = "connect: {producer.enable.idempotence: 'True'}"

    assert "producer_refuses" in found
    assert "producer_refuses" in lint("producer: {transactional.id: a, enable.idempotence: 'False'}")
    assert "connect_source_idempotence" not in lint(f"{{{worker}, connector: {{connector.class: Source}}}}")


def test_without_retries_nothing_is_doubled_by_them() -> None:
    """A client that does not retry needs no idempotence; what it did not get acknowledged is unknown, not doubled."""
    assert "producer_idempotence" not in lint("producer: {client: librdkafka, retries: 0}")


def test_one_pipeline_sees_different_data_by_its_client() -> None:
    """The same unsaid isolation hides aborted records from librdkafka's users and shows them to all others."""
    settings = "{{producer: {{transactional.id: a}}, consumer: {{client: {client}}}}}"

    assert "consumer_isolation" not in lint(settings.format(client="librdkafka"))
    assert lint(settings.format(client="kafka-python"))["consumer_isolation"].is_certain
    assert not lint("consumer: {client: java-4.0}")["consumer_isolation"].is_certain, (
        "producers are not declared"
    )


@pytest.mark.parametrize(
    ("guarantee", "fields", "expected"),
    [
        ("exactly_once", {}, Severity.CRITICAL),
        ("at_most_once", {}, Severity.CRITICAL),
        ("at_least_once", {}, None),
        ("at_least_once", {"budgets": {"duplicate_ratio": 0.1}}, Severity.INFO),
    ],
)
def test_a_finding_is_as_loud_as_the_guarantee_makes_it(
    guarantee: str, fields: dict[str, Any], expected: Severity | None
) -> None:
    """Writing twice is what at-least-once says; where a budget bounds it, it is worth knowing."""
    found = lint("consumer: {enable.auto.commit: false, commits: after processing}", guarantee, **fields)

    severity = found["consumer_commits_after"].severity if "consumer_commits_after" in found else None
    assert severity is expected


def test_an_output_keyed_by_id_stands_what_is_sent_twice() -> None:
    """One keyed by position does not: two copies have two positions."""
    settings = "{{producer: {{client: librdkafka}}, consumer: {{output: keyed by {key}}}}}"

    assert "producer_idempotence" not in lint(settings.format(key="id"))
    assert "producer_idempotence" in lint(settings.format(key="position"))


def test_a_spark_query_is_known_by_its_options_however_they_are_written() -> None:
    """Spark knows options in any case, and takes where checkpoints lie from its session as well."""
    lower = lint("spark: {checkpointlocation: s3://b/c, failondataloss: false, startingoffsets: earliest}")
    session = lint("spark: {spark.sql.streaming.checkpointLocation: s3://b/c}")

    assert "spark_data_loss" in lower
    assert not {"spark_checkpoint", "spark_starting_offsets"} & lower.keys()
    assert "spark_checkpoint" not in session


def test_dstreams_are_not_held_to_the_options_of_a_query() -> None:
    """The older API keeps its positions itself, and has no option of these names that could be missing."""
    consumer = "enable.auto.commit: false, auto.offset.reset: none, isolation.level: read_committed"
    found = lint(f"spark: {{api: dstreams, output: keyed by id, {consumer}}}")

    assert set(found) == {"spark_gaps"}


@pytest.mark.parametrize(
    ("interval", "is_off"), [("0", True), ("0 ms", True), ("PT0S", True), ("10 ms", False)]
)
def test_checkpoints_at_no_interval_are_none(interval: str, is_off: bool) -> None:
    """Flink takes checkpoints at intervals above 0; some versions refuse to start at less than 10 ms."""
    found = lint(f"flink: {{execution.checkpointing.interval: {interval}}}")

    assert ("flink_checkpoints" in found) is is_off


def test_a_standalone_worker_is_not_exactly_once_whatever_it_is_set_to() -> None:
    """Exactly-once sources are the distributed mode's; a standalone worker takes no notice of the setting."""
    worker = "{exactly.once.source.support: enabled, offset.storage.file.filename: /o}"
    found = lint(f"{{connect: {worker}, connector: {{connector.class: Source}}}}")
    read = lint(f"{{connect: {worker}, consumer: {{client: java-4.0}}}}")

    assert found["connect_source_support"].severity is Severity.CRITICAL
    assert "connect_source_idempotence" in found
    assert "consumer_isolation" not in read


def test_a_word_of_our_own_is_known_in_any_case_and_nothing_else_is() -> None:
    """A word that means nothing would else be silence: `auto` alone may be JMS with or without a listener, or STOMP."""
    assert "word_unknown" not in lint("consumer: {commits: After Processing, output: Keyed by ID}")
    assert "word_unknown" not in lint("activemq: {acknowledgement: STOMP client, output: keyed by id}")

    for settings in ("activemq: {acknowledgement: auto}", "storm: {trident.state: exactly-once}"):
        found = lint(settings, "at_least_once")["word_unknown"]
        assert "one of: " in found.advice
        assert "nothing is known of" in found.failure


def test_a_name_that_is_almost_one_is_reported() -> None:
    """Its default would count without a word; what other names there are is nobody's business here."""
    found = lint("producer: {client: java-4.0, enable.idempotance: false}")["setting_misspelt"]
    assert (found.setting, found.value) == ("enable.idempotance", "false")
    assert "enable.idempotence counts as not set" in found.failure

    for settings in (
        "producer: {client: java-4.0, linger.ms: 5, compression.type: zstd, batch.size: 1, retries: 3}",
        "producer: {client: kafka-python, max_in_flight_requests_per_connection: 1, retry_backoff_ms: 9}",
        "broker: {log.retention.hours: 1, log.retention.bytes: 1, default.replication.factor: 3}",
        "connect: {offset.flush.timeout.ms: 1, offset.storage.topic: a, config.storage.replication.factor: 3}",
    ):
        assert "setting_misspelt" not in lint(settings), settings


def test_what_only_some_clients_have_is_left_open() -> None:
    """Where no client is named, librdkafka's store of offsets may be there, or another's way of committing."""
    found = lint("consumer: {group.id: g}")

    assert not found["consumer_auto_commit_store"].is_certain
    assert not found["consumer_auto_commit_threads"].is_certain
    assert found["consumer_auto_commit_twice"].is_certain


def test_order_matters_only_where_it_is_promised() -> None:
    """Batches that overtake each other break nothing where no order is promised."""
    settings = "producer: {client: librdkafka}"

    assert "producer_order" not in lint(settings)
    assert lint(settings, ordering="partition")["producer_order"].classes == (BreakClass.REORDER_PRODUCER,)


def test_a_sound_pipeline_has_no_findings() -> None:
    """Transactions, committed reads, a keyed output, three copies of everything."""
    settings = f"""
      producer: {{{SAFE_PRODUCER}}}
      consumer: {{client: java-4.0, enable.auto.commit: false, isolation.level: read_committed,
        auto.offset.reset: none, commits: after processing, output: keyed by position}}
      broker: {{client: kafka-4.0, replication.factor: 3, min.insync.replicas: 2}}
    """

    assert lint(settings) == {}
    assert lint("{}") == {}


def test_the_severest_comes_first() -> None:
    """A reader who stops after the first line has read the worst."""
    ranks = [
        finding.severity.rank for finding in lint("{producer: {acks: 0}, consumer: {commits: yes}}").values()
    ]

    assert len(ranks) > 2
    assert ranks == sorted(ranks, reverse=True)


def test_a_failure_within_a_transaction_of_smallrye_may_be_read_again() -> None:
    """Without commits of its own the connector is part of a transaction, or of what the application does."""
    opened = lint("consumer: {failure-strategy: ignore, commit-strategy: ignore}", "at_least_once")
    said = lint("consumer: {failure-strategy: ignore, commits: with the output}", "at_least_once")

    assert not opened["smallrye_failures"].is_certain
    assert "smallrye_failures" not in said


def test_what_smallrye_parks_is_seen_in_the_ledger() -> None:
    """Of retries, too, where these end in a queue; without one they are left out in the end."""
    retries = "consumer: {failure-strategy: delayed-retry-topic%s}"
    queue = ", dead-letter-queue.topic: q"
    ledgers = {
        name: {"source": {**FILES, "path": name}} for name in ("produced", "delivered", "dead_letters")
    }

    assert lint(retries % "")["smallrye_failures"].is_certain
    assert "smallrye_failures" not in lint(retries % queue)
    assert lint(retries % queue)["smallrye_dead_letters"].is_certain
    assert "smallrye_dead_letters" not in lint(retries % queue, ledgers=ledgers)
