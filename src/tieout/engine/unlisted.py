"""Folders that a wildcard leads into and that cannot be listed: their files are missing, which must be reported.

Python's `glob` silently skips a folder that it may not read, and so does `os.walk`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def matched(plain: Path, pattern: str) -> tuple[list[str], list[Path]]:
    """Return the path if it exists, else the matches of the pattern, and the folders that are `unlisted`."""
    if answer(plain.exists, otherwise=True):
        return [str(plain)], []
    return glob.glob(pattern, recursive=True), list(unlisted(pattern))  # noqa: PTH207 - an absolute pattern


def answer(question: Callable[[], bool], *, otherwise: bool) -> bool:
    """Return the answer to a question about a path; `otherwise` if it is not permitted, or the name is too long."""
    try:
        return question()
    except OSError:
        return otherwise


def unlisted(pattern: str) -> Iterator[Path]:
    """Yield the folders that a pattern leads into and that cannot be listed, for whatever reason."""
    parts = Path(pattern).parts
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for number in range(first, len(parts)):
        above = str(Path(*parts[:number]))
        for folder in [above] if number == first else glob.glob(above, recursive=True):  # noqa: PTH207 - an absolute pattern
            if reason_unlisted(folder, parts[number]) is not None:
                yield Path(folder)


def reason_unlisted(folder: Path | str, part: str = "*") -> str | None:
    """Return why names in a folder that match a part of a pattern cannot be found; None if they can, or it is none."""
    try:
        if glob.has_magic(part):
            os.scandir(folder).close()
        os.lstat(os.path.join(folder, "." if glob.has_magic(part) else part))  # noqa: PTH118 - may be many
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.strerror
    return None
