"""Detects files that were written to while they were read: whether a file is still the one that was digested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tieout.engine.sources.inputs import Input
from tieout.regular_files import digest_of, state_of


@dataclass(frozen=True)
class Writes:
    """Writes while the rows were read, one line per file: `faults` are changes, `notes` are appends."""

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def writes_to(files: Iterable[Input], *, may_grow: bool) -> Writes:
    """Return the writes to the local files among these since they were digested.

    Where a file `may_grow`, as a log read by lines does, an append is no fault as long as the digested bytes are
    still there: its rows are later ones.
    """
    faults, notes = [], []
    for file in files:
        if file.state is None or state_of(Path(file.path)) == file.state:
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


def _has_only_grown(file: Input) -> bool:
    path = Path(file.path)
    now = state_of(path)
    if now is None or file.state is None or now.number != file.state.number or now.size < file.size:
        return False
    try:
        return digest_of(path, file.size) == file.digest
    except OSError:
        return False
