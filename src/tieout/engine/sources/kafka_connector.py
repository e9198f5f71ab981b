"""Spark's own Kafka connector: the records of spans of offsets, as it gives them to a reader of an isolation level.

Source: Structured Streaming + Kafka Integration Guide of Apache Spark, "Creating a Kafka Source for Batch Queries".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from tieout.engine.materialising import no_rows
from tieout.engine.sources.failing_offsets import Span

COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"
INTERNAL_TOPICS: Final = {"spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true"}
"""The setting with which the connector plans reads of Kafka's own topics: the administration client leaves them out.

Source: `ConsumerStrategy.scala` of apache/spark, `retrieveAllPartitions`.
"""
HEADERS: Final = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
_LOADED: Final = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    f"headers {HEADERS}"
)


def loaded(
    spark: SparkSession,
    settings: Mapping[str, str],
    topic: str,
    spans: Mapping[int, Sequence[Span]],
    isolation: str,
) -> DataFrame:
    """Return the topic's records of these spans of its partitions' offsets, as the connector gives them.

    Args:
        spark: A session that has the connector.
        settings: How the cluster is reached, in the words of Kafka's clients.
        topic: Its name.
        spans: By the number of a partition; each holds an offset.
        isolation: `COMMITTED` or `UNCOMMITTED`: which records a reader is handed.
    """
    # The connector reads one span of each partition at a time.
    turns = [
        {number: each[turn] for number, each in spans.items() if turn < len(each)}
        for turn in range(max(map(len, spans.values()), default=0))
    ]
    parts = [_span(spark, settings, topic, spans, isolation) for spans in turns]
    return reduce(DataFrame.unionByName, parts) if parts else no_rows(spark, _LOADED)


def _span(
    spark: SparkSession, settings: Mapping[str, str], topic: str, spans: Mapping[int, Span], isolation: str
) -> DataFrame:
    """Return the records of one span of each of these partitions that holds an offset."""
    secured = {f"kafka.{name}": value for name, value in settings.items()}
    named = {
        "kafka.isolation.level": isolation,
        "assign": json.dumps({topic: list(spans)}),
        "startingOffsets": json.dumps({topic: {number: span[0] for number, span in spans.items()}}),
        "endingOffsets": json.dumps({topic: {number: span[1] for number, span in spans.items()}}),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    return spark.read.format("kafka").options(**secured, **named).load()
