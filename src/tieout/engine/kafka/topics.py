"""Reads the state of a topic or a group from a cluster, with Kafka's own administration client, which is in Spark.

The client runs in the driver's Java machine: executors need nothing, and it reaches the clusters that Spark reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tieout.brokers import without_secrets
from tieout.contracts.times import epoch_millis
from tieout.engine.evidence import EARLIEST_PLAUSIBLE, plausible
from tieout.engine.session import has_class
from tieout.errors import SourceError, SourceUnreachableError

CONNECTOR: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_TIMEOUT_MILLIS: Final = 20_000
_UNKNOWN: Final = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
_TO_CONFIGURE: Final = (
    "org.apache.kafka.common.errors.AuthenticationException",
    "org.apache.kafka.common.errors.AuthorizationException",
    "org.apache.kafka.common.errors.InvalidTopicException",
    "org.apache.kafka.common.config.ConfigException",
)


@dataclass(frozen=True)
class TopicPartition:
    """One partition's bounds: its first offset, its last stable one, and the one that its next record gets.

    `first` is where it is read from: its first offset, unless a later time was asked for. `begins_at` is the time
    of the first record that has one and is left, where there were others before; None as well where none is left.
    """

    number: int
    start: int
    first: int
    stable: int
    end: int
    begins_at: datetime | None = None


@dataclass(frozen=True)
class Topic:
    """A topic as its cluster describes it; `cleanup_policy` is None where the cluster does not tell this user."""

    name: str
    cluster_id: str
    topic_id: str
    cleanup_policy: str | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class Position:
    """Where a group stands in a partition, and the offset that the partition's next record gets."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    end: int


def require_connector(spark: SparkSession, place: str) -> None:
    """Refuse a session that cannot read topics.

    Raises:
        SourceError: where Spark's Kafka connector is not among its jars.
    """
    if not has_class(spark, CONNECTOR):
        raise SourceError(
            f"{place}: reading a Kafka topic needs Spark's Kafka connector, which is not among Spark's jars: "
            "fetch it with `make jars` (needs Maven), or name a folder that has it with TIEOUT_JARS"
        )


def described_topic(
    spark: SparkSession, settings: Mapping[str, str], topic: str, place: str, since: datetime | None = None
) -> Topic | None:
    """Return what the cluster says of the topic now, or None where it has no topic of that name.

    Each partition is to be read from its first record stamped at `since` or later, or from its first offset.
    The last stable offsets are asked before the ends: a transaction that ends meanwhile counts as open.

    Raises:
        SourceUnreachableError: where no broker answers.
        SourceError: where the brokers refuse the login, the user or the name; without a secret.
    """
    jvm: Any = spark.sparkContext._jvm
    with _translated_errors(settings, place), _administration(jvm, settings) as client:
        cluster = client.describeCluster().clusterId().get()
        try:
            names = jvm.java.util.Collections.singletonList(topic)
            found = client.describeTopics(names).allTopicNames().get().get(topic)
        except Py4JJavaError as error:
            if _UNKNOWN in _kinds(error):
                return None
            raise
        numbers = sorted(partition.partition() for partition in found.partitions())
        earliest, latest = _spec(jvm, "earliest"), _spec(jvm, "latest")
        starts = _offsets(jvm, client, topic, numbers, earliest, "READ_UNCOMMITTED")
        stable = _offsets(jvm, client, topic, numbers, latest, "READ_COMMITTED")
        ends = _offsets(jvm, client, topic, numbers, latest, "READ_UNCOMMITTED")
        begins = _first_times(jvm, client, topic, [number for number in numbers if starts[number] > 0])
        firsts = starts
        if since is not None:
            stamped = _spec(jvm, "forTimestamp", epoch_millis(since))
            found_at = _offsets(jvm, client, topic, numbers, stamped, "READ_UNCOMMITTED")
            # Where nothing is stamped so late, the offset is -1; the end is where such a record would be.
            firsts = {n: min(found_at[n] if found_at[n] >= 0 else ends[n], ends[n]) for n in numbers}
        return Topic(
            name=topic,
            cluster_id=str(cluster),
            topic_id=str(found.topicId().toString()),
            cleanup_policy=_cleanup_policy(jvm, client, topic),
            partitions=tuple(
                TopicPartition(n, starts[n], firsts[n], stable[n], ends[n], begins.get(n)) for n in numbers
            ),
        )


def topic_names(spark: SparkSession, settings: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the names of the topics that the cluster shows this user, by their ids; not those that are Kafka's own.

    Raises:
        SourceUnreachableError: where no broker answers.
        SourceError: where the brokers refuse the login or the user; without a secret.
    """
    jvm: Any = spark.sparkContext._jvm
    with _translated_errors(settings, place), _administration(jvm, settings) as client:
        found = client.listTopics().listings().get().toArray()
        return {str(each.topicId().toString()): str(each.name()) for each in found if not each.isInternal()}


def group_positions(
    spark: SparkSession, settings: Mapping[str, str], group: str, place: str
) -> tuple[Position, ...]:
    """Return where the group stands now, the ends being asked afterwards; nothing of a group that is not known.

    Raises:
        SourceUnreachableError: where no broker answers.
        SourceError: where the brokers refuse the login or the user; without a secret.
    """
    jvm: Any = spark.sparkContext._jvm
    with _translated_errors(settings, place), _administration(jvm, settings) as client:
        found = client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
        held = [(each.getKey(), each.getValue()) for each in found.entrySet() if each.getValue() is not None]
        numbers: dict[str, list[int]] = {}
        for where, _ in held:
            numbers.setdefault(where.topic(), []).append(where.partition())
        ends = {
            topic: _offsets(jvm, client, topic, known, _spec(jvm, "latest"), "READ_UNCOMMITTED")
            for topic, known in numbers.items()
        }
        return tuple(
            Position(
                topic=where.topic(),
                partition=where.partition(),
                offset=int(at.offset()),
                leader_epoch=at.leaderEpoch().orElse(None),
                end=ends[where.topic()][where.partition()],
            )
            for where, at in held
        )


@contextmanager
def _administration(jvm: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    properties.setProperty("default.api.timeout.ms", str(_TIMEOUT_MILLIS))
    properties.setProperty("request.timeout.ms", str(_TIMEOUT_MILLIS // 2))
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    try:
        yield client
    finally:
        client.close(jvm.java.time.Duration.ofSeconds(1))


def _spec(jvm: Any, kind: str, *values: int) -> Any:
    """Return which offset is asked for: the `earliest`, the `latest`, or the first one `forTimestamp`."""
    return getattr(jvm.org.apache.kafka.clients.admin.OffsetSpec, kind)(*values)


def _offsets(
    jvm: Any, client: Any, topic: str, numbers: Sequence[int], spec: Any, isolation: str
) -> dict[int, int]:
    """Return one offset of each partition, as a reader of that isolation sees it; -1 where there is none."""
    found = _listed(jvm, client, topic, numbers, spec, isolation)
    return {number: int(one.offset()) for number, one in found.items()}


def _first_times(jvm: Any, client: Any, topic: str, numbers: Sequence[int]) -> dict[int, datetime]:
    """Return the time of each partition's first record; leave out partitions without a plausible one."""
    since = _spec(jvm, "forTimestamp", epoch_millis(EARLIEST_PLAUSIBLE))
    found = _listed(jvm, client, topic, numbers, since, "READ_UNCOMMITTED") if numbers else {}
    times = {number: plausible(int(one.timestamp())) for number, one in found.items()}
    return {number: at for number, at in times.items() if at is not None}


def _listed(
    jvm: Any, client: Any, topic: str, numbers: Sequence[int], spec: Any, isolation: str
) -> dict[int, Any]:
    """Return what the brokers list of each partition: an offset, and the time of its record where they know it."""
    admin, common = jvm.org.apache.kafka.clients.admin, jvm.org.apache.kafka.common
    places = {number: common.TopicPartition(topic, number) for number in numbers}
    requested = jvm.java.util.HashMap()
    for place in places.values():
        requested.put(place, spec)
    options = admin.ListOffsetsOptions(common.IsolationLevel.valueOf(isolation))
    offsets = client.listOffsets(requested, options).all().get()
    return {number: offsets.get(place) for number, place in places.items()}


def _cleanup_policy(jvm: Any, client: Any, topic: str) -> str | None:
    """Return the topic's policy, None where this user may not see it."""
    config = jvm.org.apache.kafka.common.config
    resource = config.ConfigResource(config.ConfigResource.Type.valueOf("TOPIC"), topic)
    try:
        found = client.describeConfigs(jvm.java.util.Collections.singletonList(resource)).all().get()
    except Py4JJavaError as error:
        if "org.apache.kafka.common.errors.AuthorizationException" in _kinds(error):
            return None
        raise
    return str(found.get(resource).get("cleanup.policy").value())


@contextmanager
def _translated_errors(settings: Mapping[str, str], place: str) -> Iterator[None]:
    """Turn the client's exceptions into Tieout's errors.

    Raises:
        SourceUnreachableError: for what may pass.
        SourceError: for what somebody has to change.
    """
    try:
        yield
    except Py4JJavaError as error:
        kinds = _kinds(error)
        lines = _deepest(error.java_exception).strip().splitlines()
        text = without_secrets(next(iter(lines), "no reason given"), settings)
        servers = settings["bootstrap.servers"]
        if any(kind in kinds for kind in _TO_CONFIGURE):
            raise SourceError(f"{place}.connection: {servers}: {text}") from None
        raise SourceUnreachableError(f"{place}.connection: {servers} does not answer: {text}") from None
    except Py4JError as error:
        raise SourceUnreachableError(
            f"{place}.connection: Spark's Java machine is gone: {type(error).__name__}"
        ) from None


def _kinds(error: Py4JJavaError) -> set[str]:
    """Return the names of the classes, and of their parents, of the exception and of its causes."""
    names: set[str] = set()
    thrown = error.java_exception
    while thrown is not None:
        kind = thrown.getClass()
        while kind is not None:
            names.add(str(kind.getName()))
            kind = kind.getSuperclass()
        thrown = thrown.getCause()
    return names


def _deepest(thrown: Any) -> str:
    """Return what the first cause says."""
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    return str(thrown.getMessage() or thrown.getClass().getName())
