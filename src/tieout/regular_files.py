"""Files that are files: pipes, devices and sockets are refused, as who opens one may wait for ever, or read for ever.

Whoever writes evidence can put one into a folder under any name.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


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


def _require(found: os.stat_result, path: Path) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "none")
        raise OSError(errno.EINVAL, f"expected a file, found {kind}", str(path))
    return found
