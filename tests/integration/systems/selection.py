"""Which faults a run plays of each system: those of every run, or all of them."""

from __future__ import annotations

from typing import Final

from tests.integration.kafka_faults.selection import IS_LEFT_OUT, IS_WHOLE, VARIABLE, requested_values

__all__ = [
    "ALL",
    "IS_LEFT_OUT",
    "SELECTED",
    "TITLES",
    "VARIABLE",
    "judgements_of",
    "requested_values",
    "system_of",
]

TITLES: Final = {
    "streams": "Kafka Streams",
    "share": "Kafka share groups",
    "spark": "Spark Structured Streaming",
    "dstreams": "Spark Streaming, direct",
    "connect": "Kafka Connect",
    "flink": "Flink",
    "activemq": "ActiveMQ Classic",
    "pulsar": "Pulsar",
    "storm": "Storm and Trident",
}
"""The systems, by what begins the names of their plays."""
IN_EVERY_RUN: Final = {
    "streams-at-least-once": 1,
    "streams-exactly-once": 1,
    "share-before": 1,
    "spark-halted": 1,
    "dstreams-results-first": 1,
    "connect-table-insert": 1,
    "connect-table-upsert": 1,
    "flink-expired": 1,
    "activemq-auto": 1,
    "pulsar-sent-again": 1,
    "storm-at-least-once": 1,
}
"""Of each system a fault, of two what survives it, and how many of a play's judgements are made: each is a Spark job,
and costs seconds."""
OTHERS: Final = (
    *("dstreams-transaction", "flink-not-expired", "activemq-client-individual", "pulsar-deduplicated"),
    "storm-trident-plain",
    *("share-after", "share-unacknowledged", "share-rejected", "share-released"),
    *("share-outlived", "share-in-time"),
    *("spark-checkpoint", "spark-overrun", "spark-files", "dstreams-offsets-first"),
    *("connect-file-sink", "connect-ranges-names", "connect-ranges-group"),
    *("connect-dead-letters", "connect-no-dead-letters"),
    *(
        "connect-source-standalone",
        "connect-source-distributed",
        "connect-source-exact",
        "connect-source-truncated",
    ),
    *("flink-at-least-once", "flink-exactly-once", "flink-anew", "flink-restored"),
    *("flink-savepoint-twice", "flink-savepoint-once", "flink-torn-at-least-once", "flink-torn-exactly-once"),
    *("flink-files", "flink-files-older"),
    *(
        "activemq-poison",
        "activemq-expiry",
        "activemq-not-archived",
        "activemq-unanswered",
        "activemq-rolled-back",
        "activemq-jms-receive",
        "activemq-jms-listener",
        "activemq-jms-not-persistent",
        "activemq-jms-async",
    ),
    *("pulsar-unacknowledged", "pulsar-keyed", "pulsar-batch", "pulsar-batch-index", "pulsar-expired"),
    *("pulsar-transactions", "pulsar-committed", "pulsar-shared", "pulsar-subscriptions"),
    *("pulsar-order-shared", "pulsar-order-key-shared"),
    *("storm-at-most-once", "storm-no-ackers", "storm-acker", "storm-timeout-short", "storm-timeout-long"),
    *("storm-trident-opaque", "storm-trident-transactional", "storm-trident-mixed", "storm-trident-grown"),
)
"""What `make systems` plays besides; it makes all judgements."""
ALL: Final = (*IN_EVERY_RUN, *OTHERS)
SELECTED: Final = ALL if IS_WHOLE else tuple(IN_EVERY_RUN)


def judgements_of(play: str) -> int | None:
    """Return how many of the play's judgements this run makes, None for all."""
    return None if IS_WHOLE else IN_EVERY_RUN[play]


def system_of(play: str) -> str:
    """Return the system that a play is of.

    >>> system_of("streams-at-least-once")
    'streams'
    """
    return play.partition("-")[0]
