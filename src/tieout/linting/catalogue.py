"""The names of settings that each part's program knows, in any style of writing.

Without them a file that wraps or renames its settings would look empty. Taken from the programs themselves: Kafka 3.9
and 4.0, librdkafka 2.16, and the documentation of the others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tieout.linting.values import CHECKED_SETTINGS

_CLIENT: Final = """
bootstrap.servers client.dns.lookup client.id client.rack connections.max.idle.ms enable.metrics.push
interceptor.classes metadata.broker.list metadata.max.age.ms metadata.max.idle.ms metadata.recovery.strategy
metric.reporters receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
retry.backoff.max.ms retry.backoff.ms security.protocol security.providers send.buffer.bytes
statistics.interval.ms receive.message.max.bytes message.copy.max.bytes api.version.request broker.address.family
broker.address.ttl broker.version.fallback debug log_level log.connection.close enabled_events
topic.metadata.refresh.interval.ms topic.metadata.propagation.max.ms enable.ssl.certificate.verification
schema.registry.url auto.include.jmx.reporter allow.auto.create.topics connector topic
"""
_PRODUCER: Final = """
batch.size batch.num.messages buffer.memory compression.type compression.codec compression.level
compression.gzip.level compression.lz4.level compression.zstd.level delivery.timeout.ms key.serializer linger.ms
max.block.ms max.request.size message.max.bytes message.timeout.ms partitioner partitioner.class
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.ignore.keys
delivery.report.only.error enable.gapless.guarantee produce.offset.report queue.buffering.backpressure.threshold
queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms queuing.strategy
sticky.partitioning.linger.ms value.serializer
"""
_CONSUMER: Final = """
auto.commit.enable auto.commit.interval.ms check.crcs consume.callback.max.messages default.api.timeout.ms
enable.partition.eof exclude.internal.topics fetch.error.backoff.ms fetch.max.bytes fetch.max.wait.ms
fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id
group.protocol group.protocol.type group.remote.assignor heartbeat.interval.ms key.deserializer
max.partition.fetch.bytes max.poll.interval.ms max.poll.records offset.store.method partition.assignment.strategy
queued.max.messages.kbytes queued.min.messages session.timeout.ms value.deserializer
"""
_BROKER: Final = """
advertised.listeners authorizer.class.name auto.create.topics.enable auto.leader.rebalance.enable background.threads
broker.id broker.id.generation.enable broker.rack cleanup.policy compression.type connections.max.idle.ms
controller.quorum.voters controller.quorum.bootstrap.servers controller.listener.names controlled.shutdown.enable
delete.retention.ms delete.topic.enable file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas inter.broker.listener.name inter.broker.protocol.version
leader.imbalance.check.interval.seconds leader.replication.throttled.replicas listener.security.protocol.map listeners
log.cleaner.enable log.cleanup.policy log.dir log.dirs log.flush.interval.messages log.flush.interval.ms
log.message.format.version log.retention.bytes log.retention.check.interval.ms log.roll.hours log.roll.ms
log.segment.bytes max.compaction.lag.ms max.connections max.connections.per.ip max.message.bytes message.max.bytes
message.timestamp.type metadata.log.dir min.cleanable.dirty.ratio min.compaction.lag.ms node.id num.io.threads
num.network.threads num.partitions num.recovery.threads.per.data.dir num.replica.fetchers offset.metadata.max.bytes
offsets.commit.required.acks offsets.commit.timeout.ms offsets.topic.num.partitions offsets.topic.segment.bytes
process.roles producer.id.expiration.ms queued.max.requests remote.storage.enable replica.fetch.max.bytes
replica.fetch.wait.max.ms replica.lag.time.max.ms replica.selector.class replica.socket.timeout.ms retention.bytes
security.inter.broker.protocol segment.bytes segment.jitter.ms segment.ms socket.receive.buffer.bytes
socket.request.max.bytes socket.send.buffer.bytes transaction.state.log.min.isr transaction.state.log.num.partitions
transaction.state.log.segment.bytes transactional.id.expiration.ms zookeeper.connect zookeeper.connection.timeout.ms
zookeeper.session.timeout.ms partitions
"""
_CONNECT: Final = """
bootstrap.servers client.dns.lookup config.providers config.storage.replication.factor config.storage.topic
connect.protocol connector.client.config.override.policy group.id header.converter heartbeat.interval.ms key.converter
internal.key.converter internal.value.converter listeners metric.reporters offset.flush.timeout.ms
offset.storage.partitions offset.storage.replication.factor offset.storage.topic plugin.discovery plugin.path
rebalance.timeout.ms rest.advertised.host.name rest.advertised.listener rest.advertised.port rest.port
scheduled.rebalance.max.delay.ms session.timeout.ms status.storage.partitions status.storage.replication.factor
status.storage.topic task.shutdown.graceful.timeout.ms topic.creation.enable topic.tracking.enable value.converter
worker.sync.timeout.ms worker.unsync.backoff.ms
"""
_CONNECTOR: Final = """
config.action.reload connector.class errors.deadletterqueue.context.headers.enable
errors.deadletterqueue.topic.replication.factor errors.log.enable errors.log.include.messages
errors.retry.delay.max.ms errors.retry.timeout exactly.once.support header.converter key.converter offsets.storage.topic
predicates tasks.max tasks.max.enforce topic.creation.groups transaction.boundary transaction.boundary.interval.ms
transforms value.converter
"""
_STREAMS: Final = """
acceptable.recovery.lag application.id application.server bootstrap.servers buffered.records.per.partition
cache.max.bytes.buffering client.id commit.interval.ms default.client.supplier default.dsl.store default.key.serde
default.timestamp.extractor default.value.serde dsl.store.suppliers.class max.task.idle.ms max.warmup.replicas
metrics.recording.level num.standby.replicas num.stream.threads poll.ms probing.rebalance.interval.ms
processing.exception.handler request.timeout.ms retry.backoff.ms rocksdb.config.setter state.cleanup.delay.ms
state.dir statestore.cache.max.bytes task.timeout.ms topology.optimization upgrade.from security.protocol
"""
_FLINK: Final = """
connector format topic topic-pattern high-availability restart-strategy rest.port rest.address
properties.bootstrap.servers properties.group.id scan.startup.mode
"""
_SPARK: Final = """
kafka.bootstrap.servers subscribe subscribePattern assign endingOffsets maxOffsetsPerTrigger minPartitions
includeHeaders topic
"""
_KNOWN_NAMES: Final = {
    "producer": _CLIENT + _PRODUCER,
    "consumer": _CLIENT + _CONSUMER,
    "share_group": _CLIENT + "share.session.timeout.ms share.heartbeat.interval.ms max.poll.records group.id",
    "broker": _BROKER,
    "connect": _CONNECT,
    "connector": _CONNECTOR,
    "streams": _STREAMS,
    "flink": _FLINK,
    "spark": _SPARK,
    "storm": "nimbus.seeds storm.local.dir storm.zookeeper.servers supervisor.slots.ports",
    "pulsar": "brokerServicePort zookeeperServers metadataStoreUrl clusterName serviceUrl subscriptionName",
    "activemq": "brokerURL brokerName",
}
_FAMILIES: Final = {
    "producer": ("ssl.", "sasl.", "metrics.", "enable.ssl.", "socket.", "go."),
    "consumer": ("ssl.", "sasl.", "metrics.", "enable.ssl.", "socket.", "go."),
    "share_group": ("ssl.", "sasl.", "metrics.", "share.", "group.share."),
    "broker": (
        "ssl.", "sasl.", "metrics.", "listener.name.", "log.cleaner.", "quota.", "remote.log.", "group.",
        "delegation.token.", "controller.", "zookeeper.", "metadata.",
    ),
    "connect": (
        "ssl.", "sasl.", "metrics.", "producer.", "consumer.", "admin.", "config.providers.", "config.storage.",
        "offset.storage.", "status.storage.", "listeners.https.", "rest.", "key.converter.", "value.converter.",
    ),
    "connector": (
        "transforms.", "predicates.", "topic.creation.", "producer.override.", "consumer.override.",
        "admin.override.", "errors.", "key.converter.", "value.converter.", "header.converter.",
    ),
    "streams": (
        "ssl.", "sasl.", "metrics.", "producer.", "consumer.", "admin.", "main.consumer.", "restore.consumer.",
        "global.consumer.", "topic.", "rack.aware.", "client.tag.",
    ),
    "flink": (
        "jobmanager.", "taskmanager.", "execution.", "state.", "rest.", "parallelism.", "pipeline.", "table.",
        "high-availability.", "restart-strategy.", "metrics.", "env.", "kubernetes.", "sink.", "scan.", "properties.",
        "security.", "web.", "io.", "classloader.", "historyserver.", "cluster.", "akka.", "pekko.", "blob.", "fs.",
        "s3.", "yarn.", "job-result-store.", "process.", "key.", "value.", "heartbeat.",
    ),
    "spark": ("spark.", "kafka."),
    "storm": ("topology.", "storm.", "nimbus.", "supervisor.", "ui.", "worker.", "kafka."),
    "pulsar": (
        "managedLedger", "bookkeeper", "broker", "ttl", "journal", "subscription", "producer", "consumer", "topic",
        "namespace", "ledger", "loadBalancer", "transactionCoordinator", "ack",
    ),
    "activemq": ("wireFormat.", "transport."),
}  # fmt: skip
"""Prefixes of names that are too many to list, or end as users choose; a prefix without a dot excludes dotted names."""

_DISTINCTIVE_FAMILIES: Final = {
    "producer": ("ssl.", "sasl."),
    "consumer": ("ssl.", "sasl."),
    "share_group": ("share.", "group.share."),
    "broker": ("listener.name.", "log.cleaner.", "remote.log.", "zookeeper."),
    "connect": ("config.storage.", "offset.storage.", "status.storage.", "listeners.https."),
    "connector": ("transforms.", "errors.", "topic.creation.", "producer.override.", "consumer.override."),
    "streams": ("main.consumer.", "restore.consumer.", "global.consumer."),
    "flink": (
        "jobmanager.",
        "taskmanager.",
        "execution.",
        "state.backend",
        "parallelism.",
        "restart-strategy.",
    ),
    "spark": ("spark.",),
    "storm": ("topology.", "storm.", "nimbus.", "supervisor."),
    "pulsar": ("managedLedger", "bookkeeper", "brokerService", "loadBalancer", "transactionCoordinator"),
    "activemq": ("wireFormat.",),
}
"""Prefixes that no other program's settings have at the top of a file."""

_FRAMEWORK_NAMES: Final = {
    "producer": {
        "transactionidprefix": "transactional.id",
        "transactiontransactionidprefix": "transactional.id",
        "requiredacks": "acks",
    },
    "consumer": {
        "startoffset": "auto.offset.reset",
        "listenerackmode": "listener.ack-mode",
        "ackmode": "listener.ack-mode",
    },
    "broker": {"logretentionms": "log.retention.ms"},
    "streams": {"deserializationexceptionhandler": "deserialization.exception.handler"},
    "pulsar": {
        "consumersubscriptiontype": "subscriptionType",
        "producersendtimeout": "sendTimeoutMs",
        "producertopicname": "topic",
    },
    "activemq": {"jmstemplatedeliverymode": "persistent", "jmstemplatetimetolive": "timeToLive"},
}
"""Names of settings in frameworks, normalized."""

_AMBIGUOUS_NAMES: Final = frozenset(
    (
        "name", "topic", "topics", "retries", "partitions", "connector", "format", "client.id", "group.id", "listeners",
        "security.protocol", "request.timeout.ms", "metric.reporters", "debug", "assign", "subscribe", "predicates",
        "state.dir", "poll.ms", "log.dir", "log.dirs", "batch.size", "sink", "api", "persistent", "receipt",
        "clusterName", "retry.backoff.ms", "session.timeout.ms", "transforms", "max.connections", "node.id",
        "schema.registry.url", "compression.level", "compression.type", "partitioner", "log_level",
        "failure-strategy", "commit-strategy",
    )
)  # fmt: skip
"""Names that other programs use too: they do not show which program a file configures."""

_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR: Final = re.compile(r"[^A-Za-z0-9]+")


def normalized(name: str) -> str:
    """Return the name in lower case without separators, so that all styles of writing are equal.

    >>> normalized("auto-offset-reset"), normalized("AutoOffsetReset"), normalized("AUTO_OFFSET_RESET")
    ('autooffsetreset', 'autooffsetreset', 'autooffsetreset')
    """
    return _SEPARATOR.sub("", name).lower()


def tokens(text: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case.

    >>> tokens("consumerProperties"), tokens("order-consumer")
    (('consumer', 'properties'), ('order', 'consumer'))
    """
    return tuple(word.lower() for word in _SEPARATOR.split(_CAMEL_CASE.sub(" ", text)) if word)


@cache
def names_of(section: str) -> frozenset[str]:
    """Return the names that the part's program knows, without families."""
    return frozenset(_KNOWN_NAMES[section].split()) | frozenset(CHECKED_SETTINGS[section])


@cache
def _by_normalized_name(section: str) -> dict[str, str]:
    names = {normalized(name): name for name in sorted(names_of(section))}
    return {
        **names,
        **{normalized(name): name for name in CHECKED_SETTINGS[section]},
        **_FRAMEWORK_NAMES.get(section, {}),
    }


def is_exact(section: str, name: str) -> bool:
    """Return whether the part's program knows a setting of exactly this name.

    >>> is_exact("consumer", "auto.offset.reset"), is_exact("consumer", "auto-offset-reset")
    (True, False)
    """
    if name in names_of(section):
        return True
    return any(
        name.startswith(family) and ("." in family or "." not in name) for family in _FAMILIES[section]
    )


def is_named(section: str, name: str) -> bool:
    """Return whether a name, in any style, is a listed name of the part and not only a family's member.

    >>> is_named("spark", "failOnDataLoss"), is_named("spark", "spark.options.failOnDataLoss")
    (True, False)
    """
    return name in names_of(section) or normalized(name) in _by_normalized_name(section)


def known_name(section: str, name: str) -> str | None:
    """Return the setting's name as the program writes it, or None if it is not known.

    >>> known_name("consumer", "auto-offset-reset"), known_name("consumer", "spring.kafka.x")
    ('auto.offset.reset', None)
    """
    return name if is_exact(section, name) else _by_normalized_name(section).get(normalized(name))


def is_distinctive(section: str, name: str) -> bool:
    """Return whether a setting of that name proves that a part of this kind is configured."""
    return name in names_of(section) and name not in _AMBIGUOUS_NAMES


def is_distinctive_alone(section: str, name: str) -> bool:
    """Return whether one such setting at the top of a file proves that the file configures the part."""
    if name in _AMBIGUOUS_NAMES:
        return name in ("topics", "group.id", "security.protocol")
    return name in names_of(section) or name.startswith(_DISTINCTIVE_FAMILIES[section])
