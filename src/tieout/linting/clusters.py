"""The settings of a running cluster: the broker's, overridden by those of the topic."""

from __future__ import annotations

from typing import Final

from tieout.contracts import Contract
from tieout.model import Ledger

_PLACE: Final = "settings.broker"


def cluster_settings(contract: Contract, connection: str) -> dict[str, str]:
    """Return the settings of the cluster and of the contract's topic, without secrets.

    Raises:
        ConnectionNotFoundError: if the connection is not defined.
        SourceError: if it is not a cluster's, or the cluster does not answer, refuses, or lacks the topic.
    """
    from tieout.brokers.cluster import Cluster  # noqa: PLC0415 - brings librdkafka

    cluster = Cluster.of(connection, _PLACE)
    topic = _topic(contract)
    return {**cluster.broker_settings(), **(cluster.topic_settings(topic) if topic else {})}


def _topic(contract: Contract) -> str | None:
    """Return the topic whose messages are judged: the log's, else that of the first ledger with a topic."""
    return next(iter(topics_of(contract)), None)


def topics_of(contract: Contract) -> tuple[str, ...]:
    """Return the topics of the contract's ledgers, the log's first."""
    order = (Ledger.LOG, *contract.ledgers)
    sources = (contract.ledgers[ledger].source for ledger in order if ledger in contract.ledgers)
    return tuple(dict.fromkeys(topic for source in sources if (topic := getattr(source, "topic", None))))
