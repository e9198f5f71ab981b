"""Requests shared by the readers of Pulsar: the partitions of a topic, and the statistics of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from tieout.contracts import PulsarCursorSource, PulsarSource
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_positions import Ledgers, ledgers_in, stats_in
from tieout.pulsar import MISSING, AnswerError, Answers

_MOST_PARTITIONS: Final = 1 << 16


@dataclass(frozen=True)
class Partition:
    """One partition, or the whole of a topic that has none; `path` is its path in the broker's REST API."""

    number: int
    path: str


@dataclass(frozen=True)
class Statistics:
    """A broker's statistics of one partition; `requested_at` is before the request, `answered_at` after the answer."""

    partition: Partition
    fields: dict[str, object]
    ledgers: Ledgers
    requested_at: datetime
    answered_at: datetime


def partitions_of(answers: Answers, spec: PulsarSource | PulsarCursorSource) -> tuple[Partition, ...]:
    """Return the partitions of the topic, none where the broker has no such topic.

    Raises:
        FormatError: where the answer is not one of Pulsar's.
        SourceError: where there is none.
    """
    tenant, namespace, topic = (quote(part, safe="") for part in spec.topic_path.split("/"))
    path = f"persistent/{tenant}/{namespace}/{topic}"
    answer = _answer_of(answers, f"{path}/partitions")
    if answer is None:
        return ()
    count = answer.get("partitions")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < _MOST_PARTITIONS:
        raise FormatError("expected the number of the topic's partitions, found none")
    if count == 0:
        return (Partition(0, path),)
    return tuple(Partition(number, f"{path}-partition-{number}") for number in range(count))


def statistics_of(answers: Answers, partition: Partition) -> Statistics | None:
    """Return the broker's statistics of a partition, None where it has no such partition.

    Raises:
        FormatError: where the answer is not one of Pulsar's.
        SourceError: where there is none.
    """
    requested_at = datetime.now(UTC)
    fields = _answer_of(answers, f"{partition.path}/internalStats")
    return (
        None
        if fields is None
        else Statistics(partition, fields, ledgers_in(fields), requested_at, datetime.now(UTC))
    )


def absent(spec: PulsarSource | PulsarCursorSource) -> Iterator[str]:
    """Yield that there is no such topic."""
    where = spec.path if spec.connection is None else f"the cluster of {spec.connection}"
    yield f"{where}: no topic {spec.topic_path}"


def _answer_of(answers: Answers, path: str) -> dict[str, object] | None:
    try:
        answer = answers.get(path)
    except AnswerError as error:
        raise FormatError(f"{path}: {error}") from None
    if answer.status == MISSING:
        return None
    try:
        return stats_in(answer.body)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
