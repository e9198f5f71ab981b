"""The sources of a ledger's rows: one module and one entry in `Source` per kind.

The engine has a reader for each; this package defines only their description in a contract.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from tieout.contracts.sources.activemq import KahaDbSource
from tieout.contracts.sources.connect import ConnectFilesSource, ConnectOffsetsSource
from tieout.contracts.sources.files import FilesSource
from tieout.contracts.sources.flink import FlinkCheckpointsSource, FlinkPreparedSource
from tieout.contracts.sources.jdbc import JdbcSource
from tieout.contracts.sources.kafka import (
    OFFSETS_TOPIC,
    KafkaConsumerGroupsSource,
    KafkaDumpLogSource,
    KafkaOffsetsSource,
    KafkaSegmentsSource,
    KafkaSource,
    cluster_topic,
)
from tieout.contracts.sources.pulsar import PulsarCursorSource, PulsarSource
from tieout.contracts.sources.share_groups import STATE_TOPIC, KafkaShareGroupSource
from tieout.contracts.sources.spark import SparkCheckpointSource, SparkFilesSource
from tieout.contracts.sources.storm import TridentSource
from tieout.contracts.sources.verifiable import VerifiableConsumerSource, VerifiableProducerSource

Source = Annotated[
    FilesSource
    | JdbcSource
    | KafkaSource
    | KafkaSegmentsSource
    | KafkaDumpLogSource
    | KafkaConsumerGroupsSource
    | KafkaOffsetsSource
    | KafkaShareGroupSource
    | VerifiableProducerSource
    | VerifiableConsumerSource
    | SparkCheckpointSource
    | SparkFilesSource
    | ConnectFilesSource
    | ConnectOffsetsSource
    | FlinkCheckpointsSource
    | FlinkPreparedSource
    | PulsarSource
    | PulsarCursorSource
    | KahaDbSource
    | TridentSource,
    Field(discriminator="kind"),
]

QUEUES: Final = frozenset({"kahadb", "kafka_share_group"})
"""Kinds of queues, whose messages are acknowledged one by one."""

__all__ = [
    "OFFSETS_TOPIC",
    "QUEUES",
    "STATE_TOPIC",
    "ConnectFilesSource",
    "ConnectOffsetsSource",
    "FilesSource",
    "FlinkCheckpointsSource",
    "FlinkPreparedSource",
    "JdbcSource",
    "KafkaConsumerGroupsSource",
    "KafkaDumpLogSource",
    "KafkaOffsetsSource",
    "KafkaSegmentsSource",
    "KafkaShareGroupSource",
    "KafkaSource",
    "KahaDbSource",
    "PulsarCursorSource",
    "PulsarSource",
    "Source",
    "SparkCheckpointSource",
    "SparkFilesSource",
    "TridentSource",
    "VerifiableConsumerSource",
    "VerifiableProducerSource",
    "cluster_topic",
]
