"""The checkpoints and savepoints of a Flink job below a folder, each read once: for the readers of what they hold.

A checkpoint is complete when its folder has `_metadata`. Flink deletes older ones than it retains, so what is gone by
the time it is read was replaced by a newer one: then the folder is looked through again.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from tieout.engine.limits import shown
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.small_files import MOST_BYTES, SmallFile, small_file
from tieout.engine.systems.flink_checkpoint import OperatorState, checkpoint_in
from tieout.engine.systems.json_texts import FormatError

_METADATA: Final = "_metadata"
_CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
_OTHERS: Final = ("shared", "taskowned")
"""Folders beside those of a job's checkpoints, which hold keyed state."""
_DEEPEST: Final = 4
_MOST_CHECKPOINTS: Final = 10_000
_MOST_BYTES: Final = 256 << 20
"""How much the files of all checkpoints may be together."""
_TRIES: Final = 3
_TOO_FAST: Final = (
    "{}: checkpoints are replaced faster than they are read; copy the folder, and judge the copy"
)
_NO_STATE: Final = "expected the state {} of subtask {} of {}, as its other subtasks have, found none"
_LINKED: Final = "a link to a folder, which is not followed; name what it leads to in path"
_COPIED: Final = (
    "{}: written before the checkpoint that came before it, so its time is that of a copy: no position has a time; "
    "name the time of the copy in taken_at"
)


@dataclass(frozen=True)
class ReadCheckpoint:
    """One checkpoint or savepoint: its folder, its number, its states, and when it was complete.

    `job` is the job's id, None for a savepoint, whose folder does not say it.
    """

    folder: Path
    number: int
    job: str | None
    states: tuple[OperatorState, ...]
    file: SmallFile
    at: datetime | None

    @property
    def metadata(self) -> dict[str, str | int]:
        """What a position of this checkpoint says of where it is from."""
        place = {"savepoint": self.folder.name} if self.job is None else {"job": self.job}
        return {**place, "checkpoint": self.number}


@dataclass(frozen=True)
class Checkpoints:
    """What lies below a folder: the checkpoints in order, the files that were read, and what is wrong or worth saying.

    `begins` is the first checkpoint from which on none is missing, None where none is missing at all.
    """

    read: tuple[ReadCheckpoint, ...]
    files: tuple[SmallFile, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    begins: ReadCheckpoint | None


def checkpoints_in(folder: Path, base_dir: Path, state: str, *, has_own_times: bool) -> Checkpoints:
    """Return the checkpoints below the folder, each with the states of the operators that keep one of this name."""
    for _ in range(_TRIES):
        found, incomplete, unseen = _listed(folder, base_dir)
        try:
            read, files, faults = _read(found[:_MOST_CHECKPOINTS], base_dir, state)
        except FileNotFoundError:
            continue
        break
    else:
        return Checkpoints((), (), (_TOO_FAST.format(name_of(folder, base_dir)),), (), None)
    if len(found) > _MOST_CHECKPOINTS:
        faults.append(
            f"{name_of(folder, base_dir)}: expected at most {_MOST_CHECKPOINTS} checkpoints, found {len(found)}"
        )
    notes = [f"{name_of(path, base_dir)}: has no {_METADATA}, so it is not complete" for path in incomplete]
    read, doubled = _once(read, base_dir)
    notes += doubled
    copied = copied_in(read) if has_own_times else None
    if copied is not None:
        notes.append(_COPIED.format(copied.file.input.name))
    if copied is not None or not has_own_times:
        read = [replace(one, at=None) for one in read]
    return Checkpoints(tuple(read), tuple(files), (*faults, *unseen), tuple(notes), _begins(read))


def _listed(folder: Path, base_dir: Path) -> tuple[list[Path], list[Path], list[str]]:
    """Return the folders with metadata, those of checkpoints without, and which folders cannot be looked into."""
    complete, incomplete, unseen = [], [], []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unseen.append(f"{name_of(Path(error.filename), base_dir)}: cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=note):
        here = Path(place)
        is_checkpoint = _CHECKPOINT.fullmatch(here.name) is not None
        if _METADATA in (*names, *folders):
            complete.append(here)
        elif is_checkpoint:
            incomplete.append(here)
        if is_checkpoint or _METADATA in names or len(here.relative_to(folder).parts) == _DEEPEST:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _OTHERS)
        links = [here / name for name in folders if (here / name).is_symlink()]
        unseen += [f"{name_of(link, base_dir)}: {_LINKED}" for link in links]
    return complete, incomplete, unseen


def _read(
    folders: Iterable[Path], base_dir: Path, state: str
) -> tuple[list[ReadCheckpoint], list[SmallFile], list[str]]:
    """Return the checkpoints in order of time and number, all files that were read, and what is wrong with them.

    Raises:
        FileNotFoundError: where a checkpoint is gone.
    """
    read: list[ReadCheckpoint] = []
    files: list[SmallFile] = []
    faults: list[str] = []
    for folder in folders:
        path = folder / _METADATA
        path.lstat()
        left = _MOST_BYTES - sum(len(file.content) for file in files)
        file = small_file(path, base_dir, folder, min(left, MOST_BYTES))
        files.append(file)
        if file.input.fault is not None:
            faults.append(f"{file.input.name}: {file.input.fault}")
            continue
        try:
            read.append(_checkpoint(folder, file, base_dir, state, files))
        except FormatError as error:
            faults.append(f"{file.input.name}: {error}")
    return sorted(read, key=_turn), [replace(file, content=b"") for file in files], faults


def _checkpoint(
    folder: Path, file: SmallFile, base_dir: Path, state: str, files: list[SmallFile]
) -> ReadCheckpoint:
    """Return what the metadata says; files of states that are beside it are added to those that were read."""
    found = checkpoint_in(file.content)
    is_checkpoint = _CHECKPOINT.fullmatch(folder.name) is not None
    if is_checkpoint and folder.name != f"chk-{found.number}":
        raise FormatError(f"expected checkpoint {folder.name.removeprefix('chk-')}, found {found.number}")
    keeping = {(one.operator, one.uid) for one in found.states if state in one.offsets}
    states = []
    for one in found.states:
        if (one.operator, one.uid) in keeping:
            if state not in one.offsets:
                raise FormatError(_NO_STATE.format(state, one.subtask, shown(one.operator)))
            states.append(one if one.file is None else _loaded(one, one.file, folder, base_dir, files))
    job = folder.parent.name if is_checkpoint else None
    return ReadCheckpoint(folder, found.number, job, tuple(states), file, file.modified_at)


def _loaded(
    state: OperatorState, name: str, folder: Path, base_dir: Path, files: list[SmallFile]
) -> OperatorState:
    """Return a state whose content was in a file beside the metadata."""
    left = _MOST_BYTES - sum(len(file.content) for file in files)
    file = small_file(folder / name, base_dir, folder, min(left, MOST_BYTES))
    files.append(file)
    if file.input.fault is not None:
        raise FormatError(
            f"the state of the operator {shown(state.operator)} is in {file.input.name}: {file.input.fault}"
        )
    return replace(state, content=file.content, file=None)


def _turn(one: ReadCheckpoint) -> tuple[str, int, str]:
    return ("" if one.at is None else one.at.isoformat(timespec="milliseconds"), one.number, str(one.folder))


def _of_jobs(read: Iterable[ReadCheckpoint]) -> dict[str, list[ReadCheckpoint]]:
    """Return the checkpoints of each job by number, in the order of the jobs' first; a savepoint stands by itself."""
    jobs: dict[str, list[ReadCheckpoint]] = {}
    for one in read:
        jobs.setdefault(one.job or str(one.folder), []).append(one)
    return {job: sorted(some, key=lambda one: one.number) for job, some in jobs.items()}


def copied_in(read: Iterable[ReadCheckpoint]) -> ReadCheckpoint | None:
    """Return a checkpoint whose file is older than one before it in its job; None where there is none."""
    for some in _of_jobs(read).values():
        for before, after in pairwise(some):
            times = before.file.modified_at, after.file.modified_at
            if times[0] is not None and times[1] is not None and times[1] < times[0]:
                return after
    return None


def _once(read: list[ReadCheckpoint], base_dir: Path) -> tuple[list[ReadCheckpoint], list[str]]:
    """Return each checkpoint once, and notes about its copies, which are the same byte for byte.

    What a copy's folder is called may hide which job it is of; that of another job is none.
    """
    kept: dict[str, list[ReadCheckpoint]] = defaultdict(list)
    notes = []
    for one in sorted(read, key=lambda one: one.job is None):
        alike = kept[one.file.input.digest]
        known = next((each for each in alike if one.job in (None, each.job)), None)
        if known is None:
            alike.append(one)
        else:
            names = (name_of(each.folder, base_dir) for each in (one, known))
            notes.append("{}: a copy of {}, which counts once".format(*names))
    return sorted(chain.from_iterable(kept.values()), key=_turn), notes


def _begins(read: Iterable[ReadCheckpoint]) -> ReadCheckpoint | None:
    """Return the checkpoint before which others may be missing, None where none can be.

    A job that begins anew counts its checkpoints from 1, one that was restored goes on counting.
    """
    read = list(read)
    numbers = {one.number for one in read}
    for some in reversed(_of_jobs(read).values()):
        first = some[0]
        if first.number != 1 and first.number - 1 not in numbers:
            return first
    return None


def shown_jobs(read: Iterable[ReadCheckpoint]) -> Iterator[str]:
    """Yield how many checkpoints of which numbers each job has."""
    for job, some in _of_jobs(read).items():
        if some[0].job is not None:
            numbers = f"checkpoint {some[0].number}"
            numbers += f" to {some[-1].number}" if len(some) > 1 else ""
            yield f"job {job}: {numbers}"
