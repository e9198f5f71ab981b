"""The defaults of settings, by program and version.

Only settings that a rule checks. A row holds from `since` up to but excluding `until`. Rows of one setting that differ
only in `where` hold at the same time; only the pipeline's author knows which applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tieout.linting.versions import Versions


@dataclass(frozen=True)
class Default:
    """The default of a setting in a range of a program's versions."""

    software: str
    setting: str
    value: str
    since: str = ""
    until: str = ""
    where: str = ""

    @property
    def words(self) -> str:
        """The value and its versions as text.

        >>> Default("java", "acks", "1", until="3.0").words
        '1 before 3.0'
        """
        since = f" from {self.since}" if self.since else ""
        until = f" before {self.until}" if self.until else ""
        return f"{self.value}{since}{until}{' ' + self.where if self.where else ''}"


CLIENTS: Final = ("java", "librdkafka", "kafka-python")
"""The Kafka clients whose defaults are known. Clients that wrap librdkafka count as librdkafka."""

CLIENT_ALIASES: Final = {
    "confluent-kafka": "librdkafka",
    "confluent-kafka-python": "librdkafka",
    "confluent-kafka-go": "librdkafka",
    "confluent-kafka-dotnet": "librdkafka",
    "kafka-clients": "java",
}

OLDEST: Final = {"kafka": "2.1", "librdkafka": "1.0"}
"""The oldest version assumed if a contract names none: older clients cannot talk to a current Kafka."""

_KAFKA: Final = {0: 11, 1: 1, 2: 8, 3: 9, 4: None}
RELEASED: Final[Mapping[str, Mapping[int, int | None]]] = {
    **dict.fromkeys(("java", "kafka", "connect", "streams", "share_group"), _KAFKA),
    "librdkafka": {0: 11, 1: 9, 2: None},
    "kafka-python": {0: 10, 1: 4, 2: None, 3: None},
}
"""The last minor version of each major one, None if more may follow: Kafka's downloads, the releases of the others.
A version that was never released is probably another program's, such as Java's."""

_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"

DEFAULTS: Final = (
    # Kafka's own client: Apache Kafka documentation, Upgrading (notable changes in 2.1, 3.0, 3.0.1, 3.1.1), KIP-679
    Default("java", "acks", "1", until="3.0"),
    Default("java", "acks", "all", since="3.0"),
    Default("java", "enable.idempotence", "false", until="3.0.1"),
    Default("java", "enable.idempotence", "true", since="3.0.1", until="3.1"),
    Default("java", "enable.idempotence", "false", since="3.1", until="3.1.1"),
    Default("java", "enable.idempotence", "true", since="3.1.1"),
    Default("java", "retries", "0", until="2.1"),
    Default("java", "retries", "2147483647", since="2.1"),
    Default("java", _IN_FLIGHT, "5"),
    Default("java", "transaction.timeout.ms", "60000"),
    Default("java", "enable.auto.commit", "true"),
    Default("java", "auto.offset.reset", "latest"),
    Default("java", "isolation.level", "read_uncommitted"),
    # librdkafka: CONFIGURATION.md; CHANGELOG.md of 1.5.2; release notes of 1.0.0
    Default("librdkafka", "acks", "1", until="1.0"),
    Default("librdkafka", "acks", "all", since="1.0"),
    Default("librdkafka", "enable.idempotence", "false"),
    Default("librdkafka", "retries", "2", until="1.5.2"),
    Default("librdkafka", "retries", "2147483647", since="1.5.2"),
    Default("librdkafka", _IN_FLIGHT, "1000000"),
    Default("librdkafka", "transaction.timeout.ms", "60000"),
    Default("librdkafka", "enable.auto.commit", "true"),
    Default("librdkafka", "enable.auto.offset.store", "true"),
    Default("librdkafka", "auto.offset.reset", "latest"),
    Default("librdkafka", "isolation.level", "read_committed"),
    # kafka-python: its changelog of 2.2.0 and 3.0.0
    Default("kafka-python", "acks", "1", until="3.0"),
    Default("kafka-python", "acks", "all", since="3.0"),
    Default("kafka-python", "enable.idempotence", "false", until="3.0"),
    Default("kafka-python", "enable.idempotence", "true", since="3.0"),
    Default("kafka-python", "retries", "0", until="2.2"),
    Default("kafka-python", "retries", "inf", since="2.2"),
    Default("kafka-python", _IN_FLIGHT, "5"),
    Default("kafka-python", "transaction.timeout.ms", "60000"),
    Default("kafka-python", "enable.auto.commit", "true"),
    Default("kafka-python", "auto.offset.reset", "latest"),
    Default("kafka-python", "isolation.level", "read_uncommitted"),
    # Kafka's brokers: Apache Kafka documentation, Broker Configs and Upgrading (0.11, 2.0)
    Default("kafka", "min.insync.replicas", "1"),
    Default("kafka", "unclean.leader.election.enable", "true", until="0.11"),
    Default("kafka", "unclean.leader.election.enable", "false", since="0.11"),
    Default("kafka", "offsets.topic.replication.factor", "3"),
    Default("kafka", "transaction.state.log.replication.factor", "3"),
    Default("kafka", "offsets.retention.minutes", "1440", until="2.0"),
    Default("kafka", "offsets.retention.minutes", "10080", since="2.0"),
    Default("kafka", "transaction.max.timeout.ms", "900000"),
    Default("kafka", "retention.ms", "604800000"),
    # Share groups: the same documentation, Share Consumer Configs and Group Configs
    Default("share_group", "share.acknowledgement.mode", "implicit"),
    Default("share_group", "share.auto.offset.reset", "latest"),
    Default("share_group", "share.isolation.level", "read_uncommitted"),
    # Kafka Connect and Kafka Streams: the same documentation
    Default("connect", "exactly.once.source.support", "disabled"),
    Default("connect", "offset.flush.interval.ms", "60000"),
    Default("connector", "errors.tolerance", "none"),
    Default("connector", "exactly.once.support", "requested"),
    Default("streams", "processing.guarantee", "at_least_once"),
    Default("streams", "producer.transaction.timeout.ms", "10000", where="with exactly_once_v2"),
    # Flink: its documentation, Apache Kafka Connector and Configuration
    Default("flink", "sink.delivery-guarantee", "none", where="in the DataStream API"),
    Default("flink", "sink.delivery-guarantee", "at-least-once", where="in SQL"),
    Default("flink", "execution.checkpointing.mode", "exactly_once"),
    Default(
        "flink", "execution.checkpointing.externalized-checkpoint-retention", "no_externalized_checkpoints"
    ),
    Default("flink", "properties.transaction.timeout.ms", "3600000"),
    Default("flink", "properties.isolation.level", "read_uncommitted"),
    # Spark: Structured Streaming + Kafka Integration Guide
    Default("spark", "failOnDataLoss", "true"),
    Default("spark", "startingOffsets", "latest"),
    Default("spark", "kafka.isolation.level", "read_uncommitted"),
    Default("spark", "spark.streaming.kafka.allowNonConsecutiveOffsets", "false"),
    # DStreams hand these to Kafka's own consumer: Spark Streaming + Kafka Integration Guide
    Default("spark", "enable.auto.commit", "true"),
    Default("spark", "auto.offset.reset", "latest"),
    Default("spark", "isolation.level", "read_uncommitted"),
    # Storm: conf/defaults.yaml; the javadoc of KafkaSpoutConfig
    Default("storm", "processing.guarantee", "at_least_once"),
    Default("storm", "topology.message.timeout.secs", "30"),
    # Pulsar: PIP-391; conf/broker.conf, conf/bookkeeper.conf; Pulsar documentation, Pulsar clients
    Default("pulsar", "brokerDeduplicationEnabled", "false"),
    Default("pulsar", "sendTimeoutMs", "30000"),
    Default("pulsar", "journalSyncData", "true"),
    Default("pulsar", "managedLedgerDefaultAckQuorum", "2"),
    Default("pulsar", "ttlDurationDefaultInSeconds", "0"),
    Default("pulsar", "acknowledgmentAtBatchIndexLevelEnabled", "false", until="4.1"),
    Default("pulsar", "acknowledgmentAtBatchIndexLevelEnabled", "true", since="4.1"),
    Default("pulsar", "subscriptionType", "exclusive"),
    # ActiveMQ Classic: its documentation, KahaDB and Connection Configuration
    Default("activemq", "persistent", "true"),
    Default("activemq", "useAsyncSend", "false"),
    Default("activemq", "journalDiskSyncStrategy", "always"),
    Default("activemq", "timeToLive", "0"),
    Default("activemq", "ignoreMissingJournalfiles", "false"),
)


def defaults_of(software: tuple[str, ...], setting: str, versions: Versions) -> Iterator[Default]:
    """Yield the defaults of the setting that apply to some of the programs' versions."""
    for default in DEFAULTS:
        is_match = default.software in software and default.setting == setting
        if is_match and versions.overlap(default.since, default.until):
            yield default
