"""Producing messages into topics, each once: all of them in one transaction, without those that are there already.

Killed at any moment, the transaction is aborted by the brokers, or by the next try: a producer that begins with the
same `transactional.id` ends what its predecessor left open, and no longer lets that write (Apache Kafka documentation,
Design, "Using Transactions"). Only then the next try looks for the header that every message carries, so what was
committed is found, whoever committed it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tieout.brokers.cluster import TIMEOUT_SECONDS, Cluster
from tieout.contracts import IDEMPOTENCE_HEADER
from tieout.errors import SourceError, SourceUnreachableError

_TRANSACTION_MILLIS: Final = 300_000
_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Outgoing:
    """A message to produce; without `partition` its key decides. Shows nothing of the content."""

    idempotence_key: str
    topic: str
    partition: int | None
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[tuple[str, bytes | None], ...] = field(default=(), repr=False)


def produce_once(
    cluster: Cluster, transactional_id: str, messages: Sequence[Outgoing], since: datetime
) -> int:
    """Produce the messages whose idempotence key no record has yet, all or none of them, and return how many these are.

    Args:
        cluster: Where to.
        transactional_id: Under which no two produce at once: who comes later stops who came before.
        messages: What to produce, in this order.
        since: When any of them can have been produced at the earliest: from then on the topics are looked through.

    Raises:
        SourceUnreachableError: where the brokers do not answer, or another transaction hides what is there already;
            nothing is produced then.
        SourceError: where they refuse, or have no such topic.
    """
    places = _places(cluster, messages)
    producer = _producer(cluster, transactional_id)
    with cluster.translated_errors():
        producer.init_transactions(TIMEOUT_SECONDS)
    known = {key for topic, numbers in places.items() for key in _keys(cluster, topic, numbers, since)}
    fresh = [message for message in messages if message.idempotence_key not in known]
    if fresh:
        _commit(cluster, producer, fresh, places)
    return len(fresh)


def _places(cluster: Cluster, messages: Iterable[Outgoing]) -> dict[str, tuple[int, ...]]:
    """Return each topic's partitions: a producer might make a topic that is not there.

    Raises:
        SourceError: where the cluster lacks one.
    """
    found = {topic: cluster.partitions(topic) for topic in sorted({one.topic for one in messages})}
    for topic, numbers in found.items():
        if not numbers:
            raise SourceError(
                f"{cluster.place}: {cluster.settings['bootstrap.servers']}: the cluster has no topic {topic}"
            )
    return found


def _producer(cluster: Cluster, transactional_id: str) -> Producer:
    own = {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": _TRANSACTION_MILLIS,
        # Where a Java producer would send a key, so that it stays with its kind.
        "partitioner": "murmur2_random",
        # How large a message may be is for the topic to say.
        "message.max.bytes": 1_000_000_000,
    }
    with cluster.translated_errors():
        return Producer({**cluster.client_settings(), **own})


def _commit(
    cluster: Cluster, producer: Producer, messages: Sequence[Outgoing], places: dict[str, tuple[int, ...]]
) -> None:
    """Produce the messages in one transaction.

    Raises:
        SourceUnreachableError: where it was not committed for a reason that may pass.
        SourceError: where the brokers refuse.
    """
    with cluster.translated_errors():
        producer.begin_transaction()
        try:
            for message in messages:
                _hand_over(producer, message, places[message.topic])
            _committed(producer)
        except KafkaException:
            with suppress(KafkaException):
                producer.abort_transaction(TIMEOUT_SECONDS)
            raise


def _hand_over(producer: Producer, message: Outgoing, numbers: Sequence[int]) -> None:
    """Give the message to the client, for its own partition where that is known and is there."""
    where = {"partition": message.partition} if message.partition in numbers else {}
    headers = [*message.headers, (IDEMPOTENCE_HEADER, message.idempotence_key.encode())]
    producer.produce(message.topic, message.value, message.key, headers=headers, **where)
    producer.poll(0)


def _committed(producer: Producer) -> None:
    """Commit; where no answer came, commit again, since the outcome is unknown then."""
    ends = time.monotonic() + 3 * TIMEOUT_SECONDS
    while True:
        try:
            producer.commit_transaction(TIMEOUT_SECONDS)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > ends:
                raise
        else:
            return


def _keys(cluster: Cluster, topic: str, numbers: Sequence[int], since: datetime) -> Iterator[str]:
    """Yield the idempotence keys of the topic's committed records from that time on.

    Raises:
        SourceUnreachableError: where an open transaction hides a part of them for too long.
    """
    ends = cluster.ends(topic, numbers, is_stable=False)
    starts = cluster.since(topic, numbers, since)
    spans = {
        number: (start, ends[number])
        for number, start in starts.items()
        if start is not None and start < ends[number]
    }
    if not spans:
        return
    settings = {
        "group.id": "tieout-replay",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    with cluster.translated_errors():
        consumer = Consumer({**cluster.client_settings(), **settings})
        try:
            consumer.assign([TopicPartition(topic, number, start) for number, (start, _) in spans.items()])
            yield from _read(cluster, consumer, {number: end for number, (_, end) in spans.items()})
        finally:
            consumer.close()


def _read(cluster: Cluster, consumer: Consumer, ends: dict[int, int]) -> Iterator[str]:
    """Yield the keys of the records before these offsets.

    Raises:
        SourceUnreachableError: where nothing more comes although there is more.
    """
    unread, waits_until = dict(ends), time.monotonic() + TIMEOUT_SECONDS
    while unread:
        messages = consumer.consume(_AT_ONCE, 1.0)
        for message in messages:
            error, number = message.error(), message.partition()
            if error is None:
                waits_until = time.monotonic() + TIMEOUT_SECONDS
                yield from (
                    value.decode(errors="replace")
                    for name, value in message.headers() or ()
                    if name == IDEMPOTENCE_HEADER and value is not None
                )
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            is_behind = message.offset() + (1 if error is None else 0) >= unread.get(number, 0)
            if is_behind:
                unread.pop(number, None)
        if unread and time.monotonic() > waits_until:
            raise SourceUnreachableError(
                f"{cluster.place}: {cluster.settings['bootstrap.servers']}: what is in the topic behind an open "
                "transaction of another producer cannot be read, so nothing was produced; try again when it has ended"
            )
