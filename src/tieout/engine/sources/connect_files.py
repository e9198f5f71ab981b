"""The reader of the kind `connect_files`: files of a sink connector whose names say which offsets are in them.

As positions each name is a range. As output each row has the place in the log that the name gives it, but only where
the file has as many rows as its range has offsets: where markers or aborted records lie in the range, or a row is
missing, nobody knows which offset a row is of. What lies below a folder `+tmp` was being written and is no output.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts import ConnectFilesSource, FilesSource
from tieout.engine.sources.discovery import inputs_in
from tieout.engine.sources.file_facts import with_facts
from tieout.engine.sources.files import reading_of
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.positions import (
    Position,
    position_row,
    position_rows,
    require_position_ledger,
    shortened,
)
from tieout.engine.sources.small_files import leads_into, local_folder
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, Reading, Request
from tieout.engine.sources.spark_files import MODIFIED, modified_at, with_metadata
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.range_names import SHADOW, RangeName, divided, range_name
from tieout.errors import SourceError
from tieout.model import Ledger
from tieout.regular_files import OF_CONTENT, State, require_file, state_of

_HIDDEN: Final = ("_", ".")
_DIVIDED: Final = (
    "{}: its offsets overlap those of {} in another folder, as where a partitioner divides records: "
    "a name spans more than its file holds; expected the files of one folder"
)
_TWICE: Final = (
    "{}: its name has the offsets of {}: one is a copy of the other or says something about it, or they were written "
    "twice; take away what is not the connector's"
)
_EMPTY: Final = "expected the rows of the offsets in its name, found no byte: cut off"
_UNPLACED: Final = (
    "expected %d rows, as many as the file's name has offsets, found %d: which offset each is of nobody knows"
)
_FACTS: Final = (
    "topic STRING, partition INT, offset BIGINT, consumer_group STRING, "
    f"{MODIFIED}, _first BIGINT, _count BIGINT"
)


@dataclass(frozen=True)
class _Found:
    """The files of a folder: those whose names are ranges, what is wrong with the others, and how many are shadows.

    `divided` says which files have ranges that say more than they hold, by the partition that they are of.
    """

    files: tuple[tuple[Path, RangeName], ...]
    faults: tuple[str, ...]
    divided: tuple[tuple[tuple[str, int], str], ...]
    shadows: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the files that count for nothing."""
        return (
            (f"{self.shadows} files below {SHADOW} were being written, and are no output",)
            if self.shadows
            else ()
        )

    @property
    def told_of_divided(self) -> tuple[str, ...]:
        """What is to be said of files whose ranges say more than they hold."""
        return shortened(tuple(told for _, told in self.divided))


def read(spec: ConnectFilesSource, request: Request) -> Reading:
    """Return one row for each file as a position, or for `delivered` the rows in the files.

    Raises:
        SourceError: for another ledger, for `delivered` without a format, for a path that is not on a file system of
            this machine, and as the kind `files` does.
    """
    is_output = request.ledger is Ledger.DELIVERED
    if not is_output:
        require_position_ledger(f"{spec.kind}, where it is not delivered,", request)
    elif spec.format is None:
        raise SourceError(
            f"{request.place}.format: expected the format of the files' rows for delivered, found none"
        )
    folder = Path(os.path.normpath(local_folder(request, spec.path)))
    if not folder.is_dir():
        absent = f"{spec.path}: no such folder"
        return Reading(None, is_present=False, read_at=request.now, unparsed_inputs=1, notes=(absent,))
    found = _found(folder, re.compile(spec.pattern), request)
    return _output(spec, request, folder, found) if is_output else _positions(spec, request, found)


def _found(folder: Path, pattern: re.Pattern[str], request: Request) -> _Found:
    """Return what lies in the folder now."""
    files, shadows = [], 0
    closed: list[OSError] = []
    paths = sorted(_paths(folder, closed))
    faults = [
        f"{name_of(Path(one.filename), request.base_dir)}: cannot be read: {one.strerror}" for one in closed
    ]
    for path in paths:
        if SHADOW in path.relative_to(folder).parts[:-1]:
            shadows += 1
            continue
        try:
            _require_inside(path, folder, request)
            files.append((path, range_name(path.name, pattern)))
        except FormatError as error:
            faults.append(f"{name_of(path, request.base_dir)}: {error}")
    known = {str(path): (name.topic, name.partition) for path, name in files}
    pairs = tuple(
        (known[later], _DIVIDED.format(*(name_of(Path(one), request.base_dir) for one in (later, first))))
        for first, later in divided((str(path), name) for path, name in files)
    )
    return _Found(tuple(files), tuple(faults), pairs, shadows)


def _require_inside(path: Path, folder: Path, request: Request) -> None:
    if not leads_into(path, folder):
        raise FormatError(
            f"a link out of the folder {name_of(folder, request.base_dir)}; copy the file into the folder"
        )
    try:
        require_file(path)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from None


def _paths(folder: Path, closed: list[OSError]) -> Iterator[Path]:
    """Yield the files below the folder but hidden ones; a link to a folder is one, and refused later.

    Why a folder could not be looked through is added to `closed`.
    """
    for place, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in (*names, *links) if not name.startswith(_HIDDEN))


def _positions(spec: ConnectFilesSource, request: Request, found: _Found) -> Reading:
    """Return the ranges of the names as positions, each of the time of its file; none of what was divided."""
    taken_at = spec.taken_time(request.now)
    unknown = {place for place, _ in found.divided}
    once, twice = _once(found, request)
    files = [(path, name) for path, name in once if (name.topic, name.partition) not in unknown]
    states = [(path, name, state_of(path)) for path, name in files]
    rows = [
        _position(spec, request, number, path, name, state)
        for number, (path, name, state) in enumerate(states)
    ]
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        digests=(_digest([path for path, _ in found.files], spec.path, request),) if found.files else (),
        unparsed_inputs=len(found.faults) + len(twice) + len(found.divided),
        notes=(*shortened((*found.faults, *twice)), *found.told_of_divided, *found.notes),
        complete_until=taken_at,
    )


def _once(found: _Found, request: Request) -> tuple[list[tuple[Path, RangeName]], list[str]]:
    """Return one file of a folder for each range, and in words which others have the same range."""
    first: dict[tuple[Path, RangeName], Path] = {}
    twice = []
    for path, name in found.files:
        known = first.setdefault((path.parent, name), path)
        if known != path:
            twice.append(_TWICE.format(*(name_of(one, request.base_dir) for one in (path, known))))
    return [(path, name) for (_, name), path in first.items()], twice


def _position(
    spec: ConnectFilesSource, request: Request, number: int, path: Path, name: RangeName, state: State | None
) -> tuple[object, ...]:
    known = Input(str(path), path.name, "", state=state)
    at = modified_at(known) if spec.has_own_times else None
    position = Position(name.topic, name.partition, name.first, name.last + 1, at)
    return position_row(request, position, path.as_uri(), number)


def _digest(paths: Sequence[Path], folder: str, request: Request) -> str:
    """Return one line about the names, which are all that is read."""
    names = "\n".join(name_of(path, request.base_dir) for path in paths)
    return (
        f"{OF_CONTENT}{hashlib.sha256(names.encode()).hexdigest()}  names of {len(paths)} files in {folder}"
    )


def _output(spec: ConnectFilesSource, request: Request, folder: Path, found: _Found) -> Reading:
    """Return the rows of the files with the places that their names give them; rows are read whole, to be counted."""
    paths = [path for path, _ in found.files]
    files = inputs_in(paths, request.base_dir, spec.format or "", Path(os.path.realpath(folder)))
    inputs = Inputs(tuple(_not_empty(file) for file in files), ())
    names = {str(path): name for path, name in found.files}
    source = FilesSource.model_validate({"path": spec.path, "format": spec.format, "options": spec.options})
    reading = reading_of(source, replace(request, reach=None), inputs)
    return with_metadata(
        reading, lambda one: _told(one, spec, request, found, _facts(spec, request, inputs, names))
    )


def _not_empty(file: Input) -> Input:
    """Return the file; one without a byte has a fault, for a connector names no file by offsets before it has rows."""
    return file if file.size or file.fault is not None else replace(file, fault=_EMPTY)


_Facts = dict[str, tuple[object, ...]]


def _facts(spec: ConnectFilesSource, request: Request, inputs: Inputs, names: dict[str, RangeName]) -> _Facts:
    """Return what is known of each file by its name, and when it was written."""
    facts: _Facts = {}
    for file in inputs.readable:
        name, at = names[file.path], modified_at(file) if spec.has_own_times else None
        facts[file.path] = (name.topic, name.partition, None, request.group, at, name.first, name.count)
    return facts


def _told(
    reading: Reading, spec: ConnectFilesSource, request: Request, found: _Found, facts: _Facts
) -> Reading:
    taken_at = spec.taken_time(request.now)
    return replace(
        reading,
        rows=None if reading.rows is None else _placed(with_facts(reading.rows, facts, _FACTS), request),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        complete_until=taken_at,
        unparsed_inputs=reading.unparsed_inputs + len(found.faults),
        notes=(*shortened(found.faults), *reading.notes, *found.told_of_divided, *found.notes),
        is_columnar=False,
    )


def _placed(rows: DataFrame, request: Request) -> DataFrame:
    """Return the rows with their offsets, where their file has a row for each offset of its name.

    | FILE                  | ROW | _first | _count | offset |
    |-----------------------|-----|--------|--------|--------|
    | orders+0+5+6.json     | 0   | 5      | 2      | 5      |
    | orders+0+5+6.json     | 1   | 5      | 2      | 6      |
    | orders+0+7+9.json     | 0   | 7      | 3      | null   |

    A row without an offset cannot be read where nothing else says which message it is of.
    """
    of_file = Window.partitionBy(FILE)
    in_order = of_file.orderBy(BLOCK, ROW)
    count = F.count(F.lit(1)).over(of_file)
    is_whole = count == F.col("_count")
    place = F.col("_first") + F.row_number().over(in_order) - 1
    placed = rows.withColumn("offset", F.when(is_whole, place))
    if request.is_by_position and request.uses("offset"):
        fault = F.when(~is_whole, F.format_string(_UNPLACED, "_count", count))
        placed = placed.withColumn(FAULT, F.coalesce(F.col(FAULT), fault))
    return placed.drop("_first", "_count")
