"""The reader of the kind `kafka`: a topic as its cluster hands it out, through Spark's own connector.

For the ledger `log` what is not committed is always read, and with it the states of transactions, as far as the cluster
shows them to a consumer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tieout.contracts import KafkaSource
from tieout.engine.kafka.topics import Topic
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_connector import COMMITTED, UNCOMMITTED
from tieout.engine.sources.kafka_log import for_ledger, refuse_other_ledgers
from tieout.engine.sources.source import Reading, Request
from tieout.errors import SourceError
from tieout.model import Ledger


def read(spec: KafkaSource, request: Request) -> Reading:
    """Return the topic's records up to its end now, with their transactions' states unless committed ones are read.

    Raises:
        SourceError: for a ledger that a topic cannot be, for a `log` without what is not committed, where Spark lacks
            its connector, and where the cluster cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    refuse_other_ledgers(request, spec.kind)
    is_log = request.ledger is Ledger.LOG
    isolation = spec.isolation or (UNCOMMITTED if is_log else COMMITTED)
    if is_log and isolation == COMMITTED:
        raise SourceError(
            f"{request.place}.isolation: expected {UNCOMMITTED} or nothing for the log, found {COMMITTED}: "
            "both are read, and what is aborted or open shows in the difference"
        )
    cluster = Cluster.of(spec.connection, request)
    topic = cluster.topic(spec.topic)
    if topic is None:
        return cluster.without(spec.topic)
    return cluster.read_through(topic, partial(_reading, topic=topic, isolation=isolation))


def _reading(cluster: Cluster, topic: Topic, isolation: str) -> Reading:
    has_states = isolation == UNCOMMITTED
    ledger = cluster.request.ledger
    rows = cluster.with_states(topic) if has_states else cluster.records(topic, isolation)
    reading = cluster.reading(topic, rows, isolation)
    cut_partitions = () if ledger is Ledger.LOG else cluster.cut_partitions(topic)
    return for_ledger(replace(reading, cut_partitions=cut_partitions), ledger)
