"""Spark data sources over pieces of a log: one for what the pieces hold, one for their records.

Both get the pieces as JSON in the option `pieces` and read them in tasks of about 64 MB, on the executors, which must
be able to open the files under the same paths. Values go to Spark as Arrow batches of bounded size.

Source: Apache Spark's documentation, "Python Data Source API".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tieout.engine.kafka.pieces import Piece, Row, Survey, from_option, rows_of, surveyed

SURVEYS: Final = "tieout_kafka_log_surveys"
RECORDS: Final = "tieout_kafka_log_records"
PIECES: Final = "pieces"
_TASK_BYTES: Final = 64 << 20
_BATCH_BYTES: Final = 8 << 20
_BATCH_ROWS: Final = 8192

_SURVEY_SCHEMA: Final = (
    "path string, topic string, partition int, digest string, first_offset bigint, end_offset bigint, "
    "records bigint, faults array<string>, is_torn boolean, hole bigint, falls boolean, "
    "first_markers map<bigint, string>, undecided map<bigint, bigint>"
)
_RECORD_SCHEMA: Final = (
    "topic string, topic_id string, partition int, offset bigint, leader_epoch int, broker_producer_id bigint, "
    "producer_epoch int, broker_sequence bigint, timestamp_ms bigint, timestamp_type string, is_transactional boolean, "
    "transaction_state string, is_control boolean, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, content string, "
    "log_start_offset bigint, last_stable_offset bigint, end_offset bigint, "
    "file string, text string, place bigint, fault string, fault_count bigint"
)


class _Task(InputPartition):
    """The pieces that one task reads, one after the other."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(0)
        self.pieces = pieces


class _PieceReader(DataSourceReader):
    """Reads pieces; small ones share a task."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks, each of about 64 MB or of one larger piece."""
        tasks: list[list[Piece]] = []
        room = 0
        for piece in self._pieces:
            if not tasks or room < piece.size:
                tasks.append([])
                room = _TASK_BYTES
            tasks[-1].append(piece)
            room -= piece.size
        return [_Task(tuple(task)) for task in tasks]


class _SurveyReader(_PieceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield what each piece of the task holds."""
        if isinstance(partition, _Task):
            yield from (_survey_row(surveyed(piece)) for piece in partition.pieces)


class _RecordReader(_PieceReader):
    def __init__(self, pieces: Sequence[Piece], schema: StructType) -> None:
        super().__init__(pieces)
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of the task's pieces."""
        if isinstance(partition, _Task):
            rows = chain.from_iterable(_record_rows(piece) for piece in partition.pieces)
            yield from _arrow_batches(rows, to_arrow_schema(self._schema))


class SurveySource(DataSource):
    """One row a piece: its digest, its bounds, its transactions, and what of it is lost."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return SURVEYS

    def schema(self) -> str:
        """Return the columns of `Survey`."""
        return _SURVEY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """Return the reader of the pieces in the options."""
        return _SurveyReader(from_option(self.options[PIECES]))


class RecordSource(DataSource):
    """One row per record, in the order of each log."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return RECORDS

    def schema(self) -> str:
        """Return the columns: the record's own, its log's bounds, and its place."""
        return _RECORD_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the pieces in the options."""
        return _RecordReader(from_option(self.options[PIECES]), schema)


def _survey_row(survey: Survey) -> tuple[Any, ...]:
    return (
        *(survey.path, survey.topic, survey.partition, survey.digest, survey.first_offset, survey.end_offset),
        *(survey.records, list(survey.faults), survey.is_torn, survey.hole, survey.falls),
        *(dict(survey.transactions.first_markers), dict(survey.transactions.undecided)),
    )


def _record_rows(piece: Piece) -> Iterator[tuple[Any, ...]]:
    bounds = (piece.log_start_offset, piece.last_stable_offset, piece.end_offset)
    for row in rows_of(piece):
        yield (
            piece.topic,
            piece.topic_id,
            piece.partition,
            *_content(row),
            *bounds,
            piece.uri,
            row.text,
            row.place,
            row.fault,
            row.count,
        )


def _content(row: Row) -> tuple[Any, ...]:
    """Return the columns from `offset` to `content`; all null where the row is no record.

    The producer id stays -1 where there is none: a producer that was not idempotent is known, and explains a retry.
    """
    batch, record = row.batch, row.record
    if batch is None or record is None:
        return (None,) * 14
    return (
        *(record.offset, batch.leader_epoch),
        *(batch.producer_id, _known(batch.producer_epoch), _known(record.sequence)),
        *(record.timestamp_ms, "LogAppendTime" if batch.is_log_append_time else "CreateTime"),
        *(batch.is_transactional, row.state, batch.is_control),
        *((None, None) if batch.is_control else (record.key, record.value)),
        [{"key": key, "value": value} for key, value in record.headers],
        "unknown" if record.is_unprinted or record.timestamp_ms is None else None,
    )


def _known(number: int) -> int | None:
    """Return the number, or None for -1, which is how Kafka writes that there is none."""
    return None if number < 0 else number


def _arrow_batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of at most 8192 rows or about 8 MB."""
    key, value = schema.get_field_index("key"), schema.get_field_index("value")
    buffered: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        buffered.append(row)
        size += len(row[key] or b"") + len(row[value] or b"")
        if len(buffered) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _arrow_batch(buffered, schema)
            buffered, size = [], 0
    if buffered:
        yield _arrow_batch(buffered, schema)


def _arrow_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
