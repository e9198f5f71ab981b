"""The reader of the kind `trident`: which offsets each batch of a Trident stream had, and when the batch succeeded.

Trident keeps one or two batches in ZooKeeper, and a ZooKeeper server keeps each change with its time in its transaction
log. A restart goes on behind the last batch that succeeded, whatever the consumer group says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from tieout.contracts import TridentSource
from tieout.engine.limits import is_time, shown
from tieout.engine.sources.positions import (
    Position,
    position_row,
    position_rows,
    require_position_ledger,
    shortened,
)
from tieout.engine.sources.small_files import local_folder
from tieout.engine.sources.source import Reading, Request
from tieout.engine.sources.zookeeper_folders import ServerFiles, read_server
from tieout.engine.systems.trident_state import Batch, Stream, stream_at, topologies_of
from tieout.engine.systems.zookeeper_log import Transaction
from tieout.engine.systems.zookeeper_snapshot import Node
from tieout.errors import SourceError

_NO_LOG: Final = "{}: no transaction log of a ZooKeeper server, log.1"
_NO_STREAM: Final = "expected {} of Trident below {}, found {}"
_NO_RANGES: Final = "batch {} succeeded, and has no ranges of a Kafka spout, user/<topic>@<partition>/{}"
_CURRENT: Final = "/coordinator/currtx"


def read(spec: TridentSource, request: Request) -> Reading:
    """Return one row for each partition of each batch that succeeded.

    Raises:
        SourceError: where the contract uses the source for another ledger than one of positions, where there are
            several streams and it names none, and for a path that is not on a file system of this machine.
    """
    require_position_ledger(spec.kind, request)
    folders = [local_folder(request, path) for path in spec.path]
    streams: dict[str, Stream] = {}
    logs: list[str] = []

    def add_position(path: str, data: bytes | None, millis: int) -> None:
        stream_place = stream_at(spec.root, path)
        if stream_place is not None:
            streams.setdefault(stream_place[0], Stream()).apply(stream_place[1], data, millis)

    def add_nodes(nodes: tuple[Node, ...]) -> None:
        # Which batch is next comes last: by then the ranges of the one before it are known.
        for node in sorted(nodes, key=lambda node: node.path.endswith(_CURRENT)):
            add_position(node.path, node.data, node.millis)

    def add_changes(transaction: Transaction, uri: str) -> None:
        for change in transaction.changes:
            add_position(change.path, change.data, transaction.millis)
        if transaction.changes and logs[-1:] != [uri]:
            logs.append(uri)

    found = read_server(folders, request.base_dir, spec.root, add_nodes, add_changes)
    if found.last_at is None:
        absent = tuple(found.faults) or (_NO_LOG.format(", ".join(spec.path)),)
        is_present = any(folder.exists() for folder in folders)
        return Reading(None, is_present=is_present, read_at=request.now, unparsed_inputs=1, notes=absent)
    name = spec.stream or _only_stream(streams, spec, request)
    stream = streams.get(name or "")
    if stream is None or name is None:
        known = ", ".join(map(shown, sorted(streams))) or "none"
        expected = "a stream" if name is None else f"the stream {shown(name)}"
        found.faults.append(_NO_STREAM.format(expected, spec.root, known))
        stream = Stream()
    return _reading(spec, request, found, stream, logs)


def _only_stream(streams: dict[str, Stream], spec: TridentSource, request: Request) -> str | None:
    """Return the name of the stream, None where there is none.

    Raises:
        SourceError: where there are several.
    """
    names = sorted(streams)
    if len(names) > 1:
        raise SourceError(
            f"{request.place}.stream: expected the stream whose batches are meant, as {spec.root} has "
            f"{', '.join(map(shown, names))}"
        )
    return names[0] if names else None


def _reading(
    spec: TridentSource, request: Request, found: ServerFiles, stream: Stream, logs: list[str]
) -> Reading:
    begins_at = found.begins_at
    faults = [*found.faults, *stream.faults]
    earliest = min((one.millis for one in stream.batches), default=None)
    for txid, millis in stream.unknown:
        # What was read when the log began is not in it: the ledger begins behind that.
        if begins_at is not None and (earliest is None or earliest >= millis):
            begins_at = max(begins_at, millis)
        else:
            faults.append(_NO_RANGES.format(txid, txid))
    taken_at = spec.taken_time(request.now)
    last_at = _moment(found.last_at)
    uri = logs[-1] if logs else ""
    rows = [_row(request, batch, uri, number) for number, batch in enumerate(stream.batches)]
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=sum(file.size for file in found.inputs),
        digests=tuple(f"{file.digest}  {file.name}" for file in found.inputs),
        unparsed_inputs=len(faults),
        notes=(*shortened(tuple(faults)), *shortened(tuple(found.notes)), *_stream_notes(stream)),
        complete_until=last_at if taken_at is None else taken_at,
        complete_from=_moment(begins_at),
    )


def _stream_notes(stream: Stream) -> Iterator[str]:
    """Yield notes about the stream's empty batches and topologies."""
    if stream.empty:
        yield f"{stream.empty} ranges of batches without a record, passed over"
    yield from shortened(tuple(topologies_of(stream.batches)))


def _row(request: Request, batch: Batch, uri: str, number: int) -> tuple[object, ...]:
    metadata: dict[str, object] = {"txid": batch.txid}
    if batch.topology is not None:
        metadata["topologyId"] = batch.topology
    position = Position(
        batch.topic, batch.partition, batch.first, batch.end, _moment(batch.millis), json.dumps(metadata)
    )
    return position_row(request, position, uri, number)


def _moment(millis: int | None) -> datetime | None:
    return datetime.fromtimestamp(millis / 1000, UTC) if millis is not None and is_time(millis) else None
