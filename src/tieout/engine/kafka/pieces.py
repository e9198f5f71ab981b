"""Pieces of a log: each is a file that is scanned once for a summary and read once for its records.

Both passes run on the executors, one task for several small pieces. The first returns one bounded summary per piece.
From these the driver derives the log's bounds, the outcome of transactions, and what is missing. The second pass then
gives each record its final columns, without a shuffle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tieout.encodings import opened
from tieout.engine.kafka import dumps, segments
from tieout.engine.kafka.records import Batch, Damage, Entry, LogError, Record
from tieout.engine.kafka.transactions import States, Transactions, markers_of, transactions_of
from tieout.engine.limits import EXPECTED_TIME, is_time
from tieout.regular_files import digest_of, opened_file
from tieout.settings import UNPACKED_FILE_MB, Unpacking

_NAMED: Final = 3


@dataclass(frozen=True)
class Piece:
    """One file of a partition's log, up to `size` bytes; what follows `size` is known once its log was looked through.

    `fates` is what later pieces decide of the transactions that this one leaves open, by producer id. Records below
    `log_start_offset` are no part of the log any more. `is_contested` says that an offset stands in the log's pieces
    twice, as in dumps of two partitions or replicas: no record of the log is read, as nobody knows which is its own.
    """

    path: str
    form: Literal["segment", "dump"]
    topic: str
    partition: int
    size: int
    is_placed: bool = True
    topic_id: str | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    end_offset: int | None = None
    records: int = 0
    fates: tuple[tuple[int, str], ...] = ()
    is_transactional: bool = True
    most_record_bytes: int = Unpacking.record
    most_file_bytes: int = Unpacking.file
    states_bounds: bool = False
    is_contested: bool = False

    @property
    def uri(self) -> str:
        """The file as Spark names files."""
        return Path(self.path).as_uri()

    @contextmanager
    def entries(self) -> Iterator[Iterator[Entry]]:
        """Give the piece's batches and damage while the block runs.

        Raises:
            OSError: where the file cannot be read.
        """
        if self.form == "segment":
            with opened_file(Path(self.path)) as file:
                yield segments.batches(file, self.size, self.most_record_bytes)
        else:
            place = (self.topic, self.partition)
            with opened(Path(self.path)) as text:
                lines = (line.rstrip("\n") for line in text)
                yield dumps.batches(lines, place, None if self.is_placed else place)


@dataclass(frozen=True)
class Survey:
    """What one piece holds; offsets are None where it holds no batch.

    `faults` are stretches that are lost to the evidence, `is_torn` says that the piece ends in a write that was cut
    off. `hole` is the first offset that is missing between two of its batches: legal in a log that was compacted.
    `falls` says that a batch begins below the end of the one before it.
    """

    path: str
    topic: str
    partition: int
    digest: str
    first_offset: int | None
    end_offset: int | None
    records: int
    faults: tuple[str, ...]
    is_torn: bool
    hole: int | None
    falls: bool
    transactions: Transactions


def to_option(pieces: Iterable[Piece]) -> str:
    """Return the pieces as the text of one option of a data source."""
    return json.dumps([asdict(piece) for piece in pieces])


def from_option(text: str) -> tuple[Piece, ...]:
    """Return the pieces that `to_option` wrote."""
    found: list[dict[str, Any]] = json.loads(text)
    return tuple(
        Piece(**{**fields, "fates": tuple((producer, state) for producer, state in fields["fates"])})
        for fields in found
    )


def surveyed(piece: Piece) -> Survey:
    """Return what the piece holds, read through once and each batch's checksum checked; no record is decoded."""
    tally = _Tally()
    found = Transactions({}, {})
    digest = "unread"
    try:
        digest = digest_of(Path(piece.path), piece.size)
        with piece.entries() as entries:
            found = transactions_of(tally.batches(entries))
    except (LogError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        tally.lose(f"does not read through: {reason}")
    return Survey(
        path=piece.path,
        topic=piece.topic,
        partition=piece.partition,
        digest=digest,
        first_offset=tally.first_offset,
        end_offset=tally.end_offset,
        records=tally.records,
        faults=tuple(tally.faults),
        is_torn=tally.is_torn,
        hole=tally.hole,
        falls=tally.falls,
        transactions=found,
    )


class _Tally:
    """Sums up the batches of a piece as they go by."""

    def __init__(self) -> None:
        self.first_offset: int | None = None
        self.end_offset: int | None = None
        self.records = 0
        self.is_torn = False
        self.hole: int | None = None
        self.falls = False
        self.faults: list[str] = []

    def batches(self, entries: Iterable[Entry]) -> Iterator[Batch]:
        """Yield the batches; a malformed line of a dump is a row of the second pass."""
        for entry in entries:
            if isinstance(entry, Batch):
                self._count(entry)
                yield entry
            elif entry.is_torn:
                self.is_torn = True
            elif entry.text is None:
                self.lose(entry.reason)

    def lose(self, reason: str) -> None:
        """Note a stretch that is lost; of very many, the first ones and that there are more."""
        if len(self.faults) < _NAMED:
            self.faults.append(reason)
        elif len(self.faults) == _NAMED:
            self.faults.append("and more such stretches")

    def _count(self, batch: Batch) -> None:
        if self.end_offset is not None and batch.base_offset < self.end_offset:
            self.falls = True
            self.lose(
                f"offset {batch.base_offset} follows offset {self.end_offset - 1}: expected them to rise"
            )
        if self.end_offset is not None and batch.base_offset > self.end_offset and self.hole is None:
            self.hole = self.end_offset
        self.first_offset = batch.base_offset if self.first_offset is None else self.first_offset
        self.end_offset = batch.last_offset + 1
        self.records += batch.count


@dataclass(frozen=True, slots=True)
class Row:
    """One record with the facts of its batch and its transaction, or a stretch without records, and why.

    `count` is how many records a stretch stands for.
    """

    place: int
    batch: Batch | None = None
    record: Record | None = None
    state: str | None = None
    fault: str | None = None
    text: str | None = None
    count: int = 1


def rows_of(piece: Piece) -> Iterator[Row]:
    """Yield the piece's records from the log's start on, torn tails and malformed lines; other damage is in its survey.

    A segment that the broker deleted since it was looked through is a faulty row that counts the records that it held.
    Of a contested log only the bounds are given.
    """
    try:
        if not piece.is_contested:
            yield from _read(piece)
    except (OSError, LogError) as error:
        reason = f"cannot be read any more: {error.strerror if isinstance(error, OSError) else error}"
        yield Row(0, fault=reason, count=max(1, piece.records))
    if piece.states_bounds:
        yield Row(piece.size)


def _read(piece: Piece) -> Iterator[Row]:
    """Yield the rows of `rows_of` without the bounds.

    Raises:
        OSError: where the file cannot be read.
        LogError: where it does not decode.
    """
    states = States(_markers(piece), dict(piece.fates))
    with piece.entries() as entries:
        left = piece.most_file_bytes
        for entry in entries:
            if isinstance(entry, Batch) and left < 0:
                yield Row(entry.place, fault=_TOO_MUCH, count=max(1, entry.count))
                continue
            for row in _damaged(entry) if isinstance(entry, Damage) else _decoded(piece, entry, states):
                left -= _bytes_of(row.record)
                yield row


def _markers(piece: Piece) -> list[tuple[int, int, str]]:
    if not piece.is_transactional:
        return []
    with piece.entries() as entries:
        return markers_of(entry for entry in entries if isinstance(entry, Batch))


def _damaged(damage: Damage) -> Iterator[Row]:
    if damage.is_torn or damage.text is not None:
        yield Row(damage.place, fault=damage.reason, text=damage.text)


def _decoded(piece: Piece, batch: Batch, states: States) -> Iterator[Row]:
    start = piece.log_start_offset or 0
    if batch.last_offset < start:
        return
    try:
        state = states.of(batch)
        for record in _records_of(batch):
            if record.offset >= start:
                fault = _fault_of(record)
                yield (
                    Row(batch.place, batch, record, state) if fault is None else Row(batch.place, fault=fault)
                )
    except LogError as error:
        yield Row(batch.place, fault=str(error), count=max(1, batch.count))


_TOO_MUCH: Final = f"the file unpacks to more than {UNPACKED_FILE_MB} says"
_MAX_BUFFERED: Final = 100_000
"""At most this many records of a batch are in memory at once; a batch may have millions."""


def _records_of(batch: Batch) -> Iterable[Record]:
    """Return a batch's records, after all of them were decoded; very many are decoded again, one by one.

    Raises:
        LogError: where they do not decode.
    """
    if batch.count <= _MAX_BUFFERED:
        return batch.records()
    for _ in batch.read():
        pass
    return batch.read()


def _bytes_of(record: Record | None) -> int:
    return 0 if record is None else 8 + len(record.key or b"") + len(record.value or b"")


def _fault_of(record: Record) -> str | None:
    """Return why a ledger cannot have a decoded record; None where it can."""
    if record.timestamp_ms is None or is_time(record.timestamp_ms):
        return None
    return (
        f"offset {record.offset}: record_timestamp: expected {EXPECTED_TIME}, found {record.timestamp_ms} milliseconds "
        "since 1970"
    )
