"""Record batches as a broker writes them, and as none does: every field can be another one than the records say."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import google_crc32c

HEADER_BYTES = 61
"""What stands before a batch's records."""


def varint(number: int) -> bytes:
    """The number as Kafka writes it: zigzag, seven bits a byte, the lowest first."""
    left, parts = (number << 1) ^ (number >> 63) if number >= 0 else ((-number) << 1) - 1, []
    while left > 0x7F:
        parts.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*parts, left])


def record(
    value: bytes | None,
    *,
    key: bytes | None = None,
    delta: int = 0,
    delta_ms: int = 0,
    headers: bytes = b"\x00",
) -> bytes:
    """One record, a tombstone without a value; `headers` are their number and they."""
    fields = b"".join(varint(-1) if part is None else varint(len(part)) + part for part in (key, value))
    body = b"\x00" + varint(delta_ms) + varint(delta) + fields + headers
    return varint(len(body)) + body


def marker(kind: int, *, base_offset: int, producer: int) -> bytes:
    """The end of a producer's transaction: 0 aborts it, 1 commits it."""
    ended = record(struct.pack(">hi", 0, 0), key=struct.pack(">hh", 0, kind))
    return batch(ended, base_offset=base_offset, attributes=0x30, producer=producer)


def batch(
    records: bytes | Sequence[bytes],
    *,
    base_offset: int = 0,
    last_delta: int | None = None,
    count: int | None = None,
    first_ms: int = 1_795_000_000_000,
    latest_ms: int | None = None,
    attributes: int = 0,
    producer: int = -1,
) -> bytes:
    """One batch whose checksum holds; `records` are packed already where they are bytes."""
    number = 1 if isinstance(records, bytes) else len(records)
    packed = records if isinstance(records, bytes) else b"".join(records)
    checked = struct.pack(
        ">hiqqqhii",
        *(attributes, number - 1 if last_delta is None else last_delta),
        *(first_ms, first_ms if latest_ms is None else latest_ms),
        *(producer, -1 if producer < 0 else 0, -1, number if count is None else count),
    )
    body = struct.pack(">ibI", 0, 2, google_crc32c.value(checked + packed)) + checked + packed
    return struct.pack(">qi", base_offset, len(body)) + body
