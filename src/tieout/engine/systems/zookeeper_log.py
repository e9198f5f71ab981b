"""ZooKeeper's transaction log: all changes of nodes, with their times, as a server wrote them before it answered.

A file is a header and a row of entries, each with a checksum; it is filled up with zeros, and what an unclean end tore
is behind its last whole entry. A transaction's number (zxid) is an epoch, in its upper half, and a count within it.

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
_MOST_READINGS: Final = 4
"""Behind a torn entry, so many times the file's bytes are searched for a whole one."""
_COUNT_BITS: Final = 32


@dataclass(frozen=True)
class Change:
    """A node that was written, or deleted where `data` is None."""

    path: str
    data: bytes | None


@dataclass(frozen=True)
class Transaction:
    """One transaction: its number, when its leader began it (milliseconds since 1970), and what it changed."""

    zxid: int
    millis: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class TornLog:
    """Where the whole entries of a file end. `is_followed`: another whole entry comes after it."""

    at: int
    is_followed: bool


def transactions_in(content: bytes, prefix: str) -> Iterator[Transaction | TornLog]:
    """Yield a file's transactions, each with the changes below the node `prefix`; last, where it is torn, that.

    Raises:
        FormatError: where it is another file or of another version, or an entry that has its checksum cannot be read.
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


def require_header(content: bytes, magic: bytes, what: str) -> None:
    """Refuse what is no such file of this version.

    Raises:
        FormatError: naming what was found.
    """
    if content[: len(magic)] != magic:
        raise FormatError(f"expected {what} of ZooKeeper, found another beginning")
    version = DataInput(content[:HEADER_BYTES], len(magic)).signed(4)
    if version != VERSION:
        raise FormatError(f"expected version {VERSION} of {what}, found version {version}")


def follows(zxid: int, before: int) -> bool:
    """Return whether no transaction is missing between the two: the count goes on, or begins in a later epoch.

    >>> follows(8, 7), follows(9, 7), follows((1 << 32) + 1, 7), follows((1 << 32) + 2, 7)
    (True, False, True, False)
    """
    epoch, count = divmod(zxid, 1 << _COUNT_BITS)
    last_epoch = before >> _COUNT_BITS
    return zxid == before + 1 if epoch == last_epoch else epoch > last_epoch and count == 1


def _entry(content: bytes, at: int) -> bytes | None:
    """Return the entry that begins at a byte, None where none that is whole does."""
    size = _size(content, at)
    body = content[at + _ENTRY_BYTES : at + _ENTRY_BYTES + size]
    return body if size and zlib.adler32(body) == DataInput(content[at : at + 8]).signed(8) else None


def _size(content: bytes, at: int) -> int:
    """Return the bytes of what looks like an entry that begins at a byte, 0 where nothing does."""
    size = int.from_bytes(content[at + 8 : at + _ENTRY_BYTES], "big", signed=True)
    end = at + _ENTRY_BYTES + size
    return size if size > 0 and content[end : end + len(_END)] == _END else 0


def _is_followed(content: bytes, at: int) -> bool:
    """Return whether a whole entry begins behind a torn one: right behind it, or behind any end of an entry.

    It may, where so much looks like an entry that to check all of it would take too long.
    """
    torn = _size(content, at)
    if torn and _entry(content, at + _ENTRY_BYTES + torn + len(_END)) is not None:
        return True
    left = _MOST_READINGS * len(content)
    end = content.find(_END, at)
    while end >= 0 and left > 0:
        left -= _ENTRY_BYTES + _size(content, end + 1)
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
    """Yield what a record of this kind changed; sessions, permissions and errors change no node's data."""
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
    """Return the next bytes, which have their length before them; None where that is -1."""
    size = data.signed(4)
    return None if size < 0 else data.taken(size)
