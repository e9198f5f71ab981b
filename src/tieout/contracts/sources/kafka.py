"""The source kinds of Kafka: its brokers' data, and the output of its tools."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from tieout.contracts.scalars import ConnectionName, Model, PartitionCount, Text
from tieout.contracts.sources.connect import ConnectOffsetsSource
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths
from tieout.contracts.sources.share_groups import STATE_TOPIC, KafkaShareGroupSource

CleanupPolicy = Literal["delete", "compact", "compact,delete"]
Isolation = Literal["read_uncommitted", "read_committed"]

OFFSETS_TOPIC: Final = "__consumer_offsets"
"""The topic in which Kafka keeps the positions of all groups."""


class KafkaSource(Model):
    """A topic as its cluster hands it out: what was in it when the run began.

    `isolation` is whether the records of aborted and open transactions are read. The ledger `log` needs them, and has
    them by default; any other leaves them out by default.
    """

    kind: Literal["kafka"] = "kafka"
    connection: ConnectionName
    topic: Text
    isolation: Isolation | None = None


class KafkaSegmentsSource(Copy):
    """A topic's log in segment files: behind each path a broker's log directory, partition folders, or segments.

    `partitions` is how many the topic has: without it the highest that is there is taken for the last.
    """

    kind: Literal["kafka_segments"] = "kafka_segments"
    path: Paths
    topic: Text
    partitions: PartitionCount | None = None
    cleanup_policy: CleanupPolicy | None = None


class KafkaDumpLogSource(Copy):
    """A topic's log as `kafka-dump-log` prints it; `topic` and `partition` name what lines of no other place are of.

    With `topic` alone, only that topic's part of the text is read.
    """

    kind: Literal["kafka_dump_log"] = "kafka_dump_log"
    path: Paths
    topic: Text | None = None
    partition: Annotated[int, Field(ge=0)] | None = None
    partitions: PartitionCount | None = None
    cleanup_policy: CleanupPolicy | None = None

    @model_validator(mode="after")
    def _names_a_place(self) -> Self:
        if self.partition is not None and self.topic is None:
            raise ValueError("expected a topic beside partition, found none")
        return self


class KafkaConsumerGroupsSource(Copy):
    """Positions as they are: from their cluster, or as `kafka-consumer-groups` prints or exports them.

    `group` is whose positions a cluster is asked for, and whose the rows of an export are that names no group.
    """

    kind: Literal["kafka_consumer_groups"] = "kafka_consumer_groups"
    connection: ConnectionName | None = None
    path: Paths | None = None
    group: Text | None = None

    @model_validator(mode="after")
    def _has_one_of_connection_and_path(self) -> Self:
        _refuse_neither_or_both(self.connection, self.path)
        if self.connection is not None and self.group is None:
            raise ValueError("expected the group whose positions the cluster is asked for")
        return self


class KafkaOffsetsSource(Copy):
    """A group's positions as history, from `__consumer_offsets`: its cluster, its segment files, or its formatted text.

    `partitions` is the broker's `offsets.topic.num.partitions`: it and the group's name say which partition holds them.
    A cluster says itself how many there are, and when it was asked.
    """

    kind: Literal["kafka_offsets"] = "kafka_offsets"
    connection: ConnectionName | None = None
    path: Paths | None = None
    format: Literal["segments", "formatter"] = "segments"
    group: Text
    partitions: PartitionCount = 50

    @model_validator(mode="after")
    def _has_one_of_connection_and_path(self) -> Self:
        _refuse_neither_or_both(self.connection, self.path)
        return self


def _refuse_neither_or_both(connection: str | None, path: tuple[str, ...] | None) -> None:
    if (connection is None) == (path is None):
        found = "neither" if path is None else "both"
        raise ValueError(f"expected either connection or path, found {found}")


def cluster_topic(source: object) -> tuple[str, str] | None:
    """Return the connection and topic of a source that is read from a running cluster, None for any other.

    >>> cluster_topic(KafkaOffsetsSource(connection="events", group="loader"))
    ('events', '__consumer_offsets')
    """
    if not isinstance(
        source,
        KafkaSource
        | KafkaOffsetsSource
        | KafkaConsumerGroupsSource
        | KafkaShareGroupSource
        | ConnectOffsetsSource,
    ):
        return None
    if source.connection is None:
        return None
    if isinstance(source, KafkaShareGroupSource):
        return source.connection, STATE_TOPIC
    topic = source.topic if isinstance(source, KafkaSource | ConnectOffsetsSource) else OFFSETS_TOPIC
    return None if topic is None else (source.connection, topic)
