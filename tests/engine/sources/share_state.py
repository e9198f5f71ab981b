"""Records of `__share_group_state` as a broker writes them, and a broker's log directory of them, for tests."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Final

TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
Stretch = tuple[int, int, int, int]
"""The first and the last offset, the delivery state, and how often they were delivered."""


def key(kind: int, group: str = "loader", topic_id: str = TOPIC_ID, partition: int = 0) -> bytes:
    """Return the key of a snapshot (0) or an update (1)."""
    name = group.encode()
    raw = base64.urlsafe_b64decode(topic_id + "==")
    return struct.pack(">hH", kind, len(name)) + name + raw + struct.pack(">i", partition)


def snapshot(start: int, *stretches: Stretch, version: int = 0, epoch: int = 0, tags: bytes = b"\0") -> bytes:
    """Return the value of a snapshot; the first of a state has epoch 0."""
    return struct.pack(">hiiiqqq", version, epoch, 0, 0, start, 1, 2) + _stretches(stretches) + tags


def update(start: int, *stretches: Stretch, version: int = 0, tags: bytes = b"\1\0\4\0\0\0\1") -> bytes:
    """Return the value of an update, with a tagged field as Kafka 4.2 and later write it."""
    return struct.pack(">hiiq", version, 0, 0, start) + _stretches(stretches) + tags


def _stretches(stretches: Sequence[Stretch]) -> bytes:
    rows = (struct.pack(">qqbh", *stretch) + b"\0" for stretch in stretches)
    return bytes([len(stretches) + 1]) + b"".join(rows)
