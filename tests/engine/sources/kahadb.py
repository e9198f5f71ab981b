"""KahaDB journals for tests, as ActiveMQ writes them: OpenWire in Protocol Buffers, in batches with a checksum."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

MILLIS: Final = 1795170000000
"""When the first message of a test arrived."""
END: Final = b"-qMa4"
"""The mark that a broker writes behind each batch, and over with the next."""
BROKEN_CHECKSUM: Final = 1


def journal(*records: bytes, padding: int = 64) -> bytes:
    """Return a file of the journal, each record in a batch of its own, and zeros where more will be written."""
    return b"".join(batch(record) for record in records) + END + bytes(padding)


def batch(*records: bytes, checksum: int | None = None) -> bytes:
    """Return a batch, with another checksum than its own where one is given."""
    body = b"".join(struct.pack(">iB", len(record) + 5, 1) + record for record in records)
    known = zlib.adler32(body) if checksum is None else checksum
    return struct.pack(">iB11siq", 28, 2, b"WRITE BATCH", len(body), known) + body


def added(
    number: int,
    queue: str = "orders",
    *,
    transaction: int | None = None,
    expires: int = 0,
    original: str | None = None,
    content: bytes | None = None,
    text: bytes = b"body",
    properties: Mapping[str, str] | None = None,
    is_compressed: bool = False,
) -> bytes:
    """Return the record of a message; the first arrives at `MILLIS`, each further one a second later."""
    body = struct.pack(">i", len(text)) + text if content is None else content
    known = {"id": f"m{number}"} if properties is None else properties
    frame = b"".join(
        (
            b"\0\0\0\0\x1c" + bytes(5),  # length, a text, command id, response required
            b"\0" + _destination(queue) + b"\0",  # producer, destination, transaction
            b"\0" if original is None else _destination(original.removeprefix("topic://"), original),
            _message_id(number) + b"\0\0" + bytes(4) + b"\0\1",  # original transaction to persistent
            struct.pack(">q", expires) + b"\4\0",  # expiration, priority, reply to
            struct.pack(">q", MILLIS + 1000 * number - 5) + b"\0",  # timestamp, type
            b"\1" + struct.pack(">i", len(body)) + body,
            b"\1" + _properties(known),
            b"\0\0" + bytes([is_compressed]) + bytes(4),  # command, target consumer, compressed, redeliveries
            b"\0" + bytes(8) + b"\0" + bytes(2) + b"\0",  # broker path to cluster
            struct.pack(">q", MILLIS + 1000 * number) + bytes(8),
        )
    )
    return _command(1, _info(transaction) + _place(queue, number) + _field(4, frame))


def published(number: int, topic: str = "orders") -> bytes:
    """Return the record of a message that is stored for the durable subscribers of a topic."""
    return _command(1, _place(topic, number, kind=1) + _field(4, b""))


def removed(
    number: int,
    queue: str = "orders",
    *,
    kind: int = 4,
    consumer: str | None = "c1",
    transaction: int | None = None,
) -> bytes:
    """Return the record of an acknowledgement: by default an individual one of a consumer."""
    by = b"\0" if consumer is None else b"\1\x7a" + _optional(consumer) + bytes(16)
    frame = b"\0\0\0\0\x16" + bytes(5) + _destination(queue) + b"\0" + by + bytes([kind])
    return _command(2, _info(transaction) + _place(queue, number) + _field(4, frame))


def ended(transaction: int, *, is_committed: bool) -> bytes:
    """Return the record of a transaction's end."""
    return _command(4 if is_committed else 5, _info(transaction))


def started() -> bytes:
    """Return the record that a broker writes when it opens the journal."""
    return _command(0, _field(1, b"LOADED Thu Nov 20 10:00:00 UTC 2026"))


def deleted(queue: str = "orders") -> bytes:
    """Return the record of a queue's deletion."""
    return _command(6, _field(1, _varint(8) + _varint(0) + _field(2, queue.encode())))


def rewritten(file: int) -> bytes:
    """Return the first record of a file with copies of another file's acknowledgements."""
    return _command(16, _varint(8) + _varint(file) + _varint(16) + _varint(2))


def write(folder: Path, number: int, content: bytes, at: datetime | None = None) -> Path:
    """Write a file of the journal, last changed at that time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"db-{number}.log"
    path.write_bytes(content)
    if at is not None:
        os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def _command(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _varint(len(body)) + body


def _info(transaction: int | None) -> bytes:
    if transaction is None:
        return b""
    local = _field(1, b"ID:host-1:1") + _varint(8) + _varint(transaction)
    return _field(1, _field(1, local))


def _place(queue: str, number: int, kind: int = 0) -> bytes:
    return _field(2, _varint(8) + _varint(kind) + _field(2, queue.encode())) + _field(
        3, f"ID:host-1:1:{number}".encode()
    )


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value.encode())) + value.encode()


def _optional(value: str) -> bytes:
    return b"\1" + _text(value)


def _destination(name: str, whole: str = "") -> bytes:
    return (b"\1\x65" if whole.startswith("topic://") else b"\1\x64") + _optional(name)


def _message_id(number: int) -> bytes:
    producer = b"\1\x7b" + _optional("ID:host-1:1") + struct.pack(">qq", 1, -1)
    return b"\1\x6e\0" + producer + struct.pack(">qq", number, number)


def _properties(values: Mapping[str, str]) -> bytes:
    body = struct.pack(">i", len(values))
    body += b"".join(_text(name) + b"\x09" + _text(value) for name, value in values.items())
    return struct.pack(">i", len(body)) + body
