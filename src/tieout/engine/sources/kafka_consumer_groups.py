"""The reader of the kind `kafka_consumer_groups`: a group's positions as they are, from its cluster or a tool's text.

Of `kafka-consumer-groups` two forms are read: the table of `--describe`, of any version and with whatever a terminal or
Java wrote around it, and the CSV of `--reset-offsets --to-current --dry-run --export`; so are the tables of
`rpk group describe` and of `kafka-share-groups --describe`, whose START-OFFSET is a share group's position: nothing
before it is delivered to a member again. Neither these texts nor a cluster say when a position was committed, so the
rows are current positions without a time: rules that compare commits are not judged. A partition whose position
is `-` has no row; neither has a member without partitions, for which the table prints `-` as topic and partition too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Row

from tieout.contracts import KafkaConsumerGroupsSource
from tieout.engine.kafka.group_tables import GroupTables, Position, tables_of
from tieout.engine.kafka.share_groups import shows_share_group
from tieout.engine.materialising import no_rows
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.inputs import Inputs
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_offsets import share_group_of
from tieout.engine.sources.lines import line_numbers, lines_of
from tieout.engine.sources.paths import local_path, name_of
from tieout.engine.sources.share_groups import as_share_group
from tieout.engine.sources.source import (
    BLOCK,
    FAULT,
    FILE,
    ROW,
    TEXT,
    Reading,
    Request,
    hidden_columns,
    unread,
)
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, SMALL_BYTES, missing_ranges

_POSITION_SCHEMA: Final = (
    "consumer_group STRING, topic STRING, partition INT, committed_offset BIGINT, leader_epoch INT, "
    "log_end_offset BIGINT"
)
_READ: Final = (
    f"{_POSITION_SCHEMA}, {FILE} STRING, {TEXT} STRING, {BLOCK} BIGINT, {ROW} BIGINT, {FAULT} STRING"
)
_SHOWN: Final = 5
_SEVERAL: Final = (
    "another row has another position of the group in this partition; keep the table of taken_at alone"
)
_Text = Sequence[Row]
_Partition = tuple[str, str, int]
"""A group, and a partition of a topic."""


def read(spec: KafkaConsumerGroupsSource, request: Request) -> Reading:
    """Return the positions, one row per partition; a line that concerns the group and is no row is an unreadable one.

    Raises:
        SourceError: where the ledger is neither `committed` nor `mirrored`, where the text is too
            large to be a table, and where the cluster cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    if request.ledger not in POSITION_LEDGERS:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for committed and mirrored only")
    if spec.connection is not None:
        return _from_cluster(spec.connection, str(spec.group), request)
    inputs = inputs_of(request.spark, spec.path or (), request.base_dir, "text")
    if not inputs.readable:
        return unread(inputs, request.now)
    if inputs.size > SMALL_BYTES:
        raise SourceError(
            f"{request.place}.path: expected what the tool prints, found {inputs.size >> 20} MB; name its files alone"
        )
    return _from_text(spec, inputs, request)


def _from_cluster(connection: str, group: str, request: Request) -> Reading:
    cluster = Cluster.of(connection, request)
    positions = cluster.positions(group)
    if not positions and (shared := share_group_of(cluster, group, request)) is not None:
        return shared
    rows = [(group, one.topic, one.partition, one.offset, one.leader_epoch, one.end) for one in positions]
    return Reading(
        rows=request.spark.createDataFrame(rows, _POSITION_SCHEMA).select("*", *hidden_columns()),
        is_present=True,
        read_at=request.now,
        notes=() if positions else (f"the cluster knows no position of the group {group}",),
        complete_until=request.now,
        taken_at=datetime.now(UTC),  # not when the run began: the log may have grown since
    )


def _from_text(spec: KafkaConsumerGroupsSource, inputs: Inputs, request: Request) -> Reading:
    """Return the positions in the files; each file is a separate text."""
    group = spec.group or request.group or ""
    texts: dict[str, list[Row]] = {}
    for line in lines_of(request.spark, inputs.readable).orderBy(FILE, BLOCK, ROW).collect():
        texts.setdefault(line[FILE], []).append(line)
    found = {uri: tables_of((line[TEXT] for line in text), group) for uri, text in texts.items()}
    several = _of_several_moments(found.values())
    rows = [row for uri, tables in found.items() for row in _rows(tables, texts[uri], several)]
    missing = tuple(_missing(list(found.values()), group))
    taken_at = spec.taken_time(request.now)
    reading = Reading(
        rows=request.spark.createDataFrame(rows, _READ) if rows else no_rows(request.spark, _READ),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=inputs.size,
        digests=inputs.digests,
        unparsed_inputs=len(inputs.faults) + len(missing),
        notes=(*inputs.notes, *missing, *_passed(found, texts, request)),
        complete_until=taken_at,
        taken_at=taken_at,
    )
    is_shared = any(shows_share_group((line[TEXT] for line in text), group) for text in texts.values())
    return as_share_group(reading, group) if is_shared else reading


def _of_several_moments(found: Iterable[GroupTables]) -> frozenset[_Partition]:
    """Return the partitions in which a group has two positions: at one moment it has one, or none."""
    offsets: dict[_Partition, set[int | None]] = {}
    for tables in found:
        for _, position in tables.positions:
            offsets.setdefault((position.group, position.topic, position.partition), set()).add(
                position.offset
            )
    return frozenset(partition for partition, known in offsets.items() if len(known) > 1)


def _rows(tables: GroupTables, text: _Text, several: Collection[_Partition]) -> Iterator[tuple[object, ...]]:
    for number, position in tables.positions:
        if (position.group, position.topic, position.partition) in several:
            yield (*[None] * 6, *_place(text[number]), _SEVERAL)
        elif position.offset is not None:
            place = (
                position.group,
                position.topic,
                position.partition,
                position.offset,
                position.leader_epoch,
                position.end,
            )
            yield (*place, *_place(text[number]), None)
    for number, fault in tables.faults:
        yield (*[None] * 6, *_place(text[number]), fault)


def _place(line: Row) -> tuple[object, ...]:
    return tuple(line[name] for name in (FILE, TEXT, BLOCK, ROW))


def _missing(found: Sequence[GroupTables], group: str) -> Iterator[str]:
    """Yield what the texts lack of the group: all of its rows, or some of them while it was rebalancing."""
    own = [position for tables in found for _, position in tables.positions if position.group == group]
    others = sorted({other for tables in found for other in tables.groups} - {group})
    if not own and not any(tables.idle for tables in found):
        columns = [names for tables in found for names in tables.others]
        shown = (
            f"those of {', '.join(others[:_SHOWN])}"
            if others
            else f"one with {columns[0]}"
            if columns
            else "none"
        )
        yield (
            f"expected positions of the group {group}, in a table with the columns TOPIC, PARTITION and "
            f"CURRENT-OFFSET or START-OFFSET or an export, found {shown}"
        )
    elif any(tables.is_rebalancing for tables in found) and (hole := _hole(own)) is not None:
        yield f"the group {group} was rebalancing, and its table has no row of {hole}; print it again"


def _hole(positions: Sequence[Position]) -> str | None:
    """Return a partition below one that the table has, of which it has no row."""
    numbers: dict[str, set[int]] = {}
    for one in positions:
        numbers.setdefault(one.topic, set()).add(one.partition)
    holes = ((topic, missing_ranges(offsets, max(offsets))) for topic, offsets in sorted(numbers.items()))
    return next((f"{topic}-{first}" for topic, missing in holes for first, _ in missing), None)


def _passed(found: Mapping[str, GroupTables], texts: Mapping[str, _Text], request: Request) -> Iterator[str]:
    """Yield a note for each file with lines outside a table that do not concern the group."""
    for uri, tables in found.items():
        if tables.passed:
            samples = [(uri, str(texts[uri][number][TEXT])) for number in tables.passed[:_SHOWN]]
            known = [str(number) for number in line_numbers(samples) if number is not None]
            more = ["…"] if len(tables.passed) > _SHOWN else []
            where = f" (lines {', '.join([*known, *more])})" if known else ""
            name = name_of(local_path(uri), request.base_dir)
            yield f"{name}: {len(tables.passed)} lines around the tables say nothing of the group{where}"
