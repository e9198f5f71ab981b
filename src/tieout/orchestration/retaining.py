"""Deletes expired folders of statements, and nothing that Tieout did not write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

FOLDERS_PER_PASS: Final = 100
"""How many folders one pass deletes at most."""

NAME_FORMAT: Final = "%Y-%m-%dT%H%M%SZ"
"""How a window's folder is named: by its start, in UTC."""


def delete_statements(folder: Path, before: datetime) -> int:
    """Delete the statements of windows that began earlier than `before`, and return how many there were.

    Args:
        folder: Holds `<pipeline>/<start of the window>/`.
        before: The first start that is kept.
    """
    deleted = 0
    for statement in _expired(folder, before):
        shutil.rmtree(statement)
        deleted += 1
        if deleted == FOLDERS_PER_PASS:
            break
    return deleted


def _expired(folder: Path, before: datetime) -> Iterator[Path]:
    """Yield the folders that are named like a window's and hold a statement; links are left alone."""
    for path in sorted(folder.glob("*/*")):
        start = _start_of(path.name)
        is_ours = path.is_dir() and not path.is_symlink() and (path / "statement.json").is_file()
        if is_ours and start is not None and start < before:
            yield path


def _start_of(name: str) -> datetime | None:
    try:
        return datetime.strptime(name, NAME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
