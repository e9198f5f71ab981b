"""The reader of the kind `spark_checkpoint`: what each batch of a Structured Streaming query read and committed.

The files hold no time of a commit, so it is that of the file `commits/N`, where the checkpoint is the query's own. A
copy has other times, which shows where a batch is committed after the next one began: then no commit has a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from tieout.contracts import SparkCheckpointSource
from tieout.engine.evidence import COARSEST_CLOCK
from tieout.engine.limits import number_in
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.positions import (
    Position,
    position_row,
    position_rows,
    require_position_ledger,
    shortened,
)
from tieout.engine.sources.small_files import MOST_BYTES, SmallFile, local_folder, small_file, visible_names
from tieout.engine.sources.source import Reading, Request
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.spark_checkpoint import (
    History,
    PlannedBatch,
    history_of,
    initial_offsets,
    planned_batch,
    require_commit,
)

_MOST_BYTES: Final = 256 << 20
"""The most bytes that the files of one checkpoint folder may have together."""
_NOT_A_BATCH: Final = "expected a batch's number as its name, found another; take it out of the folder"
_COPIED: Final = (
    "commits/{}: written before its batch began, or after the next one did, so its time is that of a copy: no commit "
    "has a time; name the time of the copy in taken_at"
)
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class _Folder:
    """The files of one folder of a checkpoint by batch number, and the faults of the others."""

    files: Mapping[int, SmallFile]
    faults: tuple[str, ...]

    @property
    def read(self) -> tuple[SmallFile, ...]:
        return tuple(self.files.values())


def read(spec: SparkCheckpointSource, request: Request) -> Reading:
    """Return one row for each partition of each committed batch.

    Raises:
        SourceError: where the contract uses the source for another ledger than one of positions, and for a path that is
            not on a file system of this machine.
    """
    require_position_ledger(spec.kind, request)
    folder = local_folder(request, spec.path)
    if not (folder / "offsets").is_dir():
        absent = f"{spec.path}: no folder offsets of a Structured Streaming checkpoint"
        return Reading(
            None, is_present=folder.exists(), read_at=request.now, unparsed_inputs=1, notes=(absent,)
        )
    # Commits first: whatever is committed by then has its offsets by the time they are listed.
    commits, offsets = (_folder(folder / name, request.base_dir, folder) for name in ("commits", "offsets"))
    return _reading(spec, request, commits, offsets)


def _folder(path: Path, base_dir: Path, root: Path) -> _Folder:
    files: dict[int, SmallFile] = {}
    faults, bytes_remaining = [], _MOST_BYTES
    try:
        names = list(visible_names(path))
    except FileNotFoundError:
        names = []
    except OSError as error:
        return _Folder({}, (f"{name_of(path, base_dir)}: cannot be read: {error.strerror}",))
    for name in names:
        number = number_in(name)
        if number is None or name != str(number) or number < 0:
            faults.append(f"{name_of(path / name, base_dir)}: {_NOT_A_BATCH}")
        else:
            files[number] = small_file(path / name, base_dir, root, min(bytes_remaining, MOST_BYTES))
            bytes_remaining -= len(files[number].content)
    return _Folder(dict(sorted(files.items())), tuple(faults))


def _reading(spec: SparkCheckpointSource, request: Request, commits: _Folder, offsets: _Folder) -> Reading:
    place = f"sources/{spec.source}/0"
    folder = local_folder(request, spec.path)
    begun = small_file(folder / place, request.base_dir, folder)
    is_begun = (folder / place).exists()
    planned, broken_offsets = _parsed(offsets, lambda content: planned_batch(content, spec.source))
    done, broken_commits = _parsed(commits, _commit)
    initial, broken_initial = _parsed(_Folder({0: begun} if is_begun else {}, ()), initial_offsets)
    history = history_of(planned, frozenset(done), initial.get(0), spec.source)
    history_faults = tuple(f"{spec.path}/{fault}" for fault in history.faults)
    faults = (
        *offsets.faults,
        *commits.faults,
        *broken_offsets,
        *broken_commits,
        *broken_initial,
        *history_faults,
    )
    times, time_notes = _times(spec, commits, planned)
    rows = list(_rows(history, times, commits, request))
    read_files = (*offsets.read, *commits.read, *((begun,) if is_begun else ()))
    taken_at = spec.taken_time(request.now)
    begins_at = None if history.begins_at is None else _moment(history.begins_at)
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=sum(file.input.size for file in read_files),
        digests=tuple(f"{file.input.digest}  {file.input.name}" for file in read_files),
        unparsed_inputs=len(faults),
        notes=(*shortened(faults), *history.notes, *time_notes),
        complete_until=taken_at,
        complete_from=begins_at,
    )


def _parsed(
    folder: _Folder, parser: Callable[[bytes], _Parsed]
) -> tuple[dict[int, _Parsed], tuple[str, ...]]:
    """Return the files' parsed content by batch number, and a line for each that cannot be read."""
    found: dict[int, _Parsed] = {}
    faults = []
    for number, file in folder.files.items():
        if file.input.fault is not None:
            faults.append(f"{file.input.name}: {file.input.fault}")
            continue
        try:
            found[number] = parser(file.content)
        except FormatError as error:
            faults.append(f"{file.input.name}: {error}")
    return found, tuple(faults)


def _commit(content: bytes) -> bool:
    require_commit(content)
    return True


def _times(
    spec: SparkCheckpointSource, commits: _Folder, planned: Mapping[int, PlannedBatch]
) -> tuple[Mapping[int, datetime], tuple[str, ...]]:
    """Return when each batch was committed, where the files have their own times, else a note why they have not."""
    if not spec.has_own_times:
        return {}, ()
    times = {n: file.modified_at for n, file in commits.files.items() if file.modified_at is not None}
    for number, at in times.items():
        began, following = (planned[n].began_at if n in planned else None for n in (number, number + 1))
        is_late = following is not None and at > _moment(following) + COARSEST_CLOCK
        if is_late or (began is not None and at < _moment(began) - COARSEST_CLOCK):
            return {}, (_COPIED.format(number),)
    return times, ()


def _rows(
    history: History, times: Mapping[int, datetime], commits: _Folder, request: Request
) -> Iterator[tuple[object, ...]]:
    for number, one in enumerate(history.ranges):
        metadata = json.dumps({"batch": one.batch})
        position = Position(one.topic, one.partition, one.first, one.end, times.get(one.batch), metadata)
        yield position_row(request, position, commits.files[one.batch].uri, number)


def _moment(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)
