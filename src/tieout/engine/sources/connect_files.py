"""The reader of the kind `connect_files`: files of a sink connector with the range of offsets in their names.

As positions each name is a range. As output each row has the offset given by the name, but only if the file has as many
rows as its range has offsets: if the range contains markers or aborted records, or a row is missing, a row's offset is
not known. Files below a folder `+tmp` were being written and are not output.
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
_SAME_RANGE: Final = (
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
class _RangeFiles:
    """The files of a folder: those whose names are ranges, faults of the others, and the number of shadow files.

    `divided` has notes on files whose ranges span more than they hold, with their partition.
    """

    files: tuple[tuple[Path, RangeName], ...]
    faults: tuple[str, ...]
    divided: tuple[tuple[tuple[str, int], str], ...]
    shadows: int

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the files that are ignored."""
        return (
            (f"{self.shadows} files below {SHADOW} were being written, and are no output",)
            if self.shadows
            else ()
        )

    @property
    def divided_notes(self) -> tuple[str, ...]:
        """Notes on files whose ranges span more than they hold."""
        return shortened(tuple(note for _, note in self.divided))


def read(spec: ConnectFilesSource, request: Request) -> Reading:
    """Return one row per file as a position, or for `delivered` the rows in the files.

    Raises:
        SourceError: for another ledger, for `delivered` without a format, for a path that is not on a file system of
            this machine, and as for the kind `files`.
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
    range_files = _range_files(folder, re.compile(spec.pattern), request)
    return (
        _output(spec, request, folder, range_files) if is_output else _positions(spec, request, range_files)
    )


def _range_files(folder: Path, pattern: re.Pattern[str], request: Request) -> _RangeFiles:
    """Return the current files of the folder."""
    files, shadows = [], 0
    closed: list[OSError] = []
    paths = sorted(_paths(folder, closed))
    faults = [
        f"{name_of(Path(error.filename), request.base_dir)}: cannot be read: {error.strerror}"
        for error in closed
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
    partitions = {str(path): (name.topic, name.partition) for path, name in files}
    pairs = tuple(
        (
            partitions[later],
            _DIVIDED.format(*(name_of(Path(path), request.base_dir) for path in (later, first))),
        )
        for first, later in divided((str(path), name) for path, name in files)
    )
    return _RangeFiles(tuple(files), tuple(faults), pairs, shadows)


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
    """Yield the files below the folder except hidden ones; a link to a folder counts as a file, and is refused later.

    Errors of folders that could not be listed are added to `closed`.
    """
    for place, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in (*names, *links) if not name.startswith(_HIDDEN))


def _positions(spec: ConnectFilesSource, request: Request, range_files: _RangeFiles) -> Reading:
    """Return the ranges of the names as positions with the time of their files, without divided partitions."""
    taken_at = spec.taken_time(request.now)
    unknown = {place for place, _ in range_files.divided}
    unique, copies = _without_copies(range_files, request)
    files = [(path, name) for path, name in unique if (name.topic, name.partition) not in unknown]
    states = [(path, name, state_of(path)) for path, name in files]
    rows = [
        _position(spec, request, number, path, name, state)
        for number, (path, name, state) in enumerate(states)
    ]
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        digests=(_digest([path for path, _ in range_files.files], spec.path, request),)
        if range_files.files
        else (),
        unparsed_inputs=len(range_files.faults) + len(copies) + len(range_files.divided),
        notes=(*shortened((*range_files.faults, *copies)), *range_files.divided_notes, *range_files.notes),
        complete_until=taken_at,
    )


def _without_copies(
    range_files: _RangeFiles, request: Request
) -> tuple[list[tuple[Path, RangeName]], list[str]]:
    """Return one file per folder and range, and notes on other files with the same range."""
    first: dict[tuple[Path, RangeName], Path] = {}
    copies = []
    for path, name in range_files.files:
        original = first.setdefault((path.parent, name), path)
        if original != path:
            copies.append(_SAME_RANGE.format(*(name_of(copy, request.base_dir) for copy in (path, original))))
    return [(path, name) for (_, name), path in first.items()], copies


def _position(
    spec: ConnectFilesSource, request: Request, number: int, path: Path, name: RangeName, state: State | None
) -> tuple[object, ...]:
    file = Input(str(path), path.name, "", state=state)
    at = modified_at(file) if spec.has_own_times else None
    position = Position(name.topic, name.partition, name.first, name.last + 1, at)
    return position_row(request, position, path.as_uri(), number)


def _digest(paths: Sequence[Path], folder: str, request: Request) -> str:
    """Return one digest line over the names, as only names are read."""
    names = "\n".join(name_of(path, request.base_dir) for path in paths)
    return (
        f"{OF_CONTENT}{hashlib.sha256(names.encode()).hexdigest()}  names of {len(paths)} files in {folder}"
    )


def _output(spec: ConnectFilesSource, request: Request, folder: Path, range_files: _RangeFiles) -> Reading:
    """Return the rows of the files with offsets from their names; all rows are read, as they must be counted."""
    paths = [path for path, _ in range_files.files]
    files = inputs_in(paths, request.base_dir, spec.format or "", Path(os.path.realpath(folder)))
    inputs = Inputs(tuple(_not_empty(file) for file in files), ())
    names = {str(path): name for path, name in range_files.files}
    source = FilesSource.model_validate({"path": spec.path, "format": spec.format, "options": spec.options})
    reading = reading_of(source, replace(request, reach=None), inputs)
    return with_metadata(
        reading,
        lambda placed: _with_file_notes(
            placed, spec, request, range_files, _facts(spec, request, inputs, names)
        ),
    )


def _not_empty(file: Input) -> Input:
    """Return the file; an empty one has a fault, because a connector names a file by offsets only once it has rows."""
    return file if file.size or file.fault is not None else replace(file, fault=_EMPTY)


_Facts = dict[str, tuple[object, ...]]


def _facts(spec: ConnectFilesSource, request: Request, inputs: Inputs, names: dict[str, RangeName]) -> _Facts:
    """Return the topic, partition and offsets of each file by its name, and when it was written."""
    facts: _Facts = {}
    for file in inputs.readable:
        name, at = names[file.path], modified_at(file) if spec.has_own_times else None
        facts[file.path] = (name.topic, name.partition, None, request.group, at, name.first, name.count)
    return facts


def _with_file_notes(
    reading: Reading, spec: ConnectFilesSource, request: Request, range_files: _RangeFiles, facts: _Facts
) -> Reading:
    taken_at = spec.taken_time(request.now)
    return replace(
        reading,
        rows=None if reading.rows is None else _placed(with_facts(reading.rows, facts, _FACTS), request),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        complete_until=taken_at,
        unparsed_inputs=reading.unparsed_inputs + len(range_files.faults),
        notes=(
            *shortened(range_files.faults),
            *reading.notes,
            *range_files.divided_notes,
            *range_files.notes,
        ),
        is_columnar=False,
    )


def _placed(rows: DataFrame, request: Request) -> DataFrame:
    """Return the rows with their offsets, if their file has a row for each offset of its name.

    | FILE                  | ROW | _first | _count | offset |
    |-----------------------|-----|--------|--------|--------|
    | orders+0+5+6.json     | 0   | 5      | 2      | 5      |
    | orders+0+5+6.json     | 1   | 5      | 2      | 6      |
    | orders+0+7+9.json     | 0   | 7      | 3      | null   |

    A row without an offset is unreadable if nothing else identifies its message.
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
