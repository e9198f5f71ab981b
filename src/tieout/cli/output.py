"""Where statements may be written: one to a folder of its own that holds nothing else, several below one folder."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Final

from tieout.errors import UsageError

OURS: Final = frozenset({"statement.json", "statement.html", "statement.md", "breaks", "breaks.jsonl"})


def checked_output(directory: Path, ours: Set[str] = OURS, what: str = "statement") -> Path:
    """Return the absolute directory where replacing it loses nothing but an earlier result of the same kind.

    Raises:
        UsageError: where it is no folder, holds other files, or cannot be created or replaced.
    """
    directory = directory.absolute()
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise UsageError(f"--output {directory}: expected a folder, or nothing yet")
    if directory.is_dir():
        others = sorted(entry.name for entry in directory.iterdir() if entry.name not in ours)
        if others:
            raise UsageError(
                f"--output {directory}: it is replaced as a whole, but holds {others[0]!r}, which is no part "
                f"of a {what}; give a folder of its own"
            )
    _require_writable(directory, directory.parents)
    return directory


def checked_folder(directory: Path) -> Path:
    """Return the absolute folder that results are to be added to, which may be missing yet.

    Raises:
        UsageError: where it is no folder, or cannot be created or written to.
    """
    directory = directory.absolute()
    _require_writable(directory, (directory, *directory.parents))
    return directory


def _require_writable(directory: Path, folders: Sequence[Path]) -> None:
    found = next(folder for folder in folders if folder.exists())
    if not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        raise UsageError(f"--output {directory}: {found} is not a folder that can be written to")
