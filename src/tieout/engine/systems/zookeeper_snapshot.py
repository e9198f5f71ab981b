"""Parses ZooKeeper's snapshot: all nodes at one transaction, or a little later, with the time of each node's write.

A server keeps working while it writes it: a node may already reflect a later transaction, which the log has as well.

Source: `FileSnap`, `DataTree.serialize` and `zookeeper.jute` of Apache ZooKeeper 3.9.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.zookeeper_log import HEADER_BYTES, require_header

SNAPSHOT_MAGIC: Final = b"ZKSN"
_LAST: Final = "/"


@dataclass(frozen=True)
class Node:
    """A node: its data, and when it was written (milliseconds since 1970)."""

    path: str
    data: bytes
    millis: int


def nodes_in(content: bytes, prefix: str) -> tuple[Node, ...]:
    """Return the nodes below the node `prefix`.

    Raises:
        FormatError: if it is another file, of another version, cut off, or its checksum is wrong.
    """
    require_header(content, SNAPSHOT_MAGIC, "a snapshot")
    data = DataInput(content, HEADER_BYTES)
    for _ in range(data.number(4)):
        data.taken(8 + 4)  # a session, and its timeout
    for _ in range(data.number(4)):
        data.taken(8)
        _permissions(data)
    nodes = tuple(node for node in _nodes(data) if node.path.startswith(f"{prefix}/"))
    checked = content[: data.at]
    if data.signed(8) != zlib.adler32(checked):
        raise FormatError("its checksum does not hold: cut off or changed")
    return nodes


def _permissions(data: DataInput) -> None:
    """Skip a list of permissions."""
    for _ in range(max(data.signed(4), 0)):
        data.taken(4)
        _text(data)
        _text(data)


def _nodes(data: DataInput) -> Iterator[Node]:
    path = _text(data)
    while path != _LAST:
        size = data.signed(4)
        content = data.taken(max(size, 0))
        data.taken(
            8 + 8 + 8 + 8
        )  # permissions, the transactions of creation and of the last change, time of creation
        millis = data.signed(8)
        data.taken(3 * 4 + 2 * 8)  # versions, the owner, the children's last transaction
        yield Node(path, content, millis)
        path = _text(data)


def _text(data: DataInput) -> str:
    return data.taken(max(data.signed(4), 0)).decode("utf-8", "replace")
