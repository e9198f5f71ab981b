"""Parses Trident's state of one stream in ZooKeeper: the next batch, and the offsets of each batch.

`coordinator/currtx` is the next batch. When it changes from N to N+1, batch N has succeeded: its ranges are in
`user/<topic>@<partition>/N`. A retried batch may have other ranges: those at the time of its success count.

Source: `MasterBatchCoordinator`, `RotatingTransactionalState` and `KafkaTridentSpoutEmitter` of Apache Storm 2.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tieout.engine.limits import number_in, shown
from tieout.engine.systems.json_texts import FormatError, json_object, offset_in, partition_in

_NO_OFFSET = -1
"""Both offsets of a batch before the first record."""


@dataclass(frozen=True)
class Batch:
    """The range `[first, end)` of a batch in a partition, and when the batch succeeded (milliseconds)."""

    txid: int
    topic: str
    partition: int
    first: int
    end: int
    millis: int
    topology: str | None


@dataclass
class Stream:
    """The history of one stream, built change by change.

    `unknown` are successful batches with unknown ranges, and the time; `empty` counts ranges without a record.
    """

    batches: list[Batch] = field(default_factory=list)
    unknown: list[tuple[int, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    empty: int = 0
    _ranges: dict[int, dict[str, bytes]] = field(default_factory=dict)
    _last: dict[tuple[str, int], Batch] = field(default_factory=dict)
    _succeeded: tuple[int, int] | None = None

    def apply(self, place: str, data: bytes | None, millis: int) -> None:
        """Apply a write of a node of the stream, or its deletion if `data` is None."""
        if place == "coordinator/currtx":
            if data is not None:
                self._succeed(data, millis)
            return
        role, _, subpath = place.partition("/")
        partition, _, name = subpath.partition("/")
        txid = number_in(name)
        if role != "user" or txid is None:
            return
        if data is None:
            self._ranges.get(txid, {}).pop(partition, None)
        else:
            self._ranges.setdefault(txid, {})[partition] = data

    def _succeed(self, data: bytes, millis: int) -> None:
        """Apply a new next batch: the previous one has succeeded."""
        following = number_in(data.decode("utf-8", "replace"))
        if following is None:
            self.faults.append(f"currtx: expected a batch's number, found {shown(repr(data))}")
            return
        txid = following - 1
        if self._succeeded is not None and txid <= self._succeeded[0] and millis <= self._succeeded[1]:
            return  # a snapshot had it already
        self._succeeded = txid, millis
        contents = self._ranges.get(txid, {})
        if not contents:
            self.unknown.append((txid, millis))
        for name, content in sorted(contents.items()):
            try:
                batch = _batch(txid, name, content, millis)
            except FormatError as error:
                self.faults.append(f"batch {txid} of {shown(name)}: {error}")
                continue
            if batch is not None:
                self._add(batch)
        self._ranges = {
            number: ranges for number, ranges in self._ranges.items() if number >= txid and ranges
        }

    def _add(self, batch: Batch) -> None:
        """Add a range, unless it has no record: then it only repeats the end of the previous range.

        The spout continues at the end of a range, so the next range of the same topology starts there, even if there
        are positions without a record in between.
        """
        place = batch.topic, batch.partition
        last = self._last.get(place)
        if last is not None and batch.first + 1 == batch.end == last.end:
            self.empty += 1
            return
        if last is not None and batch.first > last.end and batch.topology == last.topology:
            batch = Batch(**{**vars(batch), "first": last.end})
        self._last[place] = batch
        self.batches.append(batch)


def stream_at(root: str, path: str) -> tuple[str, str] | None:
    """Return the stream of a node below the root, and its path in the stream; None for the root's own children.

    >>> stream_at("/transactional", "/transactional/orders/coordinator/currtx")
    ('orders', 'coordinator/currtx')
    """
    stream, _, place = path.removeprefix(f"{root}/").partition("/")
    return (stream, place) if place else None


def topologies_of(batches: list[Batch]) -> Iterator[str]:
    """Yield for each start of a topology the batches that it read."""
    by_topology: dict[str, list[int]] = {}
    for batch in batches:
        if batch.topology is not None:
            by_topology.setdefault(batch.topology, []).append(batch.txid)
    for topology, txids in by_topology.items():
        yield f"topology {shown(topology)}: batch {min(txids)} to {max(txids)}"


def _batch(txid: int, name: str, content: bytes, millis: int) -> Batch | None:
    """Return the range in a node, None before the first record.

    Raises:
        FormatError: if it is not the range of a Kafka partition.
    """
    topic, _, number = name.rpartition("@")
    partition = partition_in(number)
    if not topic or partition is None:
        raise FormatError(
            "expected <topic>@<partition>, as a Kafka spout names its partitions, found another name"
        )
    fields = json_object(content.decode("utf-8", "replace"))
    first, last, topology = (fields.get(key) for key in ("firstOffset", "lastOffset", "topologyId"))
    if first == last == _NO_OFFSET:
        return None
    begin, end = offset_in(first), offset_in(last)
    if begin is None or end is None or end < begin:
        raise FormatError("expected firstOffset and lastOffset, the first and the last record, found others")
    if topology is not None and not isinstance(topology, str):
        raise FormatError("expected a text as topologyId, found another value")
    return Batch(txid, topic, partition, begin, end + 1, millis, topology)
