"""Checks of output folders: one statement needs a folder of its own, several go below one folder."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Final

from tieout.errors import UsageError

RESULT_FILES: Final = frozenset(
    {"statement.json", "statement.html", "statement.md", "breaks", "breaks.jsonl"}
)


def checked_output(directory: Path, replaceable: Set[str] = RESULT_FILES, kind: str = "statement") -> Path:
    """Return the absolute directory if replacing it deletes only an earlier result of the same kind.

    Raises:
        UsageError: if it is not a folder, holds other files, or cannot be created or replaced.
    """
    directory = directory.absolute()
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise UsageError(f"--output {directory}: expected a folder, or nothing yet")
    if directory.is_dir():
        foreign = sorted(entry.name for entry in directory.iterdir() if entry.name not in replaceable)
        if foreign:
            raise UsageError(
                f"--output {directory}: it is replaced as a whole, but holds {foreign[0]!r}, which is no part "
                f"of a {kind}; give a folder of its own"
            )
    _require_writable(directory, directory.parents)
    return directory


def checked_folder(directory: Path) -> Path:
    """Return the absolute folder for further results, which need not exist yet.

    Raises:
        UsageError: if it is not a folder, or cannot be created or written to.
    """
    directory = directory.absolute()
    _require_writable(directory, (directory, *directory.parents))
    return directory


def _require_writable(directory: Path, folders: Sequence[Path]) -> None:
    existing = next(folder for folder in folders if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"--output {directory}: {existing} is not a folder that can be written to")
