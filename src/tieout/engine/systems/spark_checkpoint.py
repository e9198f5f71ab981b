"""Parses a Structured Streaming query's checkpoint: the range of offsets of each batch, and the committed batches.

`offsets/N` is written before batch N runs, `commits/N` once its output is complete. Its offsets are exclusive, and a
batch starts where the previous one ended; the start of batch 0 is in `sources/I/0`. A batch without a commit is
undecided: the query runs it again, with exactly the same range.

Source: `OffsetSeqLog`, `CommitLog`, `HDFSMetadataLog` of Apache Spark 4.1 (sql/core, execution/streaming/checkpointing)
and `KafkaSourceInitialOffsetWriter` (connector/kafka-0-10-sql). Version 2 of the log of offsets comes after Spark 4.1;
version 2 of the log of commits is that of queries with `spark.sql.streaming.stateStore.checkpointFormatVersion` 2, and
says the same about the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tieout.engine.limits import is_time
from tieout.engine.systems.json_texts import FormatError, json_object, offset_in, partition_in

Place = tuple[str, int]
"""A topic and a partition."""
Offsets = Mapping[Place, int]
OFFSETS_VERSIONS: Final = ("v1",)
COMMITS_VERSIONS: Final = ("v1", "v2")
_NO_OFFSET: Final = "-"
"""The line of a source that has no offset yet."""
_UNPLANNED: Final = "offsets/{0}: not there or not readable, though commits/{0} is there"
_SHOWN: Final = 20


class OtherSourceError(FormatError):
    """Offsets are those of another kind of source than Kafka."""


@dataclass(frozen=True)
class PlannedBatch:
    """The content of `offsets/N`: the batch's end offsets, and when it started, in milliseconds since 1970."""

    ends: Offsets
    began_at: int | None


@dataclass(frozen=True)
class BatchRange:
    """The range `[first, end)` that one committed batch read of a partition; `first` is None for the beginning."""

    batch: int
    topic: str
    partition: int
    first: int | None
    end: int


@dataclass(frozen=True)
class History:
    """The ranges of the committed batches in order, with faults and notes.

    `begins_at` is when its oldest batch started, in milliseconds; None if no earlier batch is missing.
    """

    ranges: tuple[BatchRange, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    begins_at: int | None


def planned_batch(content: bytes, source: int) -> PlannedBatch:
    r"""Return the batch of one source in a file of the folder `offsets`.

    >>> planned_batch(b'v1\n{"batchTimestampMs":7}\n{"orders":{"0":5}}', 0)
    PlannedBatch(ends={('orders', 0): 5}, began_at=7)

    Raises:
        FormatError: if the file is of another version, cut off, or the source is not Kafka's.
    """
    version, *lines = _lines(content)
    _require_version(version, OFFSETS_VERSIONS)
    if not lines:
        raise FormatError("expected a line of the batch's metadata, found none: cut off")
    sources = lines[1:]
    if source >= len(sources):
        raise FormatError(f"expected a line for source {source}, found {len(sources)} lines of sources")
    began_at = json_object(lines[0]).get("batchTimestampMs") if lines[0].strip() else None
    is_known = isinstance(began_at, int) and not isinstance(began_at, bool) and is_time(began_at)
    ends = {} if sources[source] == _NO_OFFSET else kafka_offsets(sources[source])
    return PlannedBatch(ends, began_at if is_known and isinstance(began_at, int) else None)


def require_commit(content: bytes) -> None:
    """Refuse content that is not a file of the folder `commits`.

    Raises:
        FormatError: if it is of another version, or cut off.
    """
    version, *lines = _lines(content)
    _require_version(version.strip(), COMMITS_VERSIONS)
    if lines and lines[0].strip():
        json_object(lines[0])


def initial_offsets(content: bytes) -> Offsets:
    r"""Return the start offsets of a query's first batch, from the file `sources/I/0` of a Kafka source.

    >>> initial_offsets(b'\0v1\n{"orders":{"0":3}}')
    {('orders', 0): 3}

    Raises:
        FormatError: if it is of another version, cut off, or of another kind of source.
    """
    version, *lines = _lines(content.removeprefix(b"\0"))
    _require_version(version, OFFSETS_VERSIONS)
    return kafka_offsets("\n".join(lines))


def kafka_offsets(text: str) -> Offsets:
    """Return the offsets of a Kafka source, by topic and partition.

    Raises:
        FormatError: if they are another source's, or not offsets.
    """
    offsets: dict[Place, int] = {}
    for topic, partitions in json_object(text).items():
        if not isinstance(partitions, dict):
            raise OtherSourceError(
                f"expected the offsets of a Kafka source, topic, partition and offset, found a field {_short(topic)} "
                "of another kind of source; `source` names the place of the Kafka source"
            )
        for name, value in partitions.items():
            partition, offset = partition_in(name), offset_in(value)
            if partition is None or offset is None:
                raise FormatError(
                    f"expected an offset from 0 on for a partition of {_short(topic)}, "
                    f"found {_short(value)} for {_short(name)}"
                )
            offsets[topic, partition] = offset
    return offsets


def history_of(
    planned: Mapping[int, PlannedBatch], commits: frozenset[int], initial: Offsets | None, source: int
) -> History:
    """Return the ranges that the batches of a checkpoint read.

    Args:
        planned: The content of `offsets/N`, by number.
        commits: The numbers of `commits/N`.
        initial: The start offsets of batch 0, None if the checkpoint has none.
        source: The index of the source.
    """
    oldest, newest = min(planned, default=0), max(planned, default=-1)
    faults = [*_holes(planned), *_missing_commits(commits, planned, newest)]
    faults += [_UNPLANNED.format(number) for number in sorted(commits) if number > newest]
    if not planned:
        return History((), tuple(faults), ("no batch was begun",), None)
    ranges = [
        batch_range for n in sorted(planned) if n in commits for batch_range in _ranges(planned, n, initial)
    ]
    begins_at = planned[oldest].began_at if oldest else None
    if oldest and begins_at is None:
        faults.append(
            f"offsets/{oldest}: expected batchTimestampMs, as the batches before it are not there, found none"
        )
    return History(
        tuple(ranges), tuple(faults), tuple(_notes(oldest, newest, commits, initial, source)), begins_at
    )


def _holes(planned: Mapping[int, PlannedBatch]) -> Iterator[str]:
    """Yield a line for each missing batch between two existing ones; a long gap is one line."""
    numbers = sorted(planned)
    for before, after in pairwise(numbers):
        if after > before + 1:
            name = f"offsets/{before + 1}" if after == before + 2 else f"offsets/{before + 1} to {after - 1}"
            yield f"{name}: not there or not readable, though offsets/{before} and offsets/{after} are there"


def _missing_commits(
    commits: frozenset[int], planned: Mapping[int, PlannedBatch], newest: int
) -> Iterator[str]:
    """Yield each batch without a commit although a later one started."""
    for number in sorted(planned):
        if number < newest and number not in commits:
            yield f"commits/{number}: not there or not readable, though batch {number + 1} began"


def _ranges(
    planned: Mapping[int, PlannedBatch], number: int, initial: Offsets | None
) -> Iterator[BatchRange]:
    """Yield the ranges of a batch; none if its start is not known.

    A partition that the previous batch did not have is read from its beginning. A batch that ends before its start has
    read nothing, and moved the query back.
    """
    if number == min(planned):
        firsts = initial or {}
    elif number - 1 in planned:
        firsts = planned[number - 1].ends
    else:
        return
    for (topic, partition), end in sorted(planned[number].ends.items()):
        first = firsts.get((topic, partition))
        yield BatchRange(number, topic, partition, None if first is None else min(first, end), end)


def _notes(
    oldest: int, newest: int, commits: frozenset[int], initial: Offsets | None, source: int
) -> Iterator[str]:
    if newest not in commits:
        yield f"batch {newest} is in doubt: it has no commits/{newest}, and the query runs it again"
    if oldest:
        yield (
            f"batches before {oldest} were purged (spark.sql.streaming.minBatchesToRetain): the row of batch {oldest} "
            "stands for all up to it"
        )
    if initial is None:
        yield f"sources/{source}/0: not there; batch 0 is taken to have begun at the beginning of each partition"


def _lines(content: bytes) -> list[str]:
    try:
        return content.decode().split("\n")
    except UnicodeDecodeError:
        raise FormatError("expected UTF-8, found other bytes") from None


def _require_version(found: str, versions: tuple[str, ...]) -> None:
    if found not in versions:
        first_line = _short(found) if found else "an empty line: cut off"
        raise FormatError(f"expected version {' or '.join(versions)} on the first line, found {first_line}")


def _short(value: object) -> str:
    text = (
        repr(value)
        if isinstance(value, str)
        else str(type(value).__name__ if isinstance(value, dict) else value)
    )
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
