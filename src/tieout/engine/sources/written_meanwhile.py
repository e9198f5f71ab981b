"""Files that somebody writes to while they are read: whether a file is still the one that was digested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieout.regular_files import opened_file

OF_CONTENT: Final = "sha256:"
"""What the digest of a file's bytes begins with."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class State:
    """What the file system says of a file, which any write changes."""

    number: int
    size: int
    modified_ns: int


@dataclass(frozen=True)
class Digested:
    """A local file, how people call it, the digest of its bytes, and what it was before they were read."""

    path: Path
    name: str
    digest: str
    size: int
    state: State


@dataclass(frozen=True)
class Writes:
    """What was written while the rows were read, a line a file: `faults` are changes, `notes` what was appended."""

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def state_of(path: Path) -> State | None:
    """Return the file's state; None where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return State(found.st_ino, found.st_size, found.st_mtime_ns)


def writes_to(files: Iterable[Digested], *, may_grow: bool) -> Writes:
    """Return what was written to the files since they were digested.

    Where a file `may_grow`, as logs do that are read by lines, what was appended is no fault as long as the bytes that
    were digested are still there: its rows are later ones.
    """
    faults, notes = [], []
    for file in files:
        if state_of(file.path) == file.state:
            continue
        if may_grow and _has_only_grown(file):
            notes.append(
                f"{file.name}: was written on while it was read; its digest is of its first {file.size} bytes"
            )
        else:
            faults.append(
                f"{file.name}: changed while it was read, {file.size} bytes of it are in its digest; judge the window "
                "again when nobody writes to the file, or read a copy"
            )
    return Writes(tuple(faults), tuple(notes))


def _has_only_grown(file: Digested) -> bool:
    now = state_of(file.path)
    if now is None or now.number != file.state.number or now.size < file.size:
        return False
    digest, left = hashlib.sha256(), file.size
    try:
        with opened_file(file.path) as content:
            while left and (chunk := content.read(min(_CHUNK, left))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError:
        return False
    return file.digest == f"{OF_CONTENT}{digest.hexdigest()}"
