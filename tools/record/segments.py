"""Reads a partition's log from the broker's segment files: batches of format 2, the only one Kafka 4 writes.

Only segments have what no client shows: producer ids and epochs, broker sequences, transaction markers and
the records of aborted transactions. Compressed batches are refused: no recording has any.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tools.record.crc32c import crc32c

_PREFIX = struct.Struct(">qi")
"""The base offset, and the length of the rest of the batch."""
_HEADER = struct.Struct(">ibIhiqqqhii")
"""Epoch, magic, checksum, attributes, last delta, two times, producer id and epoch, sequence, count."""
_CHECKED_FROM = _PREFIX.size + 9
"""The checksum covers everything after itself."""
_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20


class SegmentError(Exception):
    """A segment file holds something that this reader does not understand."""


class Marker(StrEnum):
    """The type of a control record: the end of its producer's transaction."""

    ABORT = "aborted"
    COMMIT = "committed"


@dataclass(frozen=True)
class Record:
    """One record of a batch; `sequence` is -1 if its producer was not idempotent."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    sequence: int


@dataclass(frozen=True)
class Batch:
    """One batch as the broker stores it; `producer_id` is -1 if the producer was not idempotent."""

    base_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    is_log_append_time: bool
    records: tuple[Record, ...]

    @property
    def marker(self) -> Marker:
        """The marker of this control batch.

        Raises:
            SegmentError: if the batch is not a control batch, or its type is neither abort nor commit.
        """
        key = self.records[0].key if self.is_control and self.records else None
        if key is None or len(key) < 4:
            raise SegmentError(f"the batch at offset {self.base_offset} holds no transaction marker")
        kind: int = struct.unpack_from(">hh", key)[1]
        if kind not in (0, 1):
            raise SegmentError(f"expected a marker of type 0 or 1 at offset {self.base_offset}, found {kind}")
        return Marker.COMMIT if kind == 1 else Marker.ABORT


def partition_batches(folder: Path) -> Iterator[Batch]:
    """Yield the batches of one partition's folder, oldest segment first."""
    for segment in sorted(folder.glob("*.log")):
        yield from batches(segment.read_bytes())


def batches(segment: bytes) -> Iterator[Batch]:
    """Yield the batches of one segment, up to an incomplete one, which a killed broker leaves.

    Raises:
        SegmentError: if a complete batch has another format, is compressed, or fails its checksum.
    """
    position = 0
    while position + _PREFIX.size + _HEADER.size <= len(segment):
        base_offset, length = _PREFIX.unpack_from(segment, position)
        end = position + _PREFIX.size + length
        if length <= 0 or end > len(segment):
            return
        yield _batch(base_offset, segment[position:end])
        position = end


def _batch(base_offset: int, data: bytes) -> Batch:
    (
        leader_epoch,
        magic,
        checksum,
        attributes,
        _,
        first_ms,
        max_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _HEADER.unpack_from(data, _PREFIX.size)
    if magic != 2:
        raise SegmentError(f"expected record format 2 at offset {base_offset}, found {magic}")
    if crc32c(data[_CHECKED_FROM:]) != checksum:
        raise SegmentError(f"the batch at offset {base_offset} fails its checksum")
    if attributes & _CODEC:
        raise SegmentError(f"the batch at offset {base_offset} is compressed; record without compression")
    reader = _Reader(data, _PREFIX.size + _HEADER.size)
    is_append_time = bool(attributes & _LOG_APPEND_TIME)
    records = []
    for _ in range(count):
        delta_ms, delta, key, value = reader.record()
        records.append(
            Record(
                offset=base_offset + delta,
                timestamp_ms=max_ms if is_append_time else first_ms + delta_ms,
                key=key,
                value=value,
                sequence=-1 if base_sequence < 0 else (base_sequence + delta) & 0x7FFFFFFF,
            )
        )
    return Batch(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_control=bool(attributes & _CONTROL),
        is_log_append_time=is_append_time,
        records=tuple(records),
    )


class _Reader:
    """Parses the records of one batch: zigzag varints, and length-prefixed byte strings."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def record(self) -> tuple[int, int, bytes | None, bytes | None]:
        """Return one record's time delta, offset delta, key and value, and skip its headers."""
        length = self._varint()
        end = self._position + length
        self._position += 1
        delta_ms, delta, key, value = self._varint(), self._varint(), self._bytes(), self._bytes()
        self._position = end
        return delta_ms, delta, key, value

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
            shift += 7

    def _bytes(self) -> bytes | None:
        length = self._varint()
        if length < 0:
            return None
        start = self._position
        self._position += length
        return self._data[start : self._position]
