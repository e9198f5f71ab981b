"""The files of a ZooKeeper server: its transaction log from its beginning, or from a snapshot on, change by change.

A server deletes old logs (`autopurge`): then a snapshot has the nodes from before the first remaining one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

from tieout.engine.sources.inputs import Input
from tieout.engine.sources.paths import name_of
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.zookeeper_log import TornLog, Transaction, follows, transactions_in
from tieout.engine.systems.zookeeper_snapshot import Node, nodes_in
from tieout.regular_files import OF_CONTENT, opened_file

_LOG: Final = re.compile(r"log\.([0-9a-f]{1,16})")
_SNAPSHOT: Final = re.compile(r"snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
_VERSION: Final = "version-2"
_CHUNK: Final = 1 << 20
_MOST_FILE: Final = 1 << 30
"""The most bytes of a file, zeros included; a server begins another log after 100,000 transactions."""
_MOST_BYTES: Final = 256 << 20
"""The most bytes of all files together."""
_NOWHERE: Final = "/\0"
"""A name that no node has."""
_FIRST: Final = 1
_COUNT: Final = (1 << 32) - 1
_TORN: Final = (
    "{}: ends within an entry at byte {}, as a server that was killed leaves it, and never answered it"
)
_CUT: Final = (
    "{}: ends within an entry at byte {}, and no log follows: cut off, or its server was killed; copy it again, or "
    "start the server and judge the window again"
)
_PAUSE: Final = 0.1
"""Seconds after which a server has finished a write."""
_BROKEN: Final = "{}: expected a whole entry at byte {}, found another: cut off or changed"
_GAP: Final = (
    "transactions are missing between 0x{:x} and 0x{:x}: copy the folder with all its files, or read that of another "
    "server, as one that was sent a snapshot by its leader has no log of what it missed"
)
_UNLOGGED: Final = (
    "{}: the log does not have transaction 0x{:x}, of which this is a snapshot: name the log's folder (dataLogDir) in "
    "path as well, and copy all its files"
)
_SNAPPY: Final = "{}: compressed with Snappy, which is not read (zookeeper.snapshot.compression.method)"
_TOO_MANY: Final = (
    "{}: expected at most {} MB in all files together, found more; read a copy of the newest ones"
)

AddNodes = Callable[[tuple[Node, ...]], None]
AddChanges = Callable[[Transaction, str], None]


@dataclass
class ServerFiles:
    """The files that were read, their faults and notes, and the span of the log.

    No transaction after `begins_at` is missing; `last_at` is the last one's time. Both are milliseconds since 1970;
    `begins_at` is None where nothing is missing at all.
    """

    inputs: list[Input] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begins_at: int | None = None
    last_at: int | None = None
    _bytes_remaining: int = _MOST_BYTES

    def content(self, path: Path, base_dir: Path) -> bytes | None:
        """Return the file's content, a log without its zero padding; None where it cannot be read."""
        name = name_of(path, base_dir)
        try:
            content, digest, size = _read(path, self._bytes_remaining)
        except OSError as error:
            self.inputs.append(Input(str(path), name, "unread", f"cannot be read: {error.strerror}"))
            self.faults.append(f"{name}: cannot be read: {error.strerror}")
            return None
        self.inputs.append(Input(str(path), name, digest, size=size))
        if content is None:
            self.faults.append(_TOO_MANY.format(name, _MOST_BYTES >> 20))
        else:
            self._bytes_remaining -= len(content)
            if _LOG.fullmatch(path.name):
                return content.rstrip(b"\0")
        return content


def read_server(
    folders: Sequence[Path], base_dir: Path, prefix: str, add_nodes: AddNodes, add_changes: AddChanges
) -> ServerFiles:
    """Hand over the nodes of the snapshot that the log goes on from, where one is needed, then the changes in order.

    Only what is below the node `prefix` is handed over.
    """
    found = ServerFiles()
    snapshots = dict(_named(folders, _SNAPSHOT, found, base_dir))
    logs = [path for _, path in sorted(_named(folders, _LOG, found, base_dir), key=lambda one: one[0])]
    transactions = list(_logged(logs, base_dir, prefix, found))
    if not transactions:
        return found
    first = transactions[0][0].zxid
    known = {one.zxid for one, _ in transactions}
    for zxid, path in sorted(snapshots.items()):
        if zxid & _COUNT and zxid >= first and zxid not in known:
            found.faults.append(_UNLOGGED.format(name_of(path, base_dir), zxid))
    begins_after = _begin(first, known, snapshots, base_dir, prefix, found, add_nodes)
    for transaction, uri in transactions:
        if transaction.zxid > begins_after:
            if found.begins_at is None and begins_after != 0:
                found.begins_at = transaction.millis
            add_changes(transaction, uri)
    found.last_at = transactions[-1][0].millis
    return found


def _begin(
    first: int,
    known: set[int],
    snapshots: dict[int, Path],
    base_dir: Path,
    prefix: str,
    found: ServerFiles,
    add_nodes: AddNodes,
) -> int:
    """Hand over the nodes from before the log, and return the transaction after which its changes count.

    That is 0 where nothing is missing: the log begins with the first transaction, or there was nothing yet.
    """
    if first == _FIRST:
        return 0
    for zxid, path in sorted(snapshots.items()):
        if zxid not in known and not follows(first, zxid):
            continue
        nodes = _snapshot(path, base_dir, prefix, found)
        if nodes is None:
            continue
        add_nodes(nodes)
        return zxid if nodes else 0
    found.notes.append(
        "the log does not begin with the first transaction, and no snapshot tells what was there before it"
    )
    return first - 1


def _snapshot(path: Path, base_dir: Path, prefix: str, found: ServerFiles) -> tuple[Node, ...] | None:
    name = name_of(path, base_dir)
    if path.suffix == ".snappy":
        found.notes.append(_SNAPPY.format(name))
        return None
    content = found.content(path, base_dir)
    if content is None:
        return None
    try:
        if path.suffix == ".gz":
            content = gzip.GzipFile(fileobj=BytesIO(content)).read(_MOST_BYTES)
        return nodes_in(content, prefix)
    except (OSError, EOFError, zlib.error):
        found.notes.append(f"{name}: cannot be read: cut off or changed")
    except FormatError as error:
        # A server that was killed leaves one that is not whole, and takes an older one itself.
        found.notes.append(f"{name}: {error}")
    return None


def _named(
    folders: Sequence[Path], pattern: re.Pattern[str], found: ServerFiles, base_dir: Path
) -> Iterator[tuple[int, Path]]:
    """Yield the files of this kind with the transaction in their names."""
    for folder in folders:
        place = folder / _VERSION if (folder / _VERSION).is_dir() else folder
        try:
            paths = sorted(place.iterdir())
        except OSError as error:
            found.faults.append(f"{name_of(place, base_dir)}: cannot be read: {error.strerror}")
            continue
        for path in paths:
            name = pattern.fullmatch(path.name)
            if name is not None:
                yield int(name[1], 16), path


def _logged(
    logs: Sequence[Path], base_dir: Path, prefix: str, found: ServerFiles
) -> Iterator[tuple[Transaction, str]]:
    """Yield the transactions of all logs with the log's URI; a gap between them is a fault."""
    last: int | None = None
    for number, path in enumerate(logs):
        name, uri = name_of(path, base_dir), path.as_uri()
        is_last = number == len(logs) - 1
        if is_last and _is_torn(path):
            # A running server writes on while it is read.
            time.sleep(_PAUSE)
        content = found.content(path, base_dir)
        if content is None:
            continue
        try:
            for one in transactions_in(content, prefix):
                if isinstance(one, TornLog):
                    _add_torn_log(name, one, found, is_last=is_last)
                    break
                if last is not None and not follows(one.zxid, last):
                    found.faults.append(_GAP.format(last, one.zxid))
                last = one.zxid
                yield one, uri
        except FormatError as error:
            if not is_last or content:
                found.faults.append(f"{name}: {error}")


def _is_torn(path: Path) -> bool:
    """Return whether a log ends within an entry just now."""
    try:
        content, _, _ = _read(path, _MOST_BYTES)
        entries = transactions_in((content or b"").rstrip(b"\0"), _NOWHERE)
        return any(isinstance(one, TornLog) and not one.is_followed for one in entries)
    except (OSError, FormatError):
        return False


def _add_torn_log(name: str, torn: TornLog, found: ServerFiles, *, is_last: bool) -> None:
    """Add a fault or note on a torn log: a note if another log follows, whose first transaction would show a gap."""
    if torn.is_followed:
        found.faults.append(_BROKEN.format(name, torn.at))
    elif is_last:
        found.faults.append(_CUT.format(name, torn.at))
    else:
        found.notes.append(_TORN.format(name, torn.at))


def _read(path: Path, most: int) -> tuple[bytes | None, str, int]:
    """Return a file's bytes but whole megabytes of zeros at its end, None where they are too many.

    The digest is of all of it.

    Raises:
        OSError: where it cannot be read.
    """
    digest = hashlib.sha256()
    parts, kept, zeros, size = [], 0, 0, 0
    with opened_file(path) as file:
        limit = min(os.fstat(file.fileno()).st_size, _MOST_FILE)
        while size < limit and (chunk := file.read(min(_CHUNK, limit - size))):
            digest.update(chunk)
            size += len(chunk)
            if not chunk.strip(b"\0"):
                zeros += len(chunk)
                continue
            kept += zeros + len(chunk)
            if kept > most:
                return None, "unread", size
            parts += [bytes(zeros), chunk]
            zeros = 0
        if file.read(1) and size == _MOST_FILE:
            return None, "unread", size
    return b"".join(parts) + bytes(zeros % _CHUNK), f"{OF_CONTENT}{digest.hexdigest()}", size
