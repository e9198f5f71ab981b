"""The reader of the kind `kafka_segments`: a topic's log from the broker's own files, without a broker.

Visible to a reader of committed data is what has the transaction state `none` or `committed` below the last stable
offset. Files are read on Spark's executors, which must see them under the same paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tieout.contracts import KafkaSegmentsSource
from tieout.engine.kafka.folders import PartitionFolder, base_offset_of, folders_of
from tieout.engine.kafka.pieces import Piece
from tieout.engine.sources.kafka_log import (
    CONTENT_COLUMNS,
    LogFacts,
    LogSpec,
    for_ledger,
    log_reading,
    refuse_other_ledgers,
)
from tieout.engine.sources.paths import is_remote, name_of
from tieout.engine.sources.source import Reading, Request
from tieout.errors import SourceError
from tieout.settings import unpacking

_EPOCHS_SHOWN: Final = 5


def read(spec: KafkaSegmentsSource, request: Request) -> Reading:
    """Return the topic's records, control records included, with their transactions' states and the logs' bounds.

    Raises:
        SourceError: for a ledger that a topic cannot be, for a path that is not on a file system of this machine, and
            for a partition with two folders.
    """
    refuse_other_ledgers(request, spec.kind)
    log = LogSpec(spec.taken_time(request.now), spec.cleanup_policy, spec.partitions, CONTENT_COLUMNS)
    return for_ledger(segments_reading(request, spec.path, spec.topic, log), request.ledger)


def segments_reading(
    request: Request, paths: Sequence[str], topic: str, spec: LogSpec, only: int | None = None
) -> Reading:
    """Return the records in the topic's segment files below the paths, of one partition where `only` names it.

    Raises:
        SourceError: for a path that is not on a file system of this machine, and for a partition with two folders.
    """
    for path in paths:
        if is_remote(path):
            raise SourceError(
                f"{request.place}.path: expected a folder that this machine has mounted, found {path}"
            )
    found = folders_of(paths, request.base_dir, topic)
    folders = [folder for folder in found.folders if only in (None, folder.partition)]
    _refuse_replicas(folders, request)
    folder_name = f"{topic}-{'<partition>' if only is None else only}"
    absent = list(found.faults) if only is None else []
    absent += [f"{path}: no folder {folder_name} of a broker's log" for path in found.missing]
    if only is not None and not folders and not absent:
        absent = [f"no folder {folder_name} of a broker's log behind {', '.join(paths)}"]
    empty = [
        f"{folder.path.name}: {fault}" for folder in folders if not folder.segments for fault in folder.faults
    ]
    return log_reading(
        request,
        pieces={(topic, folder.partition): _pieces(folder) for folder in folders if folder.segments},
        facts={(topic, folder.partition): _facts(folder) for folder in folders},
        spec=spec,
        faults=[*absent, *empty],
    )


def _refuse_replicas(folders: Sequence[PartitionFolder], request: Request) -> None:
    """Refuse two copies of one partition: where they differ, only its leader's is the log."""
    copies = Counter(folder.partition for folder in folders)
    for partition, count in copies.items():
        if count > 1:
            names = [
                name_of(folder.path, request.base_dir) for folder in folders if folder.partition == partition
            ]
            raise SourceError(
                f"{request.place}.path: expected one folder for partition {partition}, found {', '.join(names)}: "
                "name the one of its leader"
            )


def _pieces(folder: PartitionFolder) -> list[Piece]:
    most = unpacking()
    return [
        Piece(
            str(segment),
            "segment",
            folder.topic,
            folder.partition,
            _size(segment),
            most_record_bytes=most.record,
            most_file_bytes=most.file,
        )
        for segment in folder.segments
    ]


def _size(segment: Path) -> int:
    """Return the segment's size in bytes; 0 if the broker deleted it meanwhile, which the reader reports."""
    try:
        return segment.stat().st_size
    except OSError:
        return 0


def _facts(folder: PartitionFolder) -> LogFacts:
    return LogFacts(
        topic_id=folder.topic_id,
        start_offset=folder.checkpointed_start,
        high_watermark=folder.high_watermark,
        base_offsets=tuple(map(base_offset_of, folder.segments)),
        faults=folder.faults,
        notes=tuple(_notes(folder)),
    )


def _notes(folder: PartitionFolder) -> Iterator[str]:
    yield from folder.notes
    start, first = folder.checkpointed_start, folder.segments[:1]
    if start is not None and first and start > base_offset_of(first[0]):
        yield f"the log starts at offset {start}; what its segments hold below is deleted"
    if len(folder.leader_epochs) > 1:
        shown = (f"{epoch} from offset {offset}" for epoch, offset in folder.leader_epochs[-_EPOCHS_SHOWN:])
        yield f"leader epochs {', '.join(shown)}"
