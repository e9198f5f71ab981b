"""Parquet and ORC files of one ledger that have a column in different types."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of

from tieout.errors import SourceError

_AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
_NANOSECONDS = pa.array([_AT], pa.timestamp("ns", "UTC"))
_MICROSECONDS = pa.array([_AT], pa.timestamp("us", "UTC"))


def _evidence(spark: SparkSession, folder: Path, file_format: str = "parquet", **spec: Any) -> Any:
    source = {"kind": "files", "format": file_format, "path": f"*.{file_format}"}
    return evidence_of(spark, folder, "delivered", source=source, **spec)


def _write(folder: Path, name: str, **columns: Any) -> None:
    table = pa.table(columns)
    if name.endswith(".orc"):
        orc.write_table(table, folder / name)
    else:
        pq.write_table(table, folder / name)


def test_a_text_is_not_converted_to_the_number_in_another_file(spark: SparkSession, tmp_path: Path) -> None:
    """Files with times in nanoseconds are read by themselves; the union made 4 of '04', and failed on letters."""
    _write(tmp_path, "a.parquet", message_id=[4], processed_at=_NANOSECONDS)
    _write(tmp_path, "b.parquet", message_id=["04"], processed_at=_MICROSECONDS)
    _write(tmp_path, "c.parquet", message_id=[5], processed_at=_MICROSECONDS)

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("4",), ("5",)]
    assert "b.parquet: expected column message_id as bigint, as in a.parquet, found string" in (
        found.coverage.notes
    )
    assert not found.coverage.is_within_tolerance


def test_a_decimal_gets_no_places_from_another_file(spark: SparkSession, tmp_path: Path) -> None:
    """As text, 1.50 and 1.5000 are two ids."""
    _write(tmp_path, "a.parquet", message_id=pa.array(["1.50"]).cast(pa.decimal128(9, 2)), t=_NANOSECONDS)
    _write(tmp_path, "b.parquet", message_id=pa.array(["2.5000"]).cast(pa.decimal128(9, 4)), t=_MICROSECONDS)

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("1.50",)]
    assert not found.coverage.is_within_tolerance


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_the_types_of_unused_columns_may_differ(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """Pandas writes a column as whole numbers or, where one is missing, as floating-point numbers."""
    _write(tmp_path, f"a.{file_format}", message_id=["a"], amount=[1])
    _write(tmp_path, f"b.{file_format}", message_id=["b"], amount=[1.5])
    _write(tmp_path, f"c.{file_format}", message_id=["c"], amount=["one"])

    found = _evidence(spark, tmp_path, file_format)

    assert rows_of(found, "message_id") == [("a",), ("b",), ("c",)]
    assert found.coverage.unparsed == 0


def test_a_column_without_a_value_has_the_type_of_other_files(spark: SparkSession, tmp_path: Path) -> None:
    """Where all values are missing, pandas writes no type or that of numbers, and the first file decides nothing."""
    _write(tmp_path, "a.parquet", message_id=pa.array([], pa.float64()), payload_hash=pa.array([], pa.null()))
    _write(tmp_path, "b.parquet", message_id=["b"], payload_hash=pa.array([None], pa.null()))
    _write(tmp_path, "c.parquet", message_id=["c"], payload_hash=["x"])
    _write(tmp_path, "d.parquet", message_id=["d"], payload_hash=pa.array([None], pa.float64()))

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id", "payload_hash") == [("b", None), ("c", "x"), ("d", None)]
    assert found.coverage.unparsed == 0


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_whole_numbers_of_any_length_are_read_together(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """A column may have been made longer between two files."""
    _write(tmp_path, f"a.{file_format}", message_id=pa.array([7], pa.int32()))
    _write(tmp_path, f"b.{file_format}", message_id=pa.array([2**60], pa.int64()))

    found = _evidence(spark, tmp_path, file_format)

    assert rows_of(found, "message_id") == [(str(2**60),), ("7",)]
    assert found.coverage.unparsed == 0


def test_times_with_and_without_a_zone_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    """A time without a zone is one of UTC in every file."""
    naive = pa.array([_AT.replace(tzinfo=None)], pa.timestamp("ms"))
    _write(tmp_path, "a.parquet", message_id=["a"], processed_at=_MICROSECONDS)
    _write(tmp_path, "b.parquet", message_id=["b"], processed_at=naive)

    found = _evidence(spark, tmp_path)

    times = [time for (time,) in rows_of(found, "processed_at")]
    assert len(times) == 2
    assert len(set(times)) == 1


def test_objects_with_more_fields_are_not_blamed_for_another_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of the file with another type of one column, the object in another column has a new field."""
    _write(tmp_path, "a.parquet", message_id=["a"], body=[{"v": "x"}], n=[1])
    _write(tmp_path, "b.parquet", message_id=["b"], body=[{"v": "y", "w": 1}], n=["1"])

    found = _evidence(spark, tmp_path, columns={"payload_hash": "body.v"})

    assert rows_of(found, "message_id", "payload_hash") == [("a", "x"), ("b", "y")]
    assert found.coverage.unparsed == 0


def test_a_column_that_folders_are_named_after_is_reported_as_such(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hive, Spark and sinks of Kafka Connect write such folders."""
    (tmp_path / "out" / "partition=1").mkdir(parents=True)
    _write(tmp_path / "out" / "partition=1", "a.parquet", message_id=["a"])
    source = {"kind": "files", "format": "parquet", "path": "out"}

    with pytest.raises(SourceError, match=r"folders are called partition=…, .* kind: connect_files"):
        evidence_of(spark, tmp_path, "delivered", source=source, columns={"partition": "partition"})
