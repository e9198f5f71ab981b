"""The linter's rules, one module per part of a pipeline, in the order of their findings."""

from __future__ import annotations

from typing import Final

from tieout.linting.rule import Rule
from tieout.linting.rules import (
    activemq,
    broker,
    connect,
    consumer,
    flink,
    producer,
    pulsar,
    share_groups,
    sinks,
    smallrye,
    spark,
    storm,
    streams,
)

RULES: Final[tuple[Rule, ...]] = (
    *producer.RULES,
    *consumer.RULES,
    *smallrye.RULES,
    *share_groups.RULES,
    *broker.RULES,
    *connect.RULES,
    *sinks.RULES,
    *streams.RULES,
    *flink.RULES,
    *spark.RULES,
    *storm.RULES,
    *pulsar.RULES,
    *activemq.RULES,
)
