"""Files of a ZooKeeper server for tests, as ZooKeeper 3.9 writes them, and what Trident does to its nodes."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MILLIS: Final = 1795170000000
"""When the first transaction of a test was; each further one is a second later."""
ROOT: Final = "/transactional/orders"
TOPOLOGY: Final = "counter-1-1795170000"
Node = tuple[str, bytes | None]
"""A path and what is written there, None where it is deleted."""


def log(entries: Iterable[bytes], *, version: int = 2, padding: int = 64) -> bytes:
    """Return a transaction log with these entries, filled up with zeros."""
    return b"ZKLG" + struct.pack(">iq", version, 0) + b"".join(entries) + bytes(padding)


def entry(
    zxid: int,
    *nodes: Node,
    millis: int | None = None,
    kind: int | None = None,
    record: bytes = struct.pack(">i", -101),
) -> bytes:
    """Return an entry that writes or deletes nodes, several of them in one; without nodes it is an error's record."""
    at = MILLIS + 1000 * zxid if millis is None else millis
    if kind is None and len(nodes) == 1:
        kind, record = _record(nodes[0])
    elif kind is None and nodes:
        inner = (_record(node) for node in nodes)
        record = struct.pack(">i", len(nodes)) + b"".join(
            struct.pack(">i", number) + _buffer(content) for number, content in inner
        )
        kind = 14
    else:
        kind = -1 if kind is None else kind
    body = struct.pack(">qiqqi", 72057594037927936, 1, zxid, at, kind) + record + b"digest"
    return struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B"


def snapshot(nodes: dict[str, tuple[bytes, int]], *, checksum: int | None = None) -> bytes:
    """Return a snapshot of nodes, each with its data and the time of that, behind a session and its permissions."""
    permissions = struct.pack(">qi", 1, 1) + struct.pack(">i", 31) + _text("world") + _text("anyone")
    content = b"ZKSN" + struct.pack(">iq", 2, -1) + struct.pack(">iqi", 1, 7, 4000) + struct.pack(">i", 1)
    content += permissions
    for path, (data, millis) in {"": (b"", 0), **nodes}.items():
        content += _text(path) + _buffer(data) + struct.pack(">qqqqqiiiqq", 1, 1, 1, 0, millis, 0, 0, 0, 0, 1)
    content += _text("/")
    known = zlib.adler32(content) if checksum is None else checksum
    return content + struct.pack(">q", known) + _text("/")


def current(txid: int, root: str = ROOT) -> Node:
    """Return what says which batch is next."""
    return f"{root}/coordinator/currtx", str(txid).encode()


def ranged(
    txid: int, first: int, last: int, partition: int = 0, topology: str | None = TOPOLOGY, root: str = ROOT
) -> Node:
    """Return what says which offsets a batch has."""
    reported = {"firstOffset": first, "lastOffset": last, "topologyId": topology}
    return f"{root}/user/orders@{partition}/{txid}", json.dumps(reported).encode()


def write(folder: Path, name: str, content: bytes) -> Path:
    """Write a file of the server, and return it."""
    place = folder / "version-2" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def _record(node: Node) -> tuple[int, bytes]:
    path, data = node
    if data is None:
        return 2, _text(path)
    acl = struct.pack(">ii", 1, 31) + _text("world") + _text("anyone")
    return 1, _text(path) + _buffer(data) + acl + b"\0" + struct.pack(">i", 1)


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def _buffer(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
