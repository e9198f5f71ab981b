"""The reader of the kind `connect_offsets`: the positions of a source connector of Kafka Connect.

A standalone worker keeps current positions in a file, distributed ones keep their history in a compacted topic. A saved
answer of a worker's REST interface is read like that file. Under `exactly.once.source.support` a position is written in
the transaction of the data, so positions of aborted and open transactions are excluded and counted. A record without a
value deletes a position.

A source partition has any fields its connector chooses. One is the place, and a number in the field `partition` is the
place's partition. If several source partitions are equal in both, the connector's position there is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts import ConnectOffsetsSource
from tieout.encodings import as_utf8
from tieout.engine.limits import LARGEST
from tieout.engine.materialising import materialised
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_connector import COMMITTED
from tieout.engine.sources.kafka_log import CONTENT_COLUMNS, LogSpec
from tieout.engine.sources.kafka_segments import segments_reading
from tieout.engine.sources.positions import (
    Position,
    position_row,
    position_rows,
    require_position_ledger,
)
from tieout.engine.sources.small_files import SmallFile, local_folder, small_file
from tieout.engine.sources.source import COUNT, FAULT, HIDDEN, Reading, Request
from tieout.engine.systems.connect_positions import (
    NUMBER,
    PARTITION,
    answered_positions,
    is_answer,
    source_position,
)
from tieout.engine.systems.java_maps import byte_map
from tieout.engine.systems.json_texts import FormatError

_COLUMNS: Final = (
    *("consumer_group", "topic", "partition", "first_offset", "committed_offset", "committed_at", "metadata"),
)
_CUT: Final = "; a worker takes such a file for none, and begins again without a word"
_ANSWER_OF_NOW: Final = (
    "expected a worker's own file with taken_at: now, found an answer of its REST interface; say in taken_at when it "
    "was asked for"
)
_NO_NUMBER: Final = "expected a whole number from 0 on in the field {} of the source offset, found none"
_SEVERAL: Final = (
    "expected one source partition for each place, found several that have the same in the field {}: "
    "name the field in which they differ as place"
)
_NO_KEY: Final = "expected a key [connector, source partition] in JSON, found another"


def read(spec: ConnectOffsetsSource, request: Request) -> Reading:
    """Return the connector's positions, and its deleted ones as rows without an offset.

    Raises:
        SourceError: if the contract uses the source for a ledger without positions, a path is not on a file system of
            this machine, or the cluster cannot be read.
        ConnectionNotFoundError: if the connection is not defined.
    """
    require_position_ledger(spec.kind, request)
    if spec.path is not None:
        return _from_file(spec, spec.path, request)
    topic = spec.topic or ""
    if spec.segments is not None:
        log = LogSpec(spec.taken_time(request.now), "compact", None, CONTENT_COLUMNS)
        return _in_force(segments_reading(request, spec.segments, topic, log), spec, request)
    cluster = Cluster.of(spec.connection or "", request)
    cluster_topic = cluster.topic(topic)
    if cluster_topic is None:
        return cluster.without(topic)
    records = cluster.records(cluster_topic, COMMITTED).withColumn("transaction_state", F.lit("committed"))
    return _in_force(cluster.reading(cluster_topic, records, COMMITTED), spec, request)


def _from_file(spec: ConnectOffsetsSource, path: str, request: Request) -> Reading:
    """Return the current positions in a standalone worker's file, with the time of the file."""
    place = local_folder(request, path)
    if not place.exists():
        absent = f"{path}: no such file"
        return Reading(None, is_present=False, read_at=request.now, unparsed_inputs=1, notes=(absent,))
    file = small_file(place, request.base_dir, place.parent)
    taken_at = spec.taken_time(request.now)
    rows, faults, notes = _positions(file, spec, request)
    return Reading(
        rows=position_rows(request.spark, rows),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=file.input.size,
        digests=(f"{file.input.digest}  {file.input.name}",),
        unparsed_inputs=len(faults),
        notes=(*faults, *notes),
        complete_until=taken_at,
        taken_at=taken_at,
    )


def _positions(
    file: SmallFile, spec: ConnectOffsetsSource, request: Request
) -> tuple[list[tuple[object, ...]], tuple[str, ...], tuple[str, ...]]:
    """Return rows of `POSITIONS`, the file's fault, and notes on it."""
    if file.input.fault is not None:
        return [], (f"{file.input.name}: {file.input.fault}",), ()
    positions: list[Position] = []
    sources: set[tuple[str, int, str]] = set()
    other_count = 0
    content = as_utf8(file.content)
    is_saved_answer = is_answer(content)
    if is_saved_answer and spec.has_own_times:
        return [], (f"{file.input.name}: {_ANSWER_OF_NOW}",), ()
    try:
        entries = answered_positions(content, spec.connector) if is_saved_answer else byte_map(file.content)
        for key, value in entries:
            entry = source_position(key, value, spec.connector, (spec.place, spec.position))
            if entry is None:
                other_count += 1
                continue
            at = file.modified_at if spec.has_own_times else None
            positions.append(Position(entry.place, entry.partition, None, entry.offset, at))
            if entry.offset is not None:
                sources.add((entry.place, entry.partition, entry.source))
    except FormatError as error:
        return [], (f"{file.input.name}: {error}{'' if is_saved_answer else _CUT}",), ()
    if len({source[:2] for source in sources}) < len(sources):
        return [], (f"{file.input.name}: {_SEVERAL.format(spec.place)}",), ()
    rows = [position_row(request, position, file.uri, number) for number, position in enumerate(positions)]
    notes = [f"{other_count} positions of other connectors, passed over"] if other_count else []
    notes += [] if rows else [f"no position of the connector {spec.connector}"]
    return rows, (), tuple(notes)


def _in_force(reading: Reading, spec: ConnectOffsetsSource, request: Request) -> Reading:
    """Return the connector's positions in force from the topic's records, and notes on the others."""
    if reading.rows is None:
        return reading
    decoded = materialised(_decoded(reading.rows, spec, request))
    is_known = F.col("is_data") & F.col(FAULT).isNull()
    is_of_connector = is_known & (F.col("connector") == spec.connector)
    in_force = F.col("transaction_state").isin("none", "committed")
    rows = decoded.where(F.col(FAULT).isNotNull() | (is_of_connector & in_force))
    at_place = Window.partitionBy("topic", "partition")
    source = F.when(F.col(FAULT).isNull() & ~F.col("is_deleted"), F.col("source"))
    is_several = F.col(FAULT).isNull() & (F.min(source).over(at_place) < F.max(source).over(at_place))
    fault = F.when(is_several, _SEVERAL.format(spec.place))
    rows = rows.withColumn(FAULT, F.coalesce(F.col(FAULT), fault))
    counted = [COUNT] if COUNT in decoded.columns else []
    return replace(
        reading,
        rows=rows.select(*_COLUMNS, *HIDDEN, *counted),
        notes=(*reading.notes, *_notes_on_others(decoded, is_known, is_of_connector, spec)),
    )


def _decoded(records: DataFrame, spec: ConnectOffsetsSource, request: Request) -> DataFrame:
    """Return the topic's records with their parsed keys and values.

    | connector | topic | committed_offset | committed_at | is_data | transaction_state |
    |-----------|-------|------------------|--------------|---------|-------------------|
    | src       | /in   | 30               | 12:00:01     | true    | committed         |
    """
    key = F.from_json(F.col("key").cast("string"), "ARRAY<STRING>")
    value = F.from_json(F.col("value").cast("string"), "MAP<STRING, STRING>")
    is_data = F.col(FAULT).isNull() & ~F.col("is_control") & F.col("offset").isNotNull()
    source = F.from_json(F.try_element_at(key, F.lit(2)), "MAP<STRING, STRING>")
    number = F.try_element_at(source, F.lit(PARTITION))
    partition = F.when(number.rlike(NUMBER), number.try_cast("int"))
    parsed = records.withColumns(
        {
            "is_data": F.coalesce(is_data, F.lit(False)),
            "connector": F.when(F.size(key) == 2, F.try_element_at(key, F.lit(1))),
            "place": F.try_element_at(source, F.lit(spec.place)),
            "source": F.array_sort(F.map_entries(source)).cast("string"),
            "place_partition": F.coalesce(partition, F.lit(0)),
            "position": F.try_element_at(value, F.lit(spec.position)),
            "is_deleted": F.col("value").isNull() | (F.trim(F.col("value").cast("string")) == "null"),
        }
    )
    counted = [COUNT] if COUNT in records.columns else []
    offset = F.when(F.col("position").rlike("^[0-9]{1,19}$"), F.col("position").try_cast("bigint"))
    parsed = parsed.withColumn("committed_offset", F.when(~F.col("is_deleted"), offset))
    fault = F.when(F.col("is_data"), _wrong(spec))
    return parsed.select(
        *("connector", "is_data", "is_deleted", "transaction_state", "source"),
        F.lit(request.group).alias("consumer_group"),
        F.col("place").alias("topic"),
        F.col("place_partition").alias("partition"),
        F.lit(None).cast("bigint").alias("first_offset"),
        "committed_offset",
        F.col("record_timestamp").alias("committed_at"),
        F.lit(None).cast("string").alias("metadata"),
        *HIDDEN[:-1],
        *counted,
        F.coalesce(F.col(FAULT), fault).alias(FAULT),
    )


def _wrong(spec: ConnectOffsetsSource) -> Column:
    """Return the fault of a record that is, or may be, the connector's; null if it has none."""
    is_number = F.coalesce(F.col("committed_offset") <= LARGEST, F.lit(False))
    return (
        F.when(F.col("connector").isNull(), _NO_KEY)
        .when(F.col("connector") != spec.connector, None)
        .when(F.col("place").isNull(), f"expected a field {spec.place} in the source partition, found none")
        .when(F.col("is_deleted"), None)
        .when(~is_number, _NO_NUMBER.format(spec.position))
    )


def _notes_on_others(
    decoded: DataFrame, is_known: Column, is_of_connector: Column, spec: ConnectOffsetsSource
) -> Iterator[str]:
    """Yield notes on the records that are not positions of the connector in force."""
    state = F.col("transaction_state")
    counts = decoded.agg(
        F.count_if(is_of_connector).alias("positions"),
        F.count_if(is_of_connector & (state == "aborted")).alias("aborted"),
        F.count_if(is_of_connector & (state == "open")).alias("open"),
        F.count_if(is_of_connector & F.col("is_deleted")).alias("deleted"),
        F.count_if(is_known & ~is_of_connector).alias("others"),
    ).collect()[0]
    descriptions = {
        "aborted": "positions in aborted transactions, set aside",
        "open": "positions in transactions that are still open, set aside",
        "deleted": "positions that were deleted",
        "others": "positions of other connectors, passed over",
    }
    if not counts["positions"]:
        yield f"no position of the connector {spec.connector}"
    yield from (f"{counts[name]} {description}" for name, description in descriptions.items() if counts[name])
