"""Samples of a topic's newest records, for authors of contracts; each runs its own Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tieout import settings
from tieout.contracts import OFFSETS_TOPIC, STATE_TOPIC, KafkaSource
from tieout.engine.kafka.topics import topic_names
from tieout.engine.session import local_session, set_to, stop
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_connector import COMMITTED, INTERNAL_TOPICS
from tieout.engine.sources.kafka_log import refuse_other_ledgers
from tieout.engine.sources.source import Request
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, Ledger


def newest_records(
    spec: KafkaSource, place: str, ledger: Ledger, limit: int
) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values of about so many of the topic's newest records; runs its own Spark.

    A topic of positions may be looked at as well, such as that of Kafka Connect's workers.

    Raises:
        SourceError: where the topic is not there, the cluster cannot be asked, or a topic cannot be that ledger.
        ConnectionNotFoundError: where the connection is not defined.
    """
    with _sampled_cluster(spec.connection, ledger) as cluster:
        if ledger not in POSITION_LEDGERS:
            refuse_other_ledgers(cluster.request, spec.kind)
        return _newest(cluster, spec.connection, spec.topic, place, limit)


def newest_state(connection: str, place: str, limit: int) -> tuple[list[bytes], dict[str, str]]:
    """Return the keys of about so many of the newest records of share groups' state, and topics' names by their ids.

    Raises:
        SourceError: where the cluster has no such state, or cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    with _sampled_cluster(connection, Ledger.COMMITTED) as cluster:
        keys = [key or b"" for key, _ in _newest(cluster, connection, STATE_TOPIC, place, limit)]
        return keys, topic_names(cluster.request.spark, cluster.settings, place)


@contextmanager
def _sampled_cluster(connection: str, ledger: Ledger) -> Iterator[Cluster]:
    """Yield the cluster, with a Spark that runs as long as the block."""
    spark = local_session("tieout", settings.jars({"kafka"}))
    try:
        yield Cluster.of(connection, Request(spark, ledger, Path(), datetime.now(UTC)))
    finally:
        stop(spark)


def _newest(
    cluster: Cluster, connection: str, name: str, place: str, limit: int
) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values of about so many of a topic's newest records.

    Raises:
        SourceError: where the topic is not there, or the cluster cannot be asked.
    """
    topic = cluster.topic(name)
    if topic is None:
        raise SourceError(f"{place}: the cluster of {connection} has no topic {name}")
    each = limit // len(topic.partitions) + 1
    newest = tuple(replace(part, first=max(part.start, part.stable - each)) for part in topic.partitions)
    is_internal = name in (OFFSETS_TOPIC, STATE_TOPIC)
    with set_to(cluster.request.spark, INTERNAL_TOPICS if is_internal else {}):
        records = cluster.records(replace(topic, partitions=newest), COMMITTED)
        found = records.select("key", "value").limit(limit).collect()
    return [(_as_bytes(row["key"]), _as_bytes(row["value"])) for row in found]


def _as_bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
