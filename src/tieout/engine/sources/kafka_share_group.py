"""The reader of the kind `kafka_share_group`: which records of a topic a share group is done with, and how (KIP-932).

A record of `__share_group_state` states ranges of offsets that were acknowledged or archived. A record is archived when
a member rejected it or it was delivered too often: it is never delivered again, and nobody acknowledged it. Locks are
not written down, and released records go to the next member: neither is done with.

Nothing below the start offset is delivered again. The start offset passes archived records as well, so it has no time
of its own, and proves no early acknowledgement; each acknowledgement has the time of its record. A broker writes a
state again after some updates, and when it was idle for five minutes, and may drop the records before: what such a
snapshot shows first was acknowledged by then, at a time that is not known.

Source: `ShareCoordinatorShard.java` and `share.coordinator.cold.partition.snapshot.interval.ms` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from tieout.contracts import STATE_TOPIC, KafkaShareGroupSource
from tieout.engine.kafka.folders import folders_of
from tieout.engine.kafka.share_groups import NOTE
from tieout.engine.materialising import no_rows
from tieout.engine.session import set_to
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_connector import COMMITTED, INTERNAL_TOPICS
from tieout.engine.sources.kafka_log import CONTENT_COLUMNS, LogSpec
from tieout.engine.sources.kafka_segments import segments_reading
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Reading, Request
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.share_state import DeliveryState, ShareState, StateKey, share_state, state_key
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, Ledger

_HIDDEN: Final = f"{FILE} STRING, {TEXT} STRING, {BLOCK} BIGINT, {ROW} BIGINT, {FAULT} STRING"
_PLACE: Final = "topic STRING, topic_id STRING, partition INT"
_COMMITTED: Final = (
    f"consumer_group STRING, {_PLACE}, first_offset BIGINT, committed_offset BIGINT, is_individual BOOLEAN, "
    f"committed_at TIMESTAMP, taken_at TIMESTAMP, metadata STRING, {_HIDDEN}"
)
_ASIDE: Final = (
    f"{_PLACE}, first BIGINT, last BIGINT, at TIMESTAMP, reason STRING, delivery_count INT, {_HIDDEN}"
)
_LEDGERS: Final = (*POSITION_LEDGERS, Ledger.DEAD_LETTERS, Ledger.FILTERED)
_KEY_BYTES: Final = 24
"""Bytes of a key besides the group's name."""
_MOST_RECORDS: Final = 1_000_000
"""The most records that one range may archive; a broker lets members lock some thousands of a partition at a time."""
_READ: Final = ("key", "value", "record_timestamp", FILE, TEXT, BLOCK, ROW, FAULT)
_NO_ID: Final = (
    "{}: expected the id of {}, as its state is kept by it: the folders of the topic beside those of {}, or topic_id; "
    "found {}"
)
_Values = tuple[object, ...]


def read(spec: KafkaShareGroupSource, request: Request) -> Reading:
    """Return the group's finished records of the topic: as positions, or one row per archived record.

    Raises:
        SourceError: for another ledger than one of positions, `dead_letters` and `filtered`, where the topic's id is
            not known, for a path that is not on a file system of this machine, for a partition with two folders, and
            where the cluster cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    if request.ledger not in _LEDGERS:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for {', '.join(_LEDGERS)} only")
    if spec.connection is not None:
        return _from_cluster(spec, spec.connection, request)
    return _from_segments(spec, spec.path or (), request)


def _from_cluster(spec: KafkaShareGroupSource, connection: str, request: Request) -> Reading:
    cluster = Cluster.of(connection, request)
    topic, state = cluster.topic(spec.topic), cluster.topic(STATE_TOPIC)
    if topic is None or state is None:
        return cluster.without(spec.topic if topic is None else STATE_TOPIC)
    with set_to(request.spark, INTERNAL_TOPICS):
        records = cluster.reading(state, cluster.records(state, COMMITTED), COMMITTED)
        return _decoded(spec, topic.topic_id, records, request)


def _from_segments(spec: KafkaShareGroupSource, paths: tuple[str, ...], request: Request) -> Reading:
    log = LogSpec(spec.taken_time(request.now), "delete", spec.partitions, CONTENT_COLUMNS)
    records = segments_reading(request, paths, STATE_TOPIC, log)
    if records.rows is None:
        return records
    return _decoded(spec, spec.topic_id or _id_behind(spec, paths, request), records, request)


def _id_behind(spec: KafkaShareGroupSource, paths: tuple[str, ...], request: Request) -> str:
    """Return the topic's id, from its own folders below the paths.

    Raises:
        SourceError: where there are none or several.
    """
    folders = folders_of(paths, request.base_dir, spec.topic).folders
    ids = sorted({folder.topic_id for folder in folders if folder.topic_id is not None})
    if len(ids) != 1:
        found = ", ".join(ids) or "none"
        raise SourceError(_NO_ID.format(f"{request.place}.path", spec.topic, STATE_TOPIC, found))
    return ids[0]


def _decoded(
    spec: KafkaShareGroupSource, topic_id: str | None, records: Reading, request: Request
) -> Reading:
    """Return the reading of the topic's records as the ledger's rows."""
    if records.rows is None:
        return records
    found = _Found(spec, topic_id, request)
    kept = records.rows.where(_may_be_of(spec.group)).orderBy("partition", "offset").select(*_READ)
    for row in kept.toLocalIterator():
        found.add(row)
    return replace(
        records,
        rows=found.frame(),
        notes=(*records.notes, *found.notes(), NOTE.format(spec.group)),
        taken_at=spec.taken_time(request.now) if spec.connection is None else request.now,
        is_share_group=request.ledger in POSITION_LEDGERS,
    )


def _may_be_of(group: str) -> Column:
    """Return whether a record is of the group, cannot be read, or has a key that is not of a share group's state."""
    name = group.encode()
    named = F.lit(bytearray(len(name).to_bytes(2, "big") + name))
    is_ours = F.substring("key", 3, len(name) + 2) == named
    length = F.conv(F.hex(F.substring("key", 3, 2)), 16, 10).cast("bigint")
    is_known = F.hex(F.substring("key", 1, 2)).isin("0000", "0001")
    is_complete_key = is_known & (F.octet_length("key") == length + _KEY_BYTES)
    is_unexpected = ~F.coalesce(is_complete_key, F.lit(False))
    is_record = ~F.coalesce(F.col("is_control"), F.lit(False)) & F.col("offset").isNotNull()
    return F.col(FAULT).isNotNull() | (is_record & (is_ours | is_unexpected))


@dataclass
class _Found:
    """Rows and counts collected from the records of the state, in their order."""

    spec: KafkaShareGroupSource
    topic_id: str | None
    request: Request
    rows: list[_Values] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    counted: set[tuple[int, int, int, int]] = field(default_factory=set)
    starts: dict[int, int] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    """Partitions of which a record was found."""

    def add(self, row: Row) -> None:
        """Add the rows of one record."""
        if row[FAULT] is not None:
            self._add_fault(row, row[FAULT])
            return
        try:
            key = state_key(bytes(row["key"] or b""))
            if key.group == self.spec.group and key.topic_id != self.topic_id:
                self.counts["other topics"] += 1
            elif key.group == self.spec.group and row["value"] is None:
                self.counts["deletions"] += 1
            elif key.group == self.spec.group:
                state = share_state(bytes(row["value"]), is_snapshot=key.is_snapshot)
                self._add(key, state, row)
        except FormatError as error:
            self._add_fault(row, str(error))

    def _add(self, key: StateKey, state: ShareState, row: Row) -> None:
        self.counts["records"] += 1
        is_positions = self.request.ledger in POSITION_LEDGERS
        is_dated = key.partition in self.begun or not state.is_rewritten
        self.begun.add(key.partition)
        if is_positions and state.start is not None and self.starts.get(key.partition) != state.start:
            self.starts[key.partition] = state.start
            self.rows.append(self._position(key, row, None, state.start, "start offset", is_dated=False))
        for first, last, reached, deliveries in state.batches:
            batch = (key.partition, first, last, reached)
            if batch in self.counted or reached not in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED):
                continue
            self.counted.add(batch)
            self.counts[reached.name.lower()] += last - first + 1
            is_acknowledged = reached is DeliveryState.ACKNOWLEDGED
            if is_positions:
                what = f"{reached.name.lower()}, delivered {deliveries} times"
                is_timed = is_dated and is_acknowledged
                self.rows.append(self._position(key, row, first, last + 1, what, is_dated=is_timed))
            elif not is_acknowledged:
                self._set_aside(key, row, first, last, deliveries)

    def _position(
        self, key: StateKey, row: Row, first: int | None, end: int, what: str, *, is_dated: bool
    ) -> _Values:
        """Return a row of positions; one without a time holds since its record was written."""
        at = row["record_timestamp"]
        times = (at, None) if is_dated else (None, at)
        place = (self.spec.group, self.spec.topic, key.topic_id, key.partition)
        return (*place, first, end, first is not None, *times, what, *_hidden(row))

    def _set_aside(self, key: StateKey, row: Row, first: int, last: int, deliveries: int) -> None:
        if last - first >= _MOST_RECORDS:
            raise FormatError(
                f"expected a stretch of at most {_MOST_RECORDS} archived records, found {first} to {last}"
            )
        place = (self.spec.topic, key.topic_id, key.partition)
        reason = f"archived, delivered {deliveries} times"
        self.rows.append((*place, first, last, row["record_timestamp"], reason, deliveries, *_hidden(row)))

    def _add_fault(self, row: Row, fault: str) -> None:
        schema = _COMMITTED if self.request.ledger in POSITION_LEDGERS else _ASIDE
        columns = schema.count(",") + 1
        self.rows.append((*(None,) * (columns - 5), *_hidden(row)[:-1], fault))

    def frame(self) -> DataFrame:
        """Return the rows of the ledger."""
        spark = self.request.spark
        if self.request.ledger in POSITION_LEDGERS:
            return spark.createDataFrame(self.rows, _COMMITTED) if self.rows else no_rows(spark, _COMMITTED)
        rows = spark.createDataFrame(self.rows, _ASIDE) if self.rows else no_rows(spark, _ASIDE)
        # A faulty row has no offsets, and stays one row.
        offsets = F.explode_outer(F.sequence("first", "last"))
        return rows.withColumn("offset", offsets).drop("first", "last")

    def notes(self) -> Iterator[str]:
        """Yield notes that count what was found and skipped."""
        if not self.counts["records"]:
            yield f"no state of the group {self.spec.group} in the topic {self.spec.topic}, id {self.topic_id}"
        texts = {
            "acknowledged": "records that were acknowledged",
            "archived": "records that were rejected, or delivered too often",
            "other topics": "states of other topics of the group, passed over",
            "deletions": "states that were deleted",
        }
        yield from (f"{self.counts[name]} {what}" for name, what in texts.items() if self.counts[name])


def _hidden(row: Row) -> _Values:
    return (row[FILE], row[TEXT], row[BLOCK], row[ROW], None)
