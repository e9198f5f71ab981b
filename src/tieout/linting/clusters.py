"""The settings that a running cluster says it has: the broker's own, and before them those of the topic."""

from __future__ import annotations

from typing import Final

from tieout.contracts import Contract
from tieout.model import Ledger

_PLACE: Final = "settings.broker"


def cluster_settings(contract: Contract, connection: str) -> dict[str, str]:
    """Return what the cluster says, and of the topic that the contract names; without secrets.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where it is none to a cluster, or that does not answer, refuses, or has no such topic.
    """
    from tieout.brokers.cluster import Cluster  # noqa: PLC0415 - brings librdkafka

    cluster = Cluster.of(connection, _PLACE)
    topic = _topic(contract)
    return {**cluster.broker_settings(), **(cluster.topic_settings(topic) if topic else {})}


def _topic(contract: Contract) -> str | None:
    """Return the topic whose messages are judged: the log's, else the first ledger's that is one."""
    return next(iter(topics_of(contract)), None)


def topics_of(contract: Contract) -> tuple[str, ...]:
    """Return the topics that the contract's ledgers name, the log's first."""
    order = (Ledger.LOG, *contract.ledgers)
    sources = (contract.ledgers[ledger].source for ledger in order if ledger in contract.ledgers)
    return tuple(dict.fromkeys(topic for source in sources if (topic := getattr(source, "topic", None))))
