"""The reader of the kind `flink_checkpoints`: the positions of a Flink job's Kafka source in each checkpoint.

A position is committed once its checkpoint is complete: a restart continues from there, not from the consumer group's
offsets. The files contain no time, so it is that of `_metadata`, if the checkpoints are the job's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import Final

from tieout.contracts import FlinkCheckpointsSource
from tieout.engine.sources.flink_folders import (
    Checkpoints,
    ReadCheckpoint,
    checkpoints_in,
    copied_in,
    shown_jobs,
)
from tieout.engine.sources.positions import (
    Position,
    position_row,
    position_rows,
    require_position_ledger,
    shortened,
)
from tieout.engine.sources.small_files import local_folder
from tieout.engine.sources.source import Reading, Request
from tieout.engine.systems.flink_operators import NAMELESS, Operator
from tieout.engine.systems.flink_states import (
    OLDER_SOURCES,
    SOURCE_STATE,
    SplitPosition,
    reads_kafka,
    split_position,
)
from tieout.engine.systems.json_texts import FormatError
from tieout.errors import SourceError

_PREFIX: Final = "Source: "
_CONCURRENT_JOBS: Final = (
    "{}-{}: job {} and job {} wrote checkpoints by turns, so that both ran at once: expected the positions of one; "
    "name its own folder in path"
)


def read(spec: FlinkCheckpointsSource, request: Request) -> Reading:
    """Return one row per partition of each complete checkpoint.

    Raises:
        SourceError: if the contract uses the source for a ledger without positions, several operators read Kafka and
            it names none, or the path is not on a file system of this machine.
    """
    require_position_ledger(spec.kind, request)
    folder = local_folder(request, spec.path)
    checkpoints = checkpoints_in(
        folder,
        request.base_dir,
        SOURCE_STATE,
        refused={} if spec.source else OLDER_SOURCES,
        has_own_times=spec.has_own_times,
    )
    if not checkpoints.files:
        absent = checkpoints.faults or (
            f"{spec.path}: no checkpoint of a Flink job, a folder with _metadata",
        )
        return Reading(
            None,
            is_present=folder.exists(),
            read_at=request.now,
            unparsed_inputs=1,
            notes=(*absent, *checkpoints.notes),
        )
    source = spec.source or _only_source(checkpoints.read, request)
    read: list[tuple[ReadCheckpoint, list[Position]]] = []
    faults = list(checkpoints.faults)
    for checkpoint in checkpoints.read:
        try:
            positions = list(_positions(checkpoint, source))
        except FormatError as error:
            faults.append(f"{checkpoint.file.input.name}: {error}")
            continue
        read.append((checkpoint, positions))
    shared = {} if _has_times_of_copying(spec, checkpoints.read) else _shared_partitions(read)
    rows = [
        position_row(request, position, checkpoint.file.uri, place)
        for checkpoint, positions in read
        for place, position in enumerate(positions)
        if (position.topic, position.partition) not in shared
    ]
    return _reading(spec, request, checkpoints, rows, (*faults, *shared.values()))


def _has_times_of_copying(spec: FlinkCheckpointsSource, read: Iterable[ReadCheckpoint]) -> bool:
    """Return whether the files' times are those of copying, which do not show what ran at once.

    So they are if one contradicts the order of a job's checkpoints, or all are later than the copy that the contract
    names: what the job itself had written was there before.
    """
    read = list(read)
    if copied_in(read) is not None:
        return True
    if not isinstance(spec.taken_at, datetime):
        return False
    times = [checkpoint.file.modified_at for checkpoint in read]
    return all(time is not None and time > spec.taken_at for time in times)


def _shared_partitions(read: Iterable[tuple[ReadCheckpoint, list[Position]]]) -> dict[tuple[str, int], str]:
    """Return notes on partitions that two jobs read at the same time; a restarted job starts after the other's end.

    Positions of such a partition cannot be attributed to one job, so none is used.
    """
    spans: dict[tuple[str, int], dict[str, tuple[datetime, datetime]]] = {}
    for checkpoint, positions in read:
        at = checkpoint.file.modified_at
        if checkpoint.job is None or at is None:
            continue
        for each in positions:
            jobs = spans.setdefault((each.topic, each.partition), {})
            first, last = jobs.get(checkpoint.job, (at, at))
            jobs[checkpoint.job] = min(first, at), max(last, at)
    notes = {}
    for place, jobs in sorted(spans.items()):
        in_order = sorted(jobs.items(), key=lambda job: job[1])
        for (before, (_, last)), (after, (first, _)) in pairwise(in_order):
            if first < last:
                notes[place] = _CONCURRENT_JOBS.format(*place, before, after)
    return notes


def _reading(
    spec: FlinkCheckpointsSource,
    request: Request,
    checkpoints: Checkpoints,
    rows: list[tuple[object, ...]],
    faults: tuple[str, ...],
) -> Reading:
    taken_at = spec.taken_time(request.now)
    begins_at = None if checkpoints.begins is None else checkpoints.begins.at or taken_at
    not_retained = () if checkpoints.begins is None else (_not_retained(checkpoints.begins),)
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=sum(file.input.size for file in checkpoints.files),
        digests=tuple(f"{file.input.digest}  {file.input.name}" for file in checkpoints.files),
        unparsed_inputs=len(faults),
        notes=(
            *shortened(faults),
            *shortened(checkpoints.notes),
            *not_retained,
            *shortened(tuple(shown_jobs(checkpoints.read))),
        ),
        complete_until=taken_at,
        complete_from=begins_at,
    )


def _not_retained(first: ReadCheckpoint) -> str:
    return (
        f"{first.file.input.name}: checkpoints before it are not retained (execution.checkpointing.num-retained): the "
        "positions begin with it"
    )


def _only_source(read: Iterable[ReadCheckpoint], request: Request) -> str | None:
    """Return the uid, the name or the id of the operator that reads Kafka, None if none does.

    Raises:
        SourceError: if several do.
    """
    operators = {state.operator for checkpoint in read for state in checkpoint.states if reads_kafka(state)}
    # Metadata before Flink 2.0 has ids only; later checkpoints of the same job have the names.
    known = {operator.id: operator.key for operator in operators if not operator.is_nameless}
    names = sorted({known.get(operator.id, operator.id) for operator in operators})
    if len(names) > 1:
        raise SourceError(
            f"{request.place}.source: expected the operator whose positions are meant, as {', '.join(names)} read Kafka"
        )
    ids = {operator.id for operator in operators}
    return ids.pop() if len(ids) == 1 < len(operators) else next(iter(names), None)


def _positions(checkpoint: ReadCheckpoint, source: str | None) -> Iterator[Position]:
    """Yield the position of each partition that the source has started to read.

    Raises:
        FormatError: if the checkpoint has no such source, or its state cannot be read.
    """
    states = [
        state for state in checkpoint.states if source is not None and _is_called(state.operator, source)
    ]
    if not states:
        description = "that reads Kafka" if source is None else source
        is_nameless = any(state.operator.is_nameless for state in checkpoint.states)
        raise FormatError(
            f"expected an operator {description}, found none that keeps positions of a source"
            f"{NAMELESS if is_nameless and source is not None else ''}"
        )
    partitions: set[tuple[str, int]] = set()
    for state in states:
        for element in state.elements(SOURCE_STATE):
            split = split_position(element)
            if (split.topic, split.partition) in partitions:
                raise FormatError(
                    f"expected each partition once, found {split.topic}-{split.partition} twice"
                )
            partitions.add((split.topic, split.partition))
            if split.offset is not None:
                yield _position(checkpoint, split)


def _is_called(operator: Operator, source: str) -> bool:
    """Return whether this is the source, named by uid, name or id, with or without Flink's prefix."""
    return operator.is_called(source) or source == operator.name.removeprefix(_PREFIX)


def _position(checkpoint: ReadCheckpoint, split: SplitPosition) -> Position:
    return Position(
        split.topic, split.partition, None, split.offset, checkpoint.at, json.dumps(checkpoint.metadata)
    )
