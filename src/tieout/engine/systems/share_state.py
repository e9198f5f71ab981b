"""Parses the records of `__share_group_state`: a share group's start offset and the states of single records.

A snapshot has the whole state of the partition, an update only changes. Both have delivery states of ranges of offsets.
Locks are in neither: records acquired by a member are known only to its broker. Work and memory are bounded by the
record's size, whatever numbers it contains.

Source: `ShareSnapshotKey.json`, `ShareSnapshotValue.json`, `ShareUpdateKey.json` and `ShareUpdateValue.json` of Apache
Kafka 4.3 (share-coordinator); `RecordState` (server); "The Kafka Protocol", tagged fields.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from tieout.engine.limits import LARGEST
from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.json_texts import FormatError

_SNAPSHOT, _UPDATE = 0, 1
_VERSION: Final = 0
_ID_BYTES: Final = 16
_BATCH_BYTES: Final = 20
"""The least bytes of a range: two offsets, its state, its delivery count, and an empty list of tags."""
_NO_OFFSET: Final = -1
"""The value of a missing offset."""
_WRITTEN: Final = "as Kafka 4.3 writes it"


class DeliveryState(IntEnum):
    """The delivery state of a record; it is not delivered again once it is acknowledged or archived."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class StateKey(NamedTuple):
    """The key of a record: a group and one partition of a topic, with the topic's id as Kafka prints it."""

    group: str
    topic_id: str
    partition: int
    is_snapshot: bool


class StateBatch(NamedTuple):
    """A range of offsets, the last one included, with its state and delivery count."""

    first: int
    last: int
    state: DeliveryState
    deliveries: int


@dataclass(frozen=True)
class ShareState:
    """The value of a record: the start offset, None if it has none, and ranges.

    `is_rewritten` is True for a snapshot of a state that had one before.
    """

    is_rewritten: bool
    start: int | None
    batches: tuple[StateBatch, ...]


def state_key(content: bytes) -> StateKey:
    """Return the parsed key of a record.

    Raises:
        FormatError: if the key is cut off, has bytes after its end, or is of an unknown type.
    """
    key = DataInput(content)
    kind = key.number(2)
    if kind not in (_SNAPSHOT, _UPDATE):
        raise FormatError(f"expected the key of a snapshot (0) or an update (1), found type {kind}")
    try:
        group = key.taken(key.number(2)).decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError("expected a group's name, found bytes that are no UTF-8") from None
    topic_id = base64.urlsafe_b64encode(key.taken(_ID_BYTES)).decode().rstrip("=")
    partition = key.number(4)
    _require_end(key, "key")
    return StateKey(group, topic_id, partition, kind == _SNAPSHOT)


def share_state(content: bytes, *, is_snapshot: bool) -> ShareState:
    """Return the parsed value of a record.

    Raises:
        FormatError: if the value is cut off, has bytes after its end, is of another version, or has ranges that no
            broker writes.
    """
    value = DataInput(content)
    version = value.number(2)
    if version != _VERSION:
        raise FormatError(f"expected a state of version {_VERSION}, found version {version}")
    is_rewritten = is_snapshot and value.signed(4) > 0  # the snapshot's epoch
    value.taken(8)  # the epochs of the state and of the leader
    start = value.signed(8)
    if not _NO_OFFSET <= start <= LARGEST:
        raise FormatError(f"start offset: expected an offset or -1, found {start}")
    if is_snapshot:
        value.taken(16)  # when it was created and written
    count = value.varint() - 1
    if not 0 <= count <= len(content) // _BATCH_BYTES:
        raise FormatError(f"expected as many stretches {_WRITTEN} as the value has room for, found {count}")
    batches = tuple(_batch(value) for _ in range(count))
    _skip_tags(value)
    _require_end(value, "value")
    return ShareState(is_rewritten, None if start == _NO_OFFSET else start, batches)


def _batch(value: DataInput) -> StateBatch:
    first, last, state, deliveries = (value.number(size) for size in (8, 8, 1, 2))
    _skip_tags(value)
    if not first <= last <= LARGEST:
        raise FormatError(f"expected a stretch of offsets, found {first} to {last}")
    if state > DeliveryState.ARCHIVED:
        raise FormatError(f"expected a delivery state from 0 to 4, found {state}")
    return StateBatch(first, last, DeliveryState(state), deliveries)


def _skip_tags(value: DataInput) -> None:
    """Skip tagged fields, which later releases may add without another version."""
    for _ in range(value.varint()):
        value.varint()
        value.taken(value.varint())


def _require_end(content: DataInput, part: str) -> None:
    if not content.is_at_end:
        raise FormatError(
            f"expected the {part} of a share group's state {_WRITTEN}, found more bytes behind it"
        )
