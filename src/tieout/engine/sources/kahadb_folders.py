"""The files of a KahaDB journal, in its own folder and in that of its archive, in the order of their numbers.

A running broker moves a file to the archive once it needs it no longer. A file that has moved before it was read is
looked for again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from tieout.engine.sources.paths import name_of
from tieout.engine.sources.small_files import SmallFile, small_file
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.kahadb_journal import Entry, Torn, begins_journal, entries_in

_NAME: Final = re.compile(r"db-([1-9][0-9]{0,8})\.log")
_MOST_FILE: Final = 64 << 20
"""The most bytes of a journal file; the broker begins another at `journalMaxFileLength`, 32 MB."""
_MOST_BYTES: Final = 256 << 20
"""The most bytes of all files together."""
ARTEMIS: Final = ".amq"
_OF_ARTEMIS: Final = f"activemq-data-*{ARTEMIS}"
_TRIES: Final = 3
_NAMED: Final = 5
_NOT_ARCHIVED: Final = (
    "of the journal's files 1 to {last}, {missing} {verb} not there: the broker deletes what it needs no longer, with "
    "its acknowledgements; set archiveDataLogs=true with a directoryArchive, and name both folders in path"
)
_TORN: Final = (
    "{}: expected a whole batch or the mark of the journal's end at byte {}, found neither: cut off, or torn when the "
    "broker lost power; copy it again, or start the broker and judge the window again"
)
_PAUSE: Final = 0.1
"""Seconds after which a broker has finished a write."""
_MOVING: Final = "{}: files are moved faster than they are read; copy the folders, and judge the copy"

AddEntries = Callable[[SmallFile, int, list[Entry]], None]


@dataclass(frozen=True)
class Journal:
    """The files that were read, without content, the last one's number and end byte, and faults."""

    files: tuple[SmallFile, ...]
    last: int
    end: int
    faults: tuple[str, ...]


def read_journal(folders: Sequence[Path], base_dir: Path, add_entries: AddEntries) -> Journal:
    """Hand over the entries of each file in the order of the numbers, and return what was read."""
    for _ in range(_TRIES):
        found, faults = _listed(folders, base_dir)
        try:
            return _read(found, faults, base_dir, add_entries)
        except FileNotFoundError:
            continue
    return Journal((), 0, 0, (_MOVING.format(name_of(folders[0], base_dir)),))


def elsewhere(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield what is in or below folders without a journal: a file of Artemis's journal, else folders with a journal."""

    def found(pattern: str) -> list[Path]:
        return sorted(path for folder in folders for path in folder.glob(pattern))

    artemis = [*found(_OF_ARTEMIS), *found(f"*/{_OF_ARTEMIS}")]
    yield from artemis[:1] or sorted({path.parent for path in found("*/db-*.log")})[:_NAMED]


def _listed(folders: Sequence[Path], base_dir: Path) -> tuple[dict[int, list[Path]], list[str]]:
    """Return the files by number, those of one number in the order of the folders, and the unreadable folders."""
    found: dict[int, list[Path]] = {}
    faults = []
    for folder in folders:
        try:
            names = sorted(folder.iterdir())
        except OSError as error:
            faults.append(f"{name_of(folder, base_dir)}: cannot be read: {error.strerror}")
            continue
        for path in names:
            name = _NAME.fullmatch(path.name)
            if name is not None:
                found.setdefault(int(name[1]), []).append(path)
    return dict(sorted(found.items())), faults


def _read(
    found: dict[int, list[Path]], faults: list[str], base_dir: Path, add_entries: AddEntries
) -> Journal:
    """Read the listed files.

    Raises:
        FileNotFoundError: where a file is gone before any was handed over.
    """
    files: list[SmallFile] = []
    last, end, size = max(found, default=0), 0, 0
    for paths in found.values():
        for path in paths:
            path.lstat()
    for number, paths in found.items():
        most = min(_MOST_FILE, _MOST_BYTES - size)
        file, others = _one_of(paths, base_dir, most)
        entries, torn, fault = _entries(file)
        if number == last and torn is not None and not torn.is_followed:
            # A running broker writes on while it is read.
            time.sleep(_PAUSE)
            file, others = _one_of(paths, base_dir, most)
            entries, torn, fault = _entries(file)
        size += file.input.size
        faults += others
        files.append(replace(file, content=b""))
        if file.input.fault is not None:
            faults.append(f"{file.input.name}: {file.input.fault}")
            continue
        add_entries(file, number, entries)
        end = len(file.content.rstrip(b"\0")) if torn is None else torn.at
        if fault is not None:
            faults.append(fault)
        elif torn is not None and torn.is_followed:
            faults.append(f"{file.input.name}: expected a whole batch at byte {torn.at}, found another")
        elif torn is not None:
            faults.append(_TORN.format(file.input.name, torn.at))
    faults += _missing(found, last)
    return Journal(tuple(files), last, end, tuple(faults))


def _one_of(paths: Sequence[Path], base_dir: Path, most: int) -> tuple[SmallFile, list[str]]:
    """Return the file of a number; where several folders have it, the first, and a fault where they differ."""
    read = [small_file(path, base_dir, path.parent, most) for path in paths]
    others = [
        f"{one.input.name}: expected what {read[0].input.name} holds, found another"
        for one in read[1:]
        if one.content != read[0].content
    ]
    return read[0], others


def _entries(file: SmallFile) -> tuple[list[Entry], Torn | None, str | None]:
    """Return the file's entries up to where it is torn or cannot be read."""
    entries: list[Entry] = []
    if not begins_journal(file.content):
        return entries, None, f"{file.input.name}: expected a journal of KahaDB, found another beginning"
    try:
        for entry in entries_in(file.content):
            if isinstance(entry, Torn):
                return entries, entry, None
            entries.append(entry)
    except FormatError as error:
        return entries, None, f"{file.input.name}: {error}"
    return entries, None, None


def _missing(found: dict[int, list[Path]], last: int) -> Iterator[str]:
    """Yield a fault where files of lower numbers are missing."""
    # A file may have any number: those that are missing are counted, and only a few are looked for.
    count = max(last - len(found), 0)
    if count:
        missing = islice((str(number) for number in range(1, last) if number not in found), _NAMED)
        named = ", ".join(missing) + (f" and {count - _NAMED} more" if count > _NAMED else "")
        yield _NOT_ARCHIVED.format(last=last, missing=named, verb="is" if count == 1 else "are")
