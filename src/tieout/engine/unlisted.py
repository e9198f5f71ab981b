"""Folders that wildcards lead into and that cannot be looked through: what is in them is missing, and must be told.

Python's `glob` passes over a folder that it may not read without a word, and so does `os.walk`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def matched(plain: Path, pattern: str) -> tuple[list[str], list[Path]]:
    """Return the path if there is one, else what the pattern leads to, and the folders that are `unlisted`."""
    if answer(plain.exists, otherwise=True):
        return [str(plain)], []
    return glob.glob(pattern, recursive=True), list(unlisted(pattern))  # noqa: PTH207 - an absolute pattern


def answer(question: Callable[[], bool], *, otherwise: bool) -> bool:
    """Return what is asked of a path; `otherwise` where nobody may know, or its name is too long to ask."""
    try:
        return question()
    except OSError:
        return otherwise


def unlisted(pattern: str) -> Iterator[Path]:
    """Yield the folders that a pattern leads into and that cannot be looked through, for whatever reason."""
    parts = Path(pattern).parts
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for number in range(first, len(parts)):
        above = str(Path(*parts[:number]))
        for folder in [above] if number == first else glob.glob(above, recursive=True):  # noqa: PTH207 - an absolute pattern
            if reason_unlisted(folder, parts[number]) is not None:
                yield Path(folder)


def reason_unlisted(folder: Path | str, part: str = "*") -> str | None:
    """Return why names in a folder that fit a part of a pattern cannot be found; None where they can, or it is none."""
    try:
        if glob.has_magic(part):
            os.scandir(folder).close()
        os.lstat(os.path.join(folder, "." if glob.has_magic(part) else part))  # noqa: PTH118 - may be many
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.strerror
    return None
