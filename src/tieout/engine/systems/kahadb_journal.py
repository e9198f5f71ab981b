"""Parses KahaDB's journal, ActiveMQ Classic's write-ahead log of messages and their removals.

A file is a sequence of batches, each with a checksum; a batch is a sequence of records; a record is a command in
Protocol Buffers that may contain OpenWire. An end mark follows the last batch and is written with it: without one,
batches are missing, torn by a crash or cut off with the file.

Source: `Journal`, `MessageDatabase` and `journal-data.proto` of Apache ActiveMQ 6.3 (activemq-kahadb-store).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.openwire import Acknowledgement, StoredMessage, acknowledgement, message

_HEADER: Final = struct.Struct(">iB")
_BATCH: Final = struct.Struct(">11siq")
_MAGIC: Final = b"WRITE BATCH"
_END: Final = b"-qMa"
_USER, _CONTROL = 1, 2
_TRACE, _ADD, _REMOVE, _COMMIT, _ROLLBACK, _REMOVE_QUEUE, _REWRITTEN = 0, 1, 2, 4, 5, 6, 16
_STARTED: Final = "LOADED"
_QUEUE, _TOPIC = 0, 1
LOCAL: Final = "local:"
"""Prefix of the name of a connection's transaction."""


@dataclass(frozen=True)
class Added:
    """A message that was added to a queue: `at` is the byte of the file at which its record starts."""

    at: int
    queue: str
    message_id: str
    transaction: str | None
    content: bytes

    def message(self) -> StoredMessage:
        """Return the message itself.

        Raises:
            FormatError: if it cannot be read.
        """
        return message(self.content)


@dataclass(frozen=True)
class Removed:
    """A message that was removed from a queue, and its acknowledgement."""

    queue: str
    message_id: str
    transaction: str | None
    by: Acknowledgement


@dataclass(frozen=True)
class Ended:
    """The end of a transaction."""

    transaction: str
    is_committed: bool


@dataclass(frozen=True)
class Started:
    """A start of the broker: it rolls back open transactions of connections."""


@dataclass(frozen=True)
class Deleted:
    """A queue that was deleted with all its messages; it may be created again."""

    queue: str


@dataclass(frozen=True)
class Published:
    """A message that was stored for the durable subscribers of a topic."""

    topic: str


@dataclass(frozen=True)
class Rewritten:
    """The start of a file whose entries the broker copied from an older file, so that it may delete that one."""


Entry = Added | Removed | Ended | Started | Deleted | Published | Rewritten


@dataclass(frozen=True)
class Torn:
    """A position followed by neither a complete batch nor the end mark. `is_followed`: batches come after it."""

    at: int
    is_followed: bool


def entries_in(content: bytes) -> Iterator[Entry | Torn]:
    """Yield the entries of a journal file in the order of writing; if it is torn, last a `Torn`.

    Records that belong to neither a queue nor a transaction are skipped, but for the messages of topics.

    Raises:
        FormatError: if a record with a valid checksum cannot be read.
    """
    at = 0
    while True:
        size = _batch_size(content, at)
        if size == 0 and content.find(_MAGIC, at) < 0:
            return
        if not size:
            break
        begin = at + _HEADER.size + _BATCH.size
        yield from _of_batch(content, begin, begin + size)
        at = begin + size
    yield Torn(at, content.find(_MAGIC, at + _HEADER.size + 1) >= 0)


def begins_journal(content: bytes) -> bool:
    """Return whether the bytes start like a journal file."""
    return content[_HEADER.size : _HEADER.size + len(_MAGIC)] == _MAGIC


def _batch_size(content: bytes, at: int) -> int | None:
    """Return the bytes of records that follow a batch's header: 0 at the end mark, None if it is torn."""
    if content.startswith(_END, at):
        return 0
    head = content[at : at + _HEADER.size + _BATCH.size]
    if len(head) < _HEADER.size + _BATCH.size or head[_HEADER.size - 1] != _CONTROL:
        return None
    magic, size, checksum = _BATCH.unpack_from(head, _HEADER.size)
    records = content[at + len(head) : at + len(head) + max(size, 0)]
    if magic != _MAGIC or size <= 0 or len(records) != size:
        return None
    return size if checksum in (0, zlib.adler32(records)) else None


def _of_batch(content: bytes, at: int, end: int) -> Iterator[Entry]:
    while at < end:
        if end - at < _HEADER.size:
            raise FormatError(f"expected a record at byte {at}, found the end of its batch")
        size, kind = _HEADER.unpack_from(content, at)
        if kind != _USER or size <= _HEADER.size or at + size > end:
            raise FormatError(f"expected a record within its batch at byte {at}, found another")
        try:
            entry = _entry(content[at + _HEADER.size : at + size], at)
        except FormatError as error:
            raise FormatError(f"the record at byte {at}: {error}") from None
        if entry is not None:
            yield entry
        at += size


def _entry(record: bytes, at: int) -> Entry | None:
    """Return the entry of a record, None if it is irrelevant."""
    kind = record[0]
    if kind == _REWRITTEN:
        return Rewritten()
    if kind not in (_TRACE, _ADD, _REMOVE, _COMMIT, _ROLLBACK, _REMOVE_QUEUE):
        return None
    length, begin = _varint(record, 1)
    fields = _fields(record[begin : begin + length])
    if kind == _TRACE:
        return Started() if _text(fields, 1).startswith(_STARTED) else None
    if kind in (_COMMIT, _ROLLBACK):
        return Ended(_transaction(fields[1]), kind == _COMMIT) if 1 in fields else None
    return _of_queue(kind, fields, at)


def _of_queue(kind: int, fields: dict[int, bytes | int], at: int) -> Entry | None:
    """Return what became of a queue or of a message in it; of other destinations only a topic's messages, else None."""
    type_, queue = _destination(fields, 1 if kind == _REMOVE_QUEUE else 2)
    if type_ != _QUEUE:
        return Published(queue) if (kind, type_) == (_ADD, _TOPIC) else None
    if kind == _REMOVE_QUEUE:
        return Deleted(queue)
    message_id, transaction = _text(fields, 3), _transaction(fields[1]) if 1 in fields else None
    if kind == _ADD:
        return Added(at, queue, message_id, transaction, _bytes(fields, 4))
    by = acknowledgement(_bytes(fields, 4)) if 4 in fields else Acknowledgement("STANDARD", None)
    return Removed(queue, message_id, transaction, by)


def _destination(fields: dict[int, bytes | int], number: int) -> tuple[bytes | int, str]:
    """Return the type and the name of the destination in a field."""
    destination = _fields(_bytes(fields, number))
    return destination.get(1, _QUEUE), _text(destination, 2)


def _transaction(content: bytes | int) -> str:
    """Return a transaction's id: its number for a connection, its branch for a resource manager."""
    if isinstance(content, int):
        raise FormatError("expected a transaction, found a number")
    fields = _fields(content)
    if 1 in fields:
        # Both its fields have the number 1: the connection, and a count.
        return LOCAL + ":".join(
            str(value) if isinstance(value, int) else value.decode("utf-8", "replace")
            for _, value in _values(_bytes(fields, 1))
        )
    branch = _fields(_bytes(fields, 2))
    return f"xa:{branch.get(1)!r}:{_bytes(branch, 2).hex()}:{_bytes(branch, 3).hex()}"


def _fields(content: bytes) -> dict[int, bytes | int]:
    """Return the fields of a Protocol Buffers message by number; the last one of a repeated field.

    Raises:
        FormatError: if it is cut off, or invalid.
    """
    return dict(_values(content))


def _values(content: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and value of each field."""
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        value: bytes | int
        if tag & 7 == 0:
            value, at = _varint(content, at)
        else:
            if tag & 7 == 2:
                size, at = _varint(content, at)
            elif tag & 7 in (1, 5):
                size = 8 if tag & 7 == 1 else 4
            else:
                raise FormatError(f"expected a field of Protocol Buffers, found the wire type {tag & 7}")
            value, at = content[at : at + size], at + size
            if len(value) < size:
                raise FormatError("cut off within a field")
        yield tag >> 3, value


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            raise FormatError("cut off within a number")
        byte, at = content[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise FormatError("expected a number of at most 64 bits, found more")


def _bytes(fields: dict[int, bytes | int], number: int) -> bytes:
    value = fields.get(number, b"")
    if isinstance(value, int):
        raise FormatError(f"expected bytes in the field {number}, found a number")
    return value


def _text(fields: dict[int, bytes | int], number: int) -> str:
    return _bytes(fields, number).decode("utf-8", "replace")
