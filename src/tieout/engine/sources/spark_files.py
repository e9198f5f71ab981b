"""The reader of the kind `spark_files`: the output of a file sink of Structured Streaming, as its manifest names it.

Where a query is killed between writing a part file and its log in `_spark_metadata`, the file stays in the folder and
the batch writes another one. Such orphans are no output: they are the rows of `staged`. One that cannot be
read was being written, and is ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import FilesSource, SparkFilesSource
from tieout.engine.sources.discovery import files_in, inputs_in
from tieout.engine.sources.file_facts import with_facts
from tieout.engine.sources.files import reading_of
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.small_files import SmallFile, local_folder, small_file, time_of, visible_names
from tieout.engine.sources.source import FAULT, Reading, Request
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.spark_manifest import (
    LogName,
    SinkFile,
    log_name,
    logged_files,
    needed_logs,
    origin_of,
    output_of,
)
from tieout.engine.table_folders import SINK_MANIFEST
from tieout.errors import SourceError
from tieout.model import Ledger
from tieout.regular_files import state_of
from tieout.settings import unpacking

LEDGERS: Final = (Ledger.DELIVERED, Ledger.STAGED)
MODIFIED: Final = "file_modified_at TIMESTAMP"
"""The column of when a row's file was written last, where the files are the system's own."""
_ORPHAN: Final = f"not in {SINK_MANIFEST}"
_FORGOTTEN: Final = (
    f"files are older than all that {SINK_MANIFEST} names: the sink forgets its files (retention), or its first batch "
    "was tried twice; the output begins with the oldest that is named"
)
_NOT_A_LOG: Final = "expected a batch's number as its name, or one with .compact, found another; take it away"


@dataclass(frozen=True)
class _Manifest:
    """The output that a folder's manifest names, by path below the folder, and the manifest's faults.

    `compacted_from` is when the oldest named file was written, None where the manifest was not compacted: a sink with
    the option `retention` forgets older files then, and leaves them in the folder.
    """

    logs: tuple[SmallFile, ...]
    output: Mapping[str, SinkFile]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    compacted_from: datetime | None = None


def read(spec: SparkFilesSource, request: Request) -> Reading:
    """Return the rows of the files that the manifest names, or for `staged` those of the others.

    Raises:
        SourceError: for another ledger, for a path that is not on a file system of this machine, and as the kind
            `files` does.
    """
    if request.ledger not in LEDGERS:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for {' and '.join(LEDGERS)} only")
    folder = Path(os.path.normpath(local_folder(request, spec.path)))
    if not (folder / SINK_MANIFEST).is_dir():
        absent = f"{spec.path}: no folder {SINK_MANIFEST} of a file sink of Structured Streaming"
        return Reading(
            None, is_present=folder.exists(), read_at=request.now, unparsed_inputs=1, notes=(absent,)
        )
    manifest = _manifest(folder, request)
    inside = {str(folder / below) for below in manifest.output}
    orphans = sorted(path for path in files_in(folder) if str(path) not in inside)
    if request.ledger is Ledger.DELIVERED:
        inputs, notes = _output(spec, request, folder, manifest), _named(orphans, request)
    else:
        inputs, notes = _orphans(spec, request, folder, orphans)
    files = FilesSource(path=(spec.path,), format=spec.format, options=spec.options)
    return with_metadata(
        reading_of(files, request, inputs),
        lambda reading: _with_manifest(
            _from_retained(_rows(reading, spec, inputs, request), manifest, orphans),
            spec,
            manifest,
            notes,
            request,
        ),
    )


def with_metadata(reading: Reading, add: Callable[[Reading], Reading]) -> Reading:
    """Return the reading with what `add` adds, also when the files have to be read again."""
    reread = reading.reread
    return replace(add(reading), reread=None if reread is None else lambda: with_metadata(reread(), add))


def with_times(rows: DataFrame, files: Iterable[Input], *, has_own_times: bool) -> DataFrame:
    """Return the rows with when their file was written last, null where the files are copies."""
    return with_facts(
        rows, {file.path: (modified_at(file) if has_own_times else None,) for file in files}, MODIFIED
    )


def modified_at(file: Input) -> datetime | None:
    """Return when the file was written last, to the millisecond; None of one that could not be looked at."""
    return None if file.state is None else time_of(file.state.modified_ns)


def _manifest(folder: Path, request: Request) -> _Manifest:
    """Return the manifest of the folder, read now."""
    path = folder / SINK_MANIFEST
    try:
        names = list(visible_names(path))
    except OSError as error:
        fault = f"{name_of(path, request.base_dir)}: cannot be read: {error.strerror}"
        return _Manifest((), {}, (fault,), ())
    known = {log: name for name in names if (log := log_name(name)) is not None}
    others = sorted({*names} - {*known.values()})
    faults = [f"{name_of(path / name, request.base_dir)}: {_NOT_A_LOG}" for name in others]
    files: list[SmallFile] = []
    logs: dict[LogName, tuple[SinkFile, ...]] = {}
    for log in needed_logs(known):
        file = small_file(path / known[log], request.base_dir, folder, unpacking().record)
        files.append(replace(file, content=b""))
        try:
            logs[log] = _lines(file)
        except FormatError as error:
            faults.append(f"{file.input.name}: {error}")
    named, missing = output_of(logs)
    faults += [f"{name_of(path, request.base_dir)}/{batch}: not there or not readable" for batch in missing]
    real = os.path.realpath(folder)
    origin = origin_of(named, real, lambda below: state_of(Path(real, below)) is not None)
    output = {}
    for full, entry in named.items():
        if full.startswith(f"{origin}/"):
            output[full[len(origin) + 1 :]] = entry
        else:
            faults.append(f"{full}: named by {SINK_MANIFEST}, and not in {origin} as others are")
    notes = () if origin == real else (f"{SINK_MANIFEST} names files in {origin}; they are read from here",)
    written = [entry.modified_millis for entry in named.values() if entry.modified_millis is not None]
    is_compacted = any(log.is_compact for log in logs)
    begins = datetime.fromtimestamp(min(written) / 1000, UTC) if is_compacted and written else None
    return _Manifest(tuple(files), output, tuple(faults), notes, begins)


def _lines(file: SmallFile) -> tuple[SinkFile, ...]:
    if file.input.fault is not None:
        raise FormatError(file.input.fault)
    return logged_files(file.content)


def _output(spec: SparkFilesSource, request: Request, folder: Path, manifest: _Manifest) -> Inputs:
    """Return the files that the manifest names; one that is not there, or of another size, has a fault."""
    paths = [folder / below for below in sorted(manifest.output)]
    sizes = {str(folder / below): entry.size for below, entry in manifest.output.items()}
    return Inputs(
        tuple(_as_named(file, sizes[file.path]) for file in _inspected(spec, request, folder, paths)), ()
    )


def _inspected(
    spec: SparkFilesSource, request: Request, folder: Path, paths: Sequence[Path]
) -> tuple[Input, ...]:
    return tuple(inputs_in(paths, request.base_dir, spec.format, Path(os.path.realpath(folder))))


def _as_named(file: Input, size: int) -> Input:
    """Return the file with a fault where the manifest says that it has another size."""
    if file.fault is not None or file.size == size:
        return file
    fault = f"expected {size} bytes, as {SINK_MANIFEST} says, found {file.size}: cut off or changed"
    return replace(file, fault=fault)


def _orphans(
    spec: SparkFilesSource, request: Request, folder: Path, paths: Sequence[Path]
) -> tuple[Inputs, tuple[str, ...]]:
    """Return the files that the manifest does not name and that can be read, and notes about the others."""
    found = _inspected(spec, request, folder, paths)
    readable = tuple(file for file in found if file.fault is None)
    return Inputs(readable, ()), tuple(
        f"{file.name}: {file.fault}" for file in found if file.fault is not None
    )


def _named(orphans: Sequence[Path], request: Request) -> tuple[str, ...]:
    """Return a note that names the files that are not output."""
    if not orphans:
        return ()
    names = shortened(tuple(sorted(name_of(path, request.base_dir) for path in orphans)))
    return (f"{len(orphans)} files that {SINK_MANIFEST} does not name are no output: {', '.join(names)}",)


def _from_retained(reading: Reading, manifest: _Manifest, orphans: Sequence[Path]) -> Reading:
    """Return the reading with when it begins, where files that are older than all named ones are in the folder."""
    begins = manifest.compacted_from
    states = [] if begins is None else [state_of(path) for path in orphans]
    times = [time_of(state.modified_ns) for state in states if state is not None]
    if begins is None or not any(time is not None and time < begins for time in times):
        return reading
    return replace(reading, complete_from=begins, notes=(*reading.notes, _FORGOTTEN))


def _rows(reading: Reading, spec: SparkFilesSource, inputs: Inputs, request: Request) -> Reading:
    """Return the rows with the times of their files, of orphans also why they are staged.

    A row of an orphan that does not read was being written when the query was killed: it is left out.
    """
    if reading.rows is None:
        return reading
    rows = with_times(reading.rows, inputs.readable, has_own_times=spec.has_own_times)
    if request.ledger is Ledger.STAGED:
        rows = rows.where(F.col(FAULT).isNull()).withColumn("reason", F.lit(_ORPHAN))
    return replace(reading, rows=rows)


def _with_manifest(
    reading: Reading, spec: SparkFilesSource, manifest: _Manifest, notes: tuple[str, ...], request: Request
) -> Reading:
    """Return the reading with the manifest's faults, notes and digests, and when it was taken."""
    taken_at = spec.taken_time(request.now)
    return replace(
        reading,
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        complete_until=taken_at,
        digests=(*(f"{log.input.digest}  {log.input.name}" for log in manifest.logs), *reading.digests),
        unparsed_inputs=reading.unparsed_inputs + len(manifest.faults),
        notes=(*shortened(manifest.faults), *reading.notes, *manifest.notes, *shortened(notes)),
    )
