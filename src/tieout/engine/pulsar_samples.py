"""Samples the newest messages of a Pulsar topic that no contract describes yet. Spark is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from pydantic import ValidationError

from tieout.contracts import PulsarCursorSource, PulsarSource
from tieout.engine.sources.pulsar_topics import Partition, partitions_of, statistics_of
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_entries import Message, entry_in
from tieout.engine.systems.pulsar_positions import cursors_in
from tieout.errors import SourceError
from tieout.pulsar import OK, Administration, AnswerError

PREFIX: Final = "pulsar:"
_TOPIC: Final = f"{PREFIX}CONNECTION:TOPIC, such as pulsar:pulsar_default:public/default/orders"
_CURSOR: Final = (
    f"{PREFIX}CONNECTION:TOPIC:SUBSCRIPTION, such as pulsar:pulsar_default:public/default/orders:loader"
)


def newest_messages(text: str, place: str, limit: int) -> tuple[PulsarSource, list[Message]]:
    """Return the source that the text names, and up to `limit` of its topic's newest messages.

    Raises:
        SourceError: where there is no such topic, or it cannot be read.
        ConnectionNotFoundError: where the connection is not defined.
    """
    name, _, topic = text.removeprefix(PREFIX).partition(":")
    try:
        spec = PulsarSource(connection=name, topic=topic)
    except ValidationError:
        raise SourceError(f"{place} {text}: expected {_TOPIC}") from None
    broker = Administration.of(name, place)
    try:
        partitions = partitions_of(broker, spec)
        each = limit // max(1, len(partitions)) + 1
        found = (islice(_newest(broker, partition, each), each) for partition in partitions)
        messages = list(islice(chain.from_iterable(found), limit))
    except (FormatError, AnswerError) as error:
        raise SourceError(f"{place} {text}: {error}") from None
    finally:
        broker.close()
    if not partitions:
        raise SourceError(f"{place} {text}: the cluster of {name} has no topic {spec.topic_path}")
    return spec, messages


def named_cursor(text: str, place: str) -> PulsarCursorSource:
    """Return the source that the text names, whose subscription exists.

    Raises:
        SourceError: where there is no such topic or subscription, or the broker cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    name, _, path = text.removeprefix(PREFIX).partition(":")
    topic, _, subscription = path.rpartition(":")
    try:
        spec = PulsarCursorSource(connection=name, topic=topic, subscription=subscription)
    except ValidationError:
        raise SourceError(f"{place} {text}: expected {_CURSOR}") from None
    broker = Administration.of(name, place)
    known: set[str] = set()
    try:
        for partition in partitions_of(broker, spec):
            found = statistics_of(broker, partition)
            known |= set() if found is None else set(cursors_in(found.fields))
    except FormatError as error:
        raise SourceError(f"{place} {text}: {error}") from None
    finally:
        broker.close()
    if subscription not in known:
        names = ", ".join(sorted(known)) or "none"
        raise SourceError(f"{place} {text}: expected a subscription of the topic, found {names}")
    return spec


def _newest(broker: Administration, partition: Partition, limit: int) -> Iterator[Message]:
    """Yield the messages of the partition's newest entries; what cannot be read is passed over."""
    found = statistics_of(broker, partition)
    newest = [] if found is None else list(islice(found.ledgers.newest, limit))
    for ledger, entry in reversed(newest):
        answer = broker.get(f"{partition.path}/ledger/{ledger}/entry/{entry}")
        try:
            yield from () if answer.status != OK else entry_in(answer).messages
        except FormatError:
            continue
