"""A partition's segment file, decoded: record batches of magic 2, the only format that Kafka 4 writes.

Only the file has these, no client does: producer ids and epochs, sequences, leader epochs, the markers of transactions
and the records of aborted ones. A torn tail is where a killed broker stopped writing; on its next start the broker cuts
it off, so it is no part of the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import IO, Final, NoReturn

import google_crc32c

from tieout.engine.kafka.compression import decompressed
from tieout.engine.kafka.records import Batch, Damage, Entry, LogError, Record
from tieout.engine.limits import LARGEST
from tieout.settings import UNPACKED_RECORD_MB, Unpacking

_PREFIX: Final = struct.Struct(">qi")
"""The base offset, and the length of what follows."""
_HEADER: Final = struct.Struct(">ibIhiqqqhii")
"""Leader epoch, magic, checksum, attributes, last delta, first and latest time, producer id, epoch, sequence, count."""
_MAGIC_AT: Final = 4
_CHECKED_FROM: Final = 9
"""The checksum covers what follows it, counted from behind the prefix."""
_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_LARGEST_SEQUENCE: Final = 0x7FFFFFFF
_LARGEST_SHIFT: Final = 63
"""Seven bits a byte: a number of 64 bits has ten bytes (Kafka documentation, "Message Format", varlong)."""
_LEAST_HEADER_BYTES: Final = 2
_ZEROS: Final = bytes(1 << 16)
_UNWRITTEN: Final = 16
"""How many zeros at its end say that a batch was not written to it: more than a record leaves there by itself."""


def batches(file: IO[bytes], size: int, most: int = Unpacking.record) -> Iterator[Entry]:
    """Yield the batches of the file's first `size` bytes whose checksum holds, and the damage between them.

    A batch of more than `most` bytes, unpacked or as it lies there, is not read.

    A batch whose checksum fails is damage, and the next one is looked for behind it. Where no batch begins, the rest
    of the file cannot be read. Zeros to the end are space that the broker took in advance, and a batch that ends in
    them was being written when it was stopped.
    """
    position = 0
    while position < size:
        file.seek(position)
        prefix = file.read(min(_PREFIX.size, size - position))
        if len(prefix) < _PREFIX.size:
            yield _torn(position, size)
            return
        base_offset, length = _PREFIX.unpack(prefix)
        end = position + _PREFIX.size + length
        if length == 0 and _is_zero(file, size):
            yield from [_half_written(position)] if base_offset else []
            return
        if length < _HEADER.size:
            file.seek(position + _PREFIX.size)
            yield _not_a_batch(position, base_offset, file.read(min(_MAGIC_AT + 1, max(length, 0))))
            return
        if end > size:
            yield _torn(position, size)
            return
        if length > most:
            yield Damage(
                position, _TOO_LARGE.format(position, base_offset, most >> 20, length, UNPACKED_RECORD_MB)
            )
            position = end
            continue
        body = file.read(length)
        entry = (
            _batch(position, base_offset, body, most) if len(body) == length else _torn(position, file.tell())
        )
        if isinstance(entry, Damage) and _ends_in_zeros(body) and _is_zero(file, size):
            yield _half_written(position)
            return
        yield entry
        if isinstance(entry, Damage) and entry.reason.startswith(_OTHER_FORMAT):
            return
        position = end


_OTHER_FORMAT: Final = "expected record format 2"


_TOO_LARGE: Final = (
    "the batch at byte {}, offsets from {}: expected at most {} MB, found {} bytes; {} allows more"
)


def _batch(position: int, base_offset: int, body: bytes, most: int) -> Entry:
    magic = body[_MAGIC_AT]
    if magic != 2:
        return _not_a_batch(position, base_offset, body)
    header = _HEADER.unpack_from(body)
    (
        leader_epoch,
        _,
        checksum,
        attributes,
        last_delta,
        first_ms,
        latest_ms,
        producer_id,
        epoch,
        sequence,
        count,
    ) = header
    where = f"the batch at byte {position}, offsets from {base_offset}"
    found = google_crc32c.value(body[_CHECKED_FROM:])
    if found != checksum:
        return Damage(position, f"{where}: expected the checksum {checksum}, found {found}")
    if not 0 <= base_offset <= base_offset + last_delta <= LARGEST:
        return Damage(
            position, f"{where}: expected offsets from 0 to 2^62, found the last {base_offset + last_delta}"
        )
    if count < 0:
        return Damage(position, f"{where}: expected a number of records, found {count}")
    is_append_time = bool(attributes & _LOG_APPEND_TIME)
    return Batch(
        place=position,
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_control=bool(attributes & _CONTROL),
        is_log_append_time=is_append_time,
        count=count,
        read=partial(
            _records,
            body,
            codec=(attributes & _CODEC, most),
            base=(base_offset, first_ms, sequence),
            last_delta=last_delta,
            append_ms=latest_ms if is_append_time else None,
            count=count,
        ),
    )


def _records(
    body: bytes,
    *,
    codec: tuple[int, int],
    base: tuple[int, int, int],
    last_delta: int,
    append_ms: int | None,
    count: int,
) -> Iterator[Record]:
    """Yield the records of a batch, whose base is its offset, its time and its sequence; their offsets rise.

    `codec` is its number, and up to how many bytes it is unpacked.

    Raises:
        LogError: where they do not decode.
    """
    base_offset, first_ms, sequence = base
    before = -1
    try:
        reader = _Reader(decompressed(codec[0], body[_HEADER.size :], codec[1]))
        for _ in range(count):
            delta_ms, delta, key, value, headers = reader.record()
            if not before < delta <= last_delta:
                _refuse_offset(base_offset + delta, base_offset + before + 1, base_offset + last_delta)
            before = delta
            yield Record(
                offset=base_offset + delta,
                timestamp_ms=first_ms + delta_ms if append_ms is None else append_ms,
                sequence=-1 if sequence < 0 else (sequence + delta) & _LARGEST_SEQUENCE,
                key=key,
                value=value,
                headers=headers,
            )
    except (LogError, IndexError, UnicodeDecodeError) as error:
        raise LogError(f"the records of the batch at offset {base_offset} do not decode: {error}") from None


def _refuse_offset(found: int, first: int, last: int) -> NoReturn:
    """Refuse a record whose offset is not behind the one before it, or is behind the batch's last."""
    raise LogError(f"expected an offset from {first} to {last}, found {found}")


def _torn(position: int, size: int) -> Damage:
    reason = f"a batch begins at byte {position} and is cut off at byte {size}, the end of the file"
    return Damage(position, reason, is_torn=True)


def _half_written(position: int) -> Damage:
    reason = f"a batch begins at byte {position} and ends in zeros: the broker was stopped while it wrote it"
    return Damage(position, reason, is_torn=True)


def _ends_in_zeros(body: bytes) -> bool:
    """Return whether a batch that does not read is one of which only the beginning was written."""
    return not any(body) or (body[_MAGIC_AT] == 2 and not any(body[-_UNWRITTEN:]))


def _not_a_batch(position: int, base_offset: int, body: bytes) -> Damage:
    """Return what is there instead: an older format, which says so itself, or nothing that Kafka writes."""
    if len(body) > _MAGIC_AT and body[_MAGIC_AT] in (0, 1):
        advice = "written before Kafka 0.11; read the topic through its broker, or give the records as files"
        reason = f"{_OTHER_FORMAT} at offset {base_offset}, found format {body[_MAGIC_AT]}, {advice}"
        return Damage(position, reason)
    return Damage(position, f"no record batch begins at byte {position}; the rest of the file is unread")


def _is_zero(file: IO[bytes], size: int) -> bool:
    """Return whether only zeros follow, up to the size."""
    while (left := size - file.tell()) > 0:
        chunk = file.read(min(left, len(_ZEROS)))
        if not chunk:
            break
        if chunk != _ZEROS[: len(chunk)]:
            return False
    return True


class _Reader:
    """Walks the records of one batch: zigzag varints, and byte strings with their length before them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def record(self) -> tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
        """Return one record's time delta, offset delta, key, value and headers.

        Raises:
            LogError: where the record is not as long as it says.
        """
        length = self._varint()
        end = self._position + self._within(length)
        self._position += 1
        delta_ms, delta, key, value = self._varint(), self._varint(), self._bytes(), self._bytes()
        headers = tuple(((self._bytes() or b"").decode(), self._bytes()) for _ in range(self._header_count()))
        if self._position != end or end > len(self._data):
            raise LogError(f"a record of {length} bytes ends {self._position - end} bytes behind its end")
        return delta_ms, delta, key, value, headers

    def _header_count(self) -> int:
        """Return how many headers follow, each of which takes two bytes at least."""
        return self._within(self._varint(), _LEAST_HEADER_BYTES)

    def _within(self, number: int, each: int = 1) -> int:
        """Return the number of things of so many bytes each, where there is room for them."""
        left = len(self._data) - self._position
        if not 0 <= number * each <= left:
            raise LogError(
                f"expected {left} bytes to hold what follows, found a length or number of {number}"
            )
        return number

    def _varint(self) -> int:
        data, position, result, shift = self._data, self._position, 0, 0
        while True:
            if shift > _LARGEST_SHIFT:
                raise LogError(
                    f"expected a number of at most 10 bytes at byte {self._position}, found a longer one"
                )
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self._position = position
        return (result >> 1) ^ -(result & 1)

    def _bytes(self) -> bytes | None:
        length = self._varint()
        if length < 0:
            return None
        start = self._position
        self._position += self._within(length)
        return self._data[start : self._position]
