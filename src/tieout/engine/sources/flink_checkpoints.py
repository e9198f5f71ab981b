"""The reader of the kind `flink_checkpoints`: where a Flink job's Kafka source stood in each checkpoint.

A position is committed once its checkpoint is complete: a restart goes on from there, whatever the consumer group says.
The files hold no time, so it is that of `_metadata`, where the checkpoints are the job's own.
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
from tieout.engine.systems.flink_checkpoint import OperatorState
from tieout.engine.systems.flink_states import SOURCE_STATE, SplitPosition, reads_kafka, split_position
from tieout.engine.systems.json_texts import FormatError
from tieout.errors import SourceError

_PREFIX: Final = "Source: "
_AT_ONCE: Final = (
    "{}-{}: job {} and job {} wrote checkpoints by turns, so that both ran at once: expected the positions of one; "
    "name its own folder in path"
)


def read(spec: FlinkCheckpointsSource, request: Request) -> Reading:
    """Return one row for each partition of each complete checkpoint.

    Raises:
        SourceError: where the contract uses the source for another ledger than one of positions, where several
            operators read Kafka and it names none, and for a path that is not on a file system of this machine.
    """
    require_position_ledger(spec.kind, request)
    folder = local_folder(request, spec.path)
    found = checkpoints_in(folder, request.base_dir, SOURCE_STATE, has_own_times=spec.has_own_times)
    if not found.files:
        absent = found.faults or (f"{spec.path}: no checkpoint of a Flink job, a folder with _metadata",)
        return Reading(
            None,
            is_present=folder.exists(),
            read_at=request.now,
            unparsed_inputs=1,
            notes=(*absent, *found.notes),
        )
    source = spec.source or _only_source(found.read, request)
    read: list[tuple[ReadCheckpoint, list[Position]]] = []
    faults = list(found.faults)
    for one in found.read:
        try:
            positions = list(_positions(one, source))
        except FormatError as error:
            faults.append(f"{one.file.input.name}: {error}")
            continue
        read.append((one, positions))
    # The times of a copy are those of its copying, by turns or not.
    shared = {} if copied_in(found.read) is not None else _read_at_once(read)
    rows = [
        position_row(request, each, one.file.uri, place)
        for one, positions in read
        for place, each in enumerate(positions)
        if (each.topic, each.partition) not in shared
    ]
    return _reading(spec, request, found, rows, (*faults, *shared.values()))


def _read_at_once(read: Iterable[tuple[ReadCheckpoint, list[Position]]]) -> dict[tuple[str, int], str]:
    """Return in words which partitions a job read while another one did; one that is restarted begins behind its end.

    Whose position is whose nobody says: none of such a partition is the judged job's for certain.
    """
    spans: dict[tuple[str, int], dict[str, tuple[datetime, datetime]]] = {}
    for one, positions in read:
        at = one.file.modified_at
        if one.job is None or at is None:
            continue
        for each in positions:
            jobs = spans.setdefault((each.topic, each.partition), {})
            first, last = jobs.get(one.job, (at, at))
            jobs[one.job] = min(first, at), max(last, at)
    found = {}
    for place, jobs in sorted(spans.items()):
        in_order = sorted(jobs.items(), key=lambda job: job[1])
        for (before, (_, last)), (after, (first, _)) in pairwise(in_order):
            if first < last:
                found[place] = _AT_ONCE.format(*place, before, after)
    return found


def _reading(
    spec: FlinkCheckpointsSource,
    request: Request,
    found: Checkpoints,
    rows: list[tuple[object, ...]],
    faults: tuple[str, ...],
) -> Reading:
    taken_at = spec.taken_time(request.now)
    begins_at = None if found.begins is None else found.begins.at or taken_at
    gone = () if found.begins is None else (_not_retained(found.begins),)
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=sum(file.input.size for file in found.files),
        digests=tuple(f"{file.input.digest}  {file.input.name}" for file in found.files),
        unparsed_inputs=len(faults),
        notes=(*shortened(faults), *shortened(found.notes), *gone, *shortened(tuple(shown_jobs(found.read)))),
        complete_until=taken_at,
        complete_from=begins_at,
    )


def _not_retained(first: ReadCheckpoint) -> str:
    return (
        f"{first.file.input.name}: checkpoints before it are not retained (execution.checkpointing.num-retained): the "
        "positions begin with it"
    )


def _only_source(read: Iterable[ReadCheckpoint], request: Request) -> str | None:
    """Return the uid or the name of the operator that reads Kafka, None where none does.

    Raises:
        SourceError: where several do.
    """
    names = sorted(
        {state.uid or state.operator for one in read for state in one.states if reads_kafka(state)}
    )
    if len(names) > 1:
        raise SourceError(
            f"{request.place}.source: expected the operator whose positions are meant, as {', '.join(names)} read Kafka"
        )
    return names[0] if names else None


def _positions(one: ReadCheckpoint, source: str | None) -> Iterator[Position]:
    """Yield the position of each partition that the source has begun to read.

    Raises:
        FormatError: where the checkpoint has no such source, or its state cannot be read.
    """
    states = [state for state in one.states if source in (state.uid, state.operator, _plain(state))]
    if not states:
        told = "that reads Kafka" if source is None else source
        raise FormatError(f"expected an operator {told}, found none that keeps positions of a source")
    known: set[tuple[str, int]] = set()
    for state in states:
        for element in state.elements(SOURCE_STATE):
            split = split_position(element)
            if (split.topic, split.partition) in known:
                raise FormatError(
                    f"expected each partition once, found {split.topic}-{split.partition} twice"
                )
            known.add((split.topic, split.partition))
            if split.offset is not None:
                yield _position(one, split)


def _plain(state: OperatorState) -> str:
    """Return the source's name as the job gives it, without what Flink writes before it."""
    return state.operator.removeprefix(_PREFIX)


def _position(one: ReadCheckpoint, split: SplitPosition) -> Position:
    return Position(split.topic, split.partition, None, split.offset, one.at, json.dumps(one.metadata))
