"""Sources: one reader a kind, and the conforming that all share. A further kind is one file and one entry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tieout.engine.sources import (
    connect_files,
    connect_offsets,
    files,
    flink_checkpoints,
    flink_prepared,
    jdbc,
    kafka,
    kafka_consumer_groups,
    kafka_dump_log,
    kafka_offsets,
    kafka_segments,
    kafka_share_group,
    kahadb,
    pulsar,
    pulsar_cursor,
    spark_checkpoint,
    spark_files,
    trident,
    verifiable_consumer,
    verifiable_producer,
)
from tieout.engine.sources.source import Reader

READERS: Final[Mapping[str, Reader[Any]]] = MappingProxyType(
    {
        "files": files.read,
        "jdbc": jdbc.read,
        "kafka": kafka.read,
        "kafka_segments": kafka_segments.read,
        "kafka_dump_log": kafka_dump_log.read,
        "kafka_consumer_groups": kafka_consumer_groups.read,
        "kafka_offsets": kafka_offsets.read,
        "kafka_share_group": kafka_share_group.read,
        "kahadb": kahadb.read,
        "connect_files": connect_files.read,
        "connect_offsets": connect_offsets.read,
        "flink_checkpoints": flink_checkpoints.read,
        "flink_prepared": flink_prepared.read,
        "pulsar": pulsar.read,
        "pulsar_cursor": pulsar_cursor.read,
        "spark_checkpoint": spark_checkpoint.read,
        "spark_files": spark_files.read,
        "trident": trident.read,
        "verifiable_producer": verifiable_producer.read,
        "verifiable_consumer": verifiable_consumer.read,
    }
)
"""The reader of each kind of source that a contract can name."""
