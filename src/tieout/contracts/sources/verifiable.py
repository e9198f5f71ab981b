"""The source kinds `verifiable_producer` and `verifiable_consumer`: what Kafka's own test clients print."""

from __future__ import annotations

from typing import Literal

from tieout.contracts.scalars import Model, Text


class VerifiableProducerSource(Model):
    """The output of a verifiable producer, which names neither itself nor its session: the contract can."""

    kind: Literal["verifiable_producer"] = "verifiable_producer"
    path: Text
    producer_id: Text | None = None
    session: Text | None = None


class VerifiableConsumerSource(Model):
    """The output of a verifiable consumer: records read and offsets committed."""

    kind: Literal["verifiable_consumer"] = "verifiable_consumer"
    path: Text
