"""Batches and records of a partition's log, however they were written down: in a segment file or in a dump of one.

Source: Apache Kafka's documentation, "Message Format" (Implementation), record batch of magic 2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tieout.errors import TieoutError

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
NONE: Final = "none"
_MARKERS: Final = {0: ABORTED, 1: COMMITTED}
_CONTROL_KEY: Final = struct.Struct(">hh")
"""A control record's key: its version, and its type."""


class LogError(TieoutError):
    """A log holds what no Kafka broker writes, or what this reader does not know."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `sequence` is -1 where its producer was not idempotent, times are milliseconds since 1970.

    `is_unprinted`: it has a key or a value that a dump does not show. `timestamp_ms` is None where a dump shows none.
    """

    offset: int
    timestamp_ms: int | None
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_unprinted: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch; `producer_id` is -1 where its producer was not idempotent, `read` decodes its records.

    `place` is where it begins: the byte in a segment file, the line in a dump. `count` is that of its records.
    `leader_epoch` is None where a dump does not print it.
    """

    place: int
    base_offset: int
    last_offset: int
    leader_epoch: int | None
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    is_log_append_time: bool
    count: int
    read: Callable[[], Iterable[Record]]

    def records(self) -> tuple[Record, ...]:
        """Return the batch's records.

        Raises:
            LogError: where they do not decode.
        """
        return tuple(self.read())

    def marker(self) -> str | None:
        """Return what a control batch decides, `committed` or `aborted`; None where it decides nothing.

        A cleaned log may keep a control batch without its record, and the cluster has control records of its own.

        Raises:
            LogError: where the control record does not decode.
        """
        if not (self.is_control and self.is_transactional):
            return None
        for record in self.read():
            if record.key is None or len(record.key) < _CONTROL_KEY.size:
                raise LogError(f"the control record at offset {record.offset} has no type")
            return _MARKERS.get(_CONTROL_KEY.unpack_from(record.key)[1])
        return None


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch that is no batch: where it begins, and why; `is_torn` where it is the end of a write that was cut off.

    `text` is the line of a dump.
    """

    place: int
    reason: str
    is_torn: bool = False
    text: str | None = None


Entry = Batch | Damage
