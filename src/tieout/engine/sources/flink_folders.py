"""Reads the checkpoints and savepoints of a Flink job below a folder, each once.

A checkpoint is complete when its folder has `_metadata`. Flink deletes checkpoints beyond its retention, so one that
disappears before it is read was replaced by a newer one: then the folder is listed again.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from tieout.engine.limits import shown
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.small_files import MOST_BYTES, SmallFile, small_file
from tieout.engine.systems.flink_checkpoint import Checkpoint, OperatorState, checkpoint_in
from tieout.engine.systems.json_texts import FormatError

_METADATA: Final = "_metadata"
_CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
_SHARED_FOLDERS: Final = ("shared", "taskowned")
"""Folders with keyed state, next to those of a job's checkpoints."""
_DEEPEST: Final = 4
_MOST_CHECKPOINTS: Final = 10_000
_MOST_BYTES: Final = 256 << 20
"""The most bytes of all checkpoint files in total."""
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
    """One checkpoint or savepoint: its folder, its number, its states, and when it was completed.

    `job` is the job's id, None for a savepoint, whose folder does not contain it.
    """

    folder: Path
    number: int
    job: str | None
    states: tuple[OperatorState, ...]
    file: SmallFile
    at: datetime | None

    @property
    def metadata(self) -> dict[str, str | int]:
        """The metadata of positions from this checkpoint."""
        place = {"savepoint": self.folder.name} if self.job is None else {"job": self.job}
        return {**place, "checkpoint": self.number}


@dataclass(frozen=True)
class Checkpoints:
    """The content of a folder: the checkpoints in order, the files that were read, faults and notes.

    `begins` is the first checkpoint after which none is missing, None if none is missing at all.
    """

    read: tuple[ReadCheckpoint, ...]
    files: tuple[SmallFile, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    begins: ReadCheckpoint | None


def checkpoints_in(
    folder: Path, base_dir: Path, state: str, *, refused: Mapping[str, str], has_own_times: bool
) -> Checkpoints:
    """Return the checkpoints below the folder, each with the states of the operators that have one of this name.

    A checkpoint with a state in `refused` is a fault, for the reason given there.
    """
    for _ in range(_TRIES):
        folders, incomplete, unseen = _listed(folder, base_dir)
        try:
            read, files, faults = _read(folders[:_MOST_CHECKPOINTS], base_dir, state, refused)
        except FileNotFoundError:
            continue
        break
    else:
        return Checkpoints((), (), (_TOO_FAST.format(name_of(folder, base_dir)),), (), None)
    if len(folders) > _MOST_CHECKPOINTS:
        faults.append(
            f"{name_of(folder, base_dir)}: expected at most {_MOST_CHECKPOINTS} checkpoints, found {len(folders)}"
        )
    notes = [f"{name_of(path, base_dir)}: has no {_METADATA}, so it is not complete" for path in incomplete]
    read, copy_notes = _without_copies(read, base_dir)
    notes += copy_notes
    copied = copied_in(read) if has_own_times else None
    if copied is not None:
        notes.append(_COPIED.format(copied.file.input.name))
    if copied is not None or not has_own_times:
        read = [replace(checkpoint, at=None) for checkpoint in read]
    return Checkpoints(tuple(read), tuple(files), (*faults, *unseen), tuple(notes), _first_retained(read))


def _listed(folder: Path, base_dir: Path) -> tuple[list[Path], list[Path], list[str]]:
    """Return the folders with metadata, those of checkpoints without, and the folders that cannot be listed."""
    complete, incomplete, unseen = [], [], []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unseen.append(f"{name_of(Path(error.filename), base_dir)}: cannot be read: {error.strerror}")

    for place, folders, names in os.walk(folder, onerror=note):
        path = Path(place)
        is_checkpoint = _CHECKPOINT.fullmatch(path.name) is not None
        if _METADATA in (*names, *folders):
            complete.append(path)
        elif is_checkpoint:
            incomplete.append(path)
        if is_checkpoint or _METADATA in names or len(path.relative_to(folder).parts) == _DEEPEST:
            folders.clear()
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SHARED_FOLDERS
        )
        links = [path / name for name in folders if (path / name).is_symlink()]
        unseen += [f"{name_of(link, base_dir)}: {_LINKED}" for link in links]
    return complete, incomplete, unseen


def _read(
    folders: Iterable[Path], base_dir: Path, state: str, refused: Mapping[str, str]
) -> tuple[list[ReadCheckpoint], list[SmallFile], list[str]]:
    """Return the checkpoints in order of time and number, all files that were read, and their faults.

    Raises:
        FileNotFoundError: if a checkpoint was deleted.
    """
    read: list[ReadCheckpoint] = []
    files: list[SmallFile] = []
    faults: list[str] = []
    for folder in folders:
        path = folder / _METADATA
        path.lstat()
        bytes_left = _MOST_BYTES - sum(len(file.content) for file in files)
        file = small_file(path, base_dir, folder, min(bytes_left, MOST_BYTES))
        files.append(file)
        if file.input.fault is not None:
            faults.append(f"{file.input.name}: {file.input.fault}")
            continue
        try:
            read.append(_checkpoint(folder, file, base_dir, state, files, refused=refused))
        except FormatError as error:
            faults.append(f"{file.input.name}: {error}")
    return sorted(read, key=_order), [replace(file, content=b"") for file in files], faults


def _require_none_of(metadata: Checkpoint, refused: Mapping[str, str]) -> None:
    for operator_state in metadata.states:
        for name in operator_state.offsets.keys() & refused.keys():
            raise FormatError(f"the operator {shown(operator_state.operator.label)} {refused[name]}")


def _checkpoint(
    folder: Path,
    file: SmallFile,
    base_dir: Path,
    state: str,
    files: list[SmallFile],
    *,
    refused: Mapping[str, str],
) -> ReadCheckpoint:
    """Return the checkpoint of the metadata; separate files of states are added to `files`."""
    metadata = checkpoint_in(file.content)
    _require_none_of(metadata, refused)
    is_checkpoint = _CHECKPOINT.fullmatch(folder.name) is not None
    if is_checkpoint and folder.name != f"chk-{metadata.number}":
        raise FormatError(f"expected checkpoint {folder.name.removeprefix('chk-')}, found {metadata.number}")
    keeping = {
        operator_state.operator.id for operator_state in metadata.states if state in operator_state.offsets
    }
    states = []
    for operator_state in metadata.states:
        if operator_state.operator.id in keeping:
            if state not in operator_state.offsets:
                raise FormatError(
                    _NO_STATE.format(state, operator_state.subtask, shown(operator_state.operator.label))
                )
            states.append(
                operator_state
                if operator_state.file is None
                else _loaded(operator_state, operator_state.file, folder, base_dir, files)
            )
    job = folder.parent.name if is_checkpoint else None
    return ReadCheckpoint(folder, metadata.number, job, tuple(states), file, file.modified_at)


def _loaded(
    state: OperatorState, name: str, folder: Path, base_dir: Path, files: list[SmallFile]
) -> OperatorState:
    """Return a state whose content is in a file next to the metadata."""
    bytes_left = _MOST_BYTES - sum(len(file.content) for file in files)
    file = small_file(folder / name, base_dir, folder, min(bytes_left, MOST_BYTES))
    files.append(file)
    if file.input.fault is not None:
        raise FormatError(
            f"the state of the operator {shown(state.operator.label)} is in {file.input.name}: {file.input.fault}"
        )
    return replace(state, content=file.content, file=None)


def _order(checkpoint: ReadCheckpoint) -> tuple[str, int, str]:
    return (
        "" if checkpoint.at is None else checkpoint.at.isoformat(timespec="milliseconds"),
        checkpoint.number,
        str(checkpoint.folder),
    )


def _of_jobs(read: Iterable[ReadCheckpoint]) -> dict[str, list[ReadCheckpoint]]:
    """Return the checkpoints of each job by number, in the order of first checkpoints; a savepoint is separate."""
    jobs: dict[str, list[ReadCheckpoint]] = {}
    for checkpoint in read:
        jobs.setdefault(checkpoint.job or str(checkpoint.folder), []).append(checkpoint)
    return {
        job: sorted(checkpoints, key=lambda checkpoint: checkpoint.number)
        for job, checkpoints in jobs.items()
    }


def copied_in(read: Iterable[ReadCheckpoint]) -> ReadCheckpoint | None:
    """Return a checkpoint whose file is older than that of an earlier one of its job, or None."""
    for of_job in _of_jobs(read).values():
        for before, after in pairwise(of_job):
            times = before.file.modified_at, after.file.modified_at
            if times[0] is not None and times[1] is not None and times[1] < times[0]:
                return after
    return None


def _without_copies(read: list[ReadCheckpoint], base_dir: Path) -> tuple[list[ReadCheckpoint], list[str]]:
    """Return each checkpoint once, and notes on its byte-identical copies.

    A copy's folder may not contain the job's id; a checkpoint of another job is not a copy.
    """
    kept: dict[str, list[ReadCheckpoint]] = defaultdict(list)
    notes = []
    for checkpoint in sorted(read, key=lambda checkpoint: checkpoint.job is None):
        same_digest = kept[checkpoint.file.input.digest]
        original = next(
            (candidate for candidate in same_digest if checkpoint.job in (None, candidate.job)), None
        )
        if original is None:
            same_digest.append(checkpoint)
        else:
            names = (name_of(candidate.folder, base_dir) for candidate in (checkpoint, original))
            notes.append("{}: a copy of {}, which counts once".format(*names))
    return sorted(chain.from_iterable(kept.values()), key=_order), notes


def _first_retained(read: Iterable[ReadCheckpoint]) -> ReadCheckpoint | None:
    """Return the checkpoint before which others may be missing, or None.

    A new job counts its checkpoints from 1, a restored one continues the count.
    """
    read = list(read)
    numbers = {checkpoint.number for checkpoint in read}
    for of_job in reversed(_of_jobs(read).values()):
        first = of_job[0]
        if first.number != 1 and first.number - 1 not in numbers:
            return first
    return None


def shown_jobs(read: Iterable[ReadCheckpoint]) -> Iterator[str]:
    """Yield a note with the checkpoint numbers of each job."""
    for job, of_job in _of_jobs(read).items():
        if of_job[0].job is not None:
            numbers = f"checkpoint {of_job[0].number}"
            numbers += f" to {of_job[-1].number}" if len(of_job) > 1 else ""
            yield f"job {job}: {numbers}"
