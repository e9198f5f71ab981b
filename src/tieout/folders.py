"""Result folders that are replaced as a whole or not at all, at whatever moment the process ends."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tieout.errors import DiskFullError

_MARK: Final = "tieout-"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_EXCHANGE: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


@contextmanager
def replaced(directory: Path, *, mode: int = 0o755) -> Iterator[Path]:
    """Give an empty folder beside `directory`, which takes its place when the block ends without an error.

    There is a whole folder under the name at every moment: Linux exchanges two names in one step. A file system that
    cannot (renameat2(2) names them) renames twice. What killed processes left beside `directory` is removed first.

    Raises:
        DiskFullError: where the device has no space left; what was there before is untouched.
        OSError: where the folder cannot be written otherwise; the same.
    """
    with full_device_named(directory.parent):
        directory.parent.mkdir(parents=True, exist_ok=True)
        staged, held = _staged_beside(directory)
        try:
            yield staged
            staged.chmod(mode)
            _put(staged, directory)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            os.close(held)


@contextmanager
def full_device_named(directory: Path) -> Iterator[None]:
    """Name the folder where a write into it finds the device full; a bare error names a file that is gone by then.

    Raises:
        DiskFullError: instead of the system's error.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(f"no space left on the device of {directory}") from error
        raise


def _staged_beside(directory: Path) -> tuple[Path, int]:
    """Return a new folder and the open file that locks it, after removing those whose lock nobody holds.

    The parent is locked meanwhile: nobody finds a new folder before its own lock is taken.
    """
    prefix = f".{directory.name}.{_MARK}"
    parent = _locked(directory.parent)
    try:
        for entry in directory.parent.iterdir():
            if entry.name.startswith(prefix) and entry.is_dir() and not entry.is_symlink():
                _remove_unless_held(entry)
        staged = Path(tempfile.mkdtemp(prefix=prefix, dir=directory.parent))
        return staged, _locked(staged)
    finally:
        os.close(parent)


def _locked(folder: Path) -> int:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    return opened


def _remove_unless_held(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(opened)


def _put(staged: Path, directory: Path) -> None:
    """Put the staged folder in the other's place; afterwards the old one, if there was one, has the staged name."""
    if not directory.exists():
        staged.replace(directory)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(staged), os.fsencode(directory)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return
    failure = ctypes.get_errno()
    if failure not in _NO_EXCHANGE:
        raise OSError(failure, os.strerror(failure), str(directory))
    old = staged.with_name(staged.name + ".old")
    directory.replace(old)
    staged.replace(directory)
    shutil.rmtree(old, ignore_errors=True)
