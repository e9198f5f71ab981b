"""Files that are files: pipes, devices and sockets are refused, as who opens one may wait for ever, or read for ever.

Whoever writes evidence can put one into a folder under any name.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

OF_CONTENT: Final = "sha256:"
"""What the digest of a file's bytes begins with."""
_CHUNK: Final = 1 << 20
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


def pattern_of(path: str, base_dir: Path) -> str:
    """Return a contract's path as an absolute pattern; a relative one starts at the folder, whose name is no pattern.

    >>> pattern_of("in/*.csv", Path("/data/[1]"))
    '/data/[[]1]/in/*.csv'
    """
    return path if Path(path).is_absolute() else str(Path(glob.escape(str(base_dir.absolute()))) / path)


def require_file(path: Path) -> os.stat_result:
    """Return what the file system says of a file, or of what a link leads to, without opening it.

    Raises:
        OSError: where there is none, or it is a pipe, a device, a socket or a folder; `strerror` says which.
    """
    return _require(path.stat(), path)


def opened_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes; never waits, not even where a pipe took its place a moment ago.

    Raises:
        OSError: as `require_file` does, and where it cannot be opened.
    """
    require_file(path)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _require(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path) -> bytes:
    """Return what the file holds.

    Raises: what `opened_file` raises.
    """
    with opened_file(path) as file:
        return file.read()


def digest_of(path: Path, size: int) -> str:
    """Return the digest of a file's first `size` bytes, or of all there are if they are fewer.

    Raises: what `opened_file` raises.
    """
    digest, left = hashlib.sha256(), size
    with opened_file(path) as file:
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return f"{OF_CONTENT}{digest.hexdigest()}"


@dataclass(frozen=True)
class State:
    """What the file system says of a file, which any write changes."""

    number: int
    size: int
    modified_ns: int


def state_of(path: Path) -> State | None:
    """Return the file's state; None where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return State(found.st_ino, found.st_size, found.st_mtime_ns)


def _require(found: os.stat_result, path: Path) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "none")
        raise OSError(errno.EINVAL, f"expected a file, found {kind}", str(path))
    return found
