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
    computed = _evidence(spark, tmp_path, columns={"message_id": "message_id + 1"})

    assert rows_of(found, "message_id") == [("04",), ("4",), ("5",)]
    assert found.coverage.unparsed == 0
    assert rows_of(computed, "message_id") == [("5",), ("6",)]
    assert "b.parquet: expected column message_id as bigint, as in a.parquet, found string" in (
        computed.coverage.notes
    )
    assert not computed.coverage.is_within_tolerance


def test_a_decimal_gets_no_places_from_another_file(spark: SparkSession, tmp_path: Path) -> None:
    """As text, 1.50 and 1.5000 are two ids."""
    _write(tmp_path, "a.parquet", message_id=pa.array(["1.50"]).cast(pa.decimal128(9, 2)), t=_NANOSECONDS)
    _write(tmp_path, "b.parquet", message_id=pa.array(["2.5000"]).cast(pa.decimal128(9, 4)), t=_MICROSECONDS)

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("1.50",), ("2.5000",)]
    assert found.coverage.unparsed == 0


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_an_id_of_whole_numbers_in_one_file_is_of_floating_point_numbers_in_another(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """Pandas writes them where an id is missing. From 2^53 on such a number may be another id."""
    _write(tmp_path, f"a.{file_format}", message_id=[1, 2**60])
    _write(tmp_path, f"b.{file_format}", message_id=[3.0, None, 2.0**53])
    _write(tmp_path, f"c.{file_format}", message_id=pa.array(["4"]).cast(pa.decimal128(38, 0)))

    found = _evidence(spark, tmp_path, file_format)

    assert rows_of(found, "message_id") == [("1",), (str(2**60),), ("3",), ("4",), (None,)]
    assert found.coverage.unparsed == 1
    assert f"b.{file_format}: column message_id has floating-point numbers; 101.0 is read as 101" in (
        found.coverage.notes
    )
    assert any(
        "message_id: expected text, or a floating-point number below 2^53" in note
        for note in found.coverage.notes
    )


def test_times_of_any_type_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    """As a time, its text, and its milliseconds: each as it would be read by itself."""
    for name, at in (("a", _MICROSECONDS), ("b", [_AT.isoformat()]), ("c", [int(_AT.timestamp() * 1000)])):
        _write(tmp_path, f"{name}.parquet", message_id=[name], processed_at=at)

    found = _evidence(spark, tmp_path)

    times = [time for (time,) in rows_of(found, "processed_at")]
    assert (len(times), len(set(times))) == (3, 1)
    assert found.coverage.unparsed == 0


def test_bytes_are_not_read_as_the_text_in_another_file(spark: SparkSession, tmp_path: Path) -> None:
    """Bytes are hexadecimal digits: nothing says that these are letters."""
    _write(tmp_path, "a.parquet", message_id=pa.array([b"a"], pa.binary()))
    _write(tmp_path, "b.parquet", message_id=["b"])

    found = _evidence(spark, tmp_path)

    assert "b.parquet: expected column message_id as binary, as in a.parquet, found string" in (
        found.coverage.notes
    )


def test_types_that_differ_where_it_does_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    """Each file is read, whatever the others have.

    Pandas writes an unused column as whole numbers or, where one is missing, as floating-point numbers; where all
    values are missing it writes no type, and the first file decides nothing. A time without a zone is one of UTC. Of
    the file with another type of one column, the object in another column has a new field. A column may have been made
    longer between two files.
    """
    naive = pa.array([_AT.replace(tzinfo=None)], pa.timestamp("ms"))
    nothing = pa.array([None], pa.null())
    _write(tmp_path, "0.parquet", message_id=pa.array([], pa.float64()), payload_hash=pa.array([], pa.null()))
    for name, amount, content, length, at, body in (
        ("a", 1, nothing, pa.int32(), _MICROSECONDS, {"v": "x"}),
        ("b", 1.5, ["y"], pa.int64(), naive, {"v": "y", "w": 1}),
        ("c", "one", pa.array([None], pa.float64()), pa.int64(), _MICROSECONDS, {"v": "z"}),
    ):
        _write(
            tmp_path,
            f"{name}.parquet",
            message_id=[name],
            amount=[amount],
            payload_hash=content,
            offset=pa.array([7], length),
            processed_at=at,
            body=[body],
        )

    found = _evidence(spark, tmp_path, columns={"key_hash": "body.v"})

    assert rows_of(found, "message_id", "payload_hash", "offset", "key_hash") == [
        ("a", None, 7, "x"),
        ("b", "y", 7, "y"),
        ("c", None, 7, "z"),
    ]
    times = [time for (time,) in rows_of(found, "processed_at")]
    assert (len(times), len(set(times))) == (3, 1)
    assert found.coverage.unparsed == 0


def test_types_that_differ_in_orc_files_where_it_does_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    """An unused column, and whole numbers of any length."""
    for name, amount, length in (("a", 1, pa.int32()), ("b", 1.5, pa.int64()), ("c", "one", pa.int64())):
        _write(tmp_path, f"{name}.orc", message_id=[name], amount=[amount], offset=pa.array([7], length))

    found = _evidence(spark, tmp_path, "orc")

    assert rows_of(found, "message_id", "offset") == [("a", 7), ("b", 7), ("c", 7)]
    assert found.coverage.unparsed == 0


def test_ids_of_whole_numbers_of_any_length_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    """A column may have been made longer between two files."""
    _write(tmp_path, "a.parquet", message_id=pa.array([7], pa.int32()))
    _write(tmp_path, "b.parquet", message_id=pa.array([2**60], pa.int64()))

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [(str(2**60),), ("7",)]
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
