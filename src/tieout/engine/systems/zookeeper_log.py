"""Parses ZooKeeper's transaction log, the write-ahead log of all changes of nodes with their times.

A file is a header and a sequence of entries, each with a checksum; it is padded with zeros, and an entry torn by a
crash follows the last complete one. A transaction's number (zxid) is an epoch, in its upper half, and a count within
it.

Source: `FileTxnLog` and `zookeeper.jute` of Apache ZooKeeper 3.9.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.json_texts import FormatError

LOG_MAGIC: Final = b"ZKLG"
VERSION: Final = 2
HEADER_BYTES: Final = 16
_ENTRY_BYTES: Final = 12
_END: Final = b"B"
_CREATES: Final = frozenset({1, 15, 19, 21})
_DELETES: Final = frozenset({2, 20})
_SET, _MULTI = 5, 14
_MOST_PASSES: Final = 4
"""The limit of the search for a complete entry after a torn one, as a multiple of the file's size."""
_COUNT_BITS: Final = 32


@dataclass(frozen=True)
class Change:
    """A node that was written, or deleted if `data` is None."""

    path: str
    data: bytes | None


@dataclass(frozen=True)
class Transaction:
    """One transaction: its number, when its leader started it (milliseconds since 1970), and its changes."""

    zxid: int
    millis: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class TornLog:
    """The end of a file's complete entries. `is_followed`: another complete entry comes after it."""

    at: int
    is_followed: bool


def transactions_in(content: bytes, prefix: str) -> Iterator[Transaction | TornLog]:
    """Yield a file's transactions, each with the changes below the node `prefix`; if it is torn, last a `TornLog`.

    Raises:
        FormatError: if it is another file or of another version, or an entry with a valid checksum cannot be read.
    """
    require_header(content, LOG_MAGIC, "a transaction log")
    at = HEADER_BYTES
    while at < len(content):
        body = _entry(content, at)
        if body is None:
            if content[at:].strip(b"\0"):
                yield TornLog(at, _is_followed(content, at))
            return
        try:
            yield _transaction(body, prefix)
        except FormatError as error:
            raise FormatError(f"the entry at byte {at}: {error}") from None
        at += _ENTRY_BYTES + len(body) + len(_END)


def require_header(content: bytes, magic: bytes, kind: str) -> None:
    """Refuse content that is not a file of this kind and version.

    Raises:
        FormatError: with what was found.
    """
    if content[: len(magic)] != magic:
        raise FormatError(f"expected {kind} of ZooKeeper, found another beginning")
    version = DataInput(content[:HEADER_BYTES], len(magic)).signed(4)
    if version != VERSION:
        raise FormatError(f"expected version {VERSION} of {kind}, found version {version}")


def follows(zxid: int, before: int) -> bool:
    """Return whether no transaction is missing between the two: the count continues, or starts in a later epoch.

    >>> follows(8, 7), follows(9, 7), follows((1 << 32) + 1, 7), follows((1 << 32) + 2, 7)
    (True, False, True, False)
    """
    epoch, count = divmod(zxid, 1 << _COUNT_BITS)
    last_epoch = before >> _COUNT_BITS
    return zxid == before + 1 if epoch == last_epoch else epoch > last_epoch and count == 1


def _entry(content: bytes, at: int) -> bytes | None:
    """Return the complete entry at a byte, or None."""
    size = _size(content, at)
    body = content[at + _ENTRY_BYTES : at + _ENTRY_BYTES + size]
    return body if size and zlib.adler32(body) == DataInput(content[at : at + 8]).signed(8) else None


def _size(content: bytes, at: int) -> int:
    """Return the size of a possible entry at a byte, 0 if there is none."""
    size = int.from_bytes(content[at + 8 : at + _ENTRY_BYTES], "big", signed=True)
    end = at + _ENTRY_BYTES + size
    return size if size > 0 and content[end : end + len(_END)] == _END else 0


def _is_followed(content: bytes, at: int) -> bool:
    """Return whether a complete entry follows a torn one: directly, or after any end of an entry.

    Also True if there are too many possible entries to check all of them.
    """
    torn = _size(content, at)
    if torn and _entry(content, at + _ENTRY_BYTES + torn + len(_END)) is not None:
        return True
    bytes_left = _MOST_PASSES * len(content)
    end = content.find(_END, at)
    while end >= 0 and bytes_left > 0:
        bytes_left -= _ENTRY_BYTES + _size(content, end + 1)
        if _entry(content, end + 1) is not None:
            return True
        end = content.find(_END, end + 1)
    return end >= 0


def _transaction(body: bytes, prefix: str) -> Transaction:
    data = DataInput(body)
    data.taken(8 + 4)  # the session, and its own count
    zxid, millis, kind = data.number(8), data.signed(8), data.signed(4)
    return Transaction(zxid, millis, tuple(_changes(kind, data, prefix)))


def _changes(kind: int, data: DataInput, prefix: str) -> Iterator[Change]:
    """Yield the changes of a record of this kind; sessions, permissions and errors change no node's data."""
    if kind == _MULTI:
        for _ in range(data.number(4)):
            inner, record = data.signed(4), _buffer(data)
            if inner == _MULTI:
                raise FormatError(
                    "expected the parts of a transaction, found a transaction within a transaction"
                )
            yield from _changes(inner, DataInput(record or b""), prefix)
        return
    if kind not in _CREATES and kind not in _DELETES and kind != _SET:
        return
    path = (_buffer(data) or b"").decode("utf-8", "replace")
    if path.startswith(f"{prefix}/"):
        yield Change(path, None if kind in _DELETES else _buffer(data) or b"")


def _buffer(data: DataInput) -> bytes | None:
    """Return the next length-prefixed bytes; None if the length is -1."""
    size = data.signed(4)
    return None if size < 0 else data.taken(size)
