"""The records of `__share_group_state`: how far a share group is in a partition, and what became of single records.

A snapshot says all that is known of the partition, an update what changed. Both say for stretches of offsets which
delivery state they are in. A lock is in neither: what a member has is known to its broker alone. Work and memory are
bounded by the record's size, whatever numbers stand in it.

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
"""The least bytes of a stretch: two offsets, its state, how often it was delivered, and that no tags follow."""
_NONE: Final = -1
"""The offset that says that there is none."""
_WRITTEN: Final = "as Kafka 4.3 writes it"


class DeliveryState(IntEnum):
    """What became of a record; it is given to nobody any more once it is acknowledged or archived."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class StateKey(NamedTuple):
    """What a record is about: a group and one partition of a topic, whose id is written as Kafka prints it."""

    group: str
    topic_id: str
    partition: int
    is_snapshot: bool


class StateBatch(NamedTuple):
    """A stretch of offsets, the last one included, in one state, and how often it was delivered."""

    first: int
    last: int
    state: DeliveryState
    deliveries: int


@dataclass(frozen=True)
class ShareState:
    """What a record says: the first offset that is not done with, None where it says nothing of it, and stretches."""

    start: int | None
    batches: tuple[StateBatch, ...]


def state_key(content: bytes) -> StateKey:
    """Return what a record is about, by its key.

    Raises:
        FormatError: where the key is cut off, goes on behind its end, or is of a type that is not known.
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
    """Return what a record says, by its value.

    Raises:
        FormatError: where the value is cut off, goes on behind its end, is of another version, or has stretches that no
            broker writes.
    """
    value = DataInput(content)
    version = value.number(2)
    if version != _VERSION:
        raise FormatError(f"expected a state of version {_VERSION}, found version {version}")
    value.taken(12 if is_snapshot else 8)  # the epochs of the snapshot, of the state and of the leader
    start = value.signed(8)
    if not _NONE <= start <= LARGEST:
        raise FormatError(f"start offset: expected an offset or -1, found {start}")
    if is_snapshot:
        value.taken(16)  # when it was created and written
    count = value.varint() - 1
    if not 0 <= count <= len(content) // _BATCH_BYTES:
        raise FormatError(f"expected as many stretches {_WRITTEN} as the value has room for, found {count}")
    batches = tuple(_batch(value) for _ in range(count))
    _pass_tags(value)
    _require_end(value, "value")
    return ShareState(None if start == _NONE else start, batches)


def _batch(value: DataInput) -> StateBatch:
    first, last, state, deliveries = (value.number(size) for size in (8, 8, 1, 2))
    _pass_tags(value)
    if not first <= last <= LARGEST:
        raise FormatError(f"expected a stretch of offsets, found {first} to {last}")
    if state > DeliveryState.ARCHIVED:
        raise FormatError(f"expected a delivery state from 0 to 4, found {state}")
    return StateBatch(first, last, DeliveryState(state), deliveries)


def _pass_tags(value: DataInput) -> None:
    """Pass over tagged fields, which later versions may add without becoming another version."""
    for _ in range(value.varint()):
        value.varint()
        value.taken(value.varint())


def _require_end(content: DataInput, what: str) -> None:
    if not content.is_at_end:
        raise FormatError(
            f"expected the {what} of a share group's state {_WRITTEN}, found more bytes behind it"
        )
