"""The `committed` ledger: the history of committed offsets, decoded from the topic `__consumer_offsets`.

Key: a 16-bit type (0 or 1 for a commit), group, topic, partition. Value: a 16-bit version (1 to 4), offset,
leader epoch from version 3 on, metadata (a compact string from version 4 on), time of the commit; the rest is
not needed. Other types are the group's membership and no commits. A commit inside an aborted transaction
never happened.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.record.log_ledger import transaction_states
from tools.record.messages import iso_of_ms
from tools.record.segments import Batch, SegmentError

_COMMIT_TYPES = (0, 1)
_SUPPORTED_VERSIONS = range(1, 5)


@dataclass(frozen=True)
class Commit:
    """One change of a position; `committed_offset` is the next offset to read, None if the entry was deleted."""

    consumer_group: str
    topic: str
    partition: int
    committed_offset: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
    committed_at: str | None = None


def commit_rows(batches: Iterable[Batch], group: str) -> Iterator[dict[str, object]]:
    """Yield the group's commits in the order of the log, without aborted, open and deleted ones."""
    all_batches = tuple(batches)
    states = transaction_states(all_batches)
    for batch in all_batches:
        for record in batch.records:
            if batch.is_control or record.key is None or states[record.offset] not in ("none", "committed"):
                continue
            commit = decode_commit(record.key, record.value)
            if commit and commit.consumer_group == group and commit.committed_offset is not None:
                yield vars(commit).copy()


def decode_commit(key: bytes, value: bytes | None) -> Commit | None:
    """Return the commit in a record of the topic, or None for a membership record.

    Raises:
        SegmentError: if the value's version is not one of 1 to 4.
    """
    fields = _Fields(key)
    if fields.number(">h") not in _COMMIT_TYPES:
        return None
    group, topic, partition = fields.string() or "", fields.string() or "", fields.number(">i")
    if value is None:
        return Commit(group, topic, partition, committed_offset=None)
    fields = _Fields(value)
    version = fields.number(">h")
    if version not in _SUPPORTED_VERSIONS:
        raise SegmentError(f"expected a commit of version 1 to 4 for group {group}, found version {version}")
    offset = fields.number(">q")
    epoch = fields.number(">i") if version >= 3 else -1
    metadata = fields.compact_string() if version >= 4 else fields.string()
    committed_at = iso_of_ms(fields.number(">q"))
    return Commit(group, topic, partition, offset, None if epoch < 0 else epoch, metadata, committed_at)


class _Fields:
    """Reads the fields of a key or a value in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, layout: str) -> int:
        """Return the next number of the given layout."""
        number: int = struct.unpack_from(layout, self._data, self._position)[0]
        self._position += struct.calcsize(layout)
        return number

    def string(self) -> str | None:
        """Return the next text with a 16-bit length before it; a negative length means none."""
        return self._text(self.number(">h"))

    def compact_string(self) -> str | None:
        """Return the next text with an unsigned varint of its length plus one before it; 0 means none."""
        length = shift = 0
        while True:
            byte = self.number(">B")
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return self._text(length - 1)
            shift += 7

    def _text(self, length: int) -> str | None:
        if length < 0:
            return None
        start = self._position
        self._position += length
        return self._data[start : self._position].decode()
