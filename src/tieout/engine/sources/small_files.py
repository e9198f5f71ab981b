"""Small files that another system keeps its state in, each read whole and once: what is parsed is what was digested.

Hadoop's local file system keeps a file's checksums next to it, in `.NAME.crc`. Where they exist and do not match, the
file was cut off or changed: a text cut at the end of a line does not show it otherwise.

Source: `ChecksumFileSystem` and `DataChecksum` of Apache Hadoop 3 (hadoop-common).
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tieout.engine.limits import is_time
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.paths import is_remote, name_of
from tieout.engine.sources.source import Request
from tieout.errors import SourceError
from tieout.regular_files import OF_CONTENT, opened_file

MOST_BYTES: Final = 16 << 20
"""The largest file of a system's own state: such files grow with partitions, not with records."""
_CRC_MAGIC: Final = b"crc\0"
_CRC_HEADER: Final = 8
_CRC_BYTES: Final = 4
_MOST_PER_CHECKSUM: Final = 1 << 24
_MOST_CRC_BYTES: Final = 1 << 24
_LINK: Final = "a link out of the folder {}; copy what it leads to into the folder"
_NO_NAME: Final = "expected the name of a file, found one with a zero byte"
_CHANGED: Final = "its checksum in {} does not hold: cut off or changed"


@dataclass(frozen=True)
class SmallFile:
    """One file: its content, empty if `input` has a fault, and when it was last modified."""

    input: Input
    content: bytes = b""
    modified_at: datetime | None = None

    @property
    def uri(self) -> str:
        """The file as rows name it."""
        return Path(self.input.path).as_uri()


def local_folder(request: Request, path: str) -> Path:
    """Return the folder that a contract's path names; it need not be there.

    Raises:
        SourceError: where it is not on a file system of this machine.
    """
    if is_remote(path):
        raise SourceError(
            f"{request.place}.path: expected a path that this machine has mounted, found {path}; copy it here"
        )
    return request.base_dir.absolute() / path


def small_file(path: Path, base_dir: Path, root: Path, most: int = MOST_BYTES) -> SmallFile:
    """Return the file with its content; it has a fault if it leads out of `root`, is no file, or exceeds `most`."""
    name = name_of(path, base_dir)
    if "\0" in name:
        return SmallFile(Input(str(path), name.replace("\0", "\\0"), "unread", _NO_NAME))
    if not leads_into(path, root):
        return SmallFile(Input(str(path), name, "unread", _LINK.format(name_of(root, base_dir))))
    try:
        with opened_file(path) as file:
            found = os.fstat(file.fileno())
            content = file.read(most + 1)
    except OSError as error:
        return SmallFile(Input(str(path), name, "unread", f"cannot be read: {error.strerror}"))
    digest = f"{OF_CONTENT}{hashlib.sha256(content).hexdigest()}"
    if len(content) > most:
        fault = f"expected at most {most >> 10} kB, found more"
        return SmallFile(Input(str(path), name, "unread", fault, found.st_size))
    file_input = Input(str(path), name, digest, _checksum_fault(path, content), len(content))
    return SmallFile(file_input, content, time_of(found.st_mtime_ns))


def time_of(nanoseconds: int) -> datetime | None:
    """Return the file system's time, to the millisecond; None beyond the calendar."""
    millis = nanoseconds // 1_000_000
    return datetime.fromtimestamp(millis / 1000, UTC) if is_time(millis) else None


def leads_into(path: Path, root: Path) -> bool:
    """Return whether a path, with its links followed, is below the folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def visible_names(folder: Path) -> Iterator[str]:
    """Yield the names in the folder but the hidden ones: checksums, files that are being written, folders of a service.

    Raises:
        OSError: where it cannot be listed.
    """
    yield from sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith((".", "_")))


def _checksum_fault(path: Path, content: bytes) -> str | None:
    """Return a fault where the file's checksums do not match; None where they do, and where there are none."""
    checksum_file = path.with_name(f".{path.name}.crc")
    try:
        with opened_file(checksum_file) as file:
            known = file.read(_MOST_CRC_BYTES)
    except OSError:
        return None
    size = int.from_bytes(known[4:_CRC_HEADER], "big")
    if not known.startswith(_CRC_MAGIC) or not 0 < size <= _MOST_PER_CHECKSUM:
        return None
    sums = (zlib.crc32(content[place : place + size]) for place in range(0, len(content), size))
    expected = b"".join(one.to_bytes(_CRC_BYTES, "big") for one in sums)
    return None if known[_CRC_HEADER:] == expected else _CHANGED.format(checksum_file.name)
