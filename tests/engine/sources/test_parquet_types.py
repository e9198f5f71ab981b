"""Parquet: doubles as ids, and columns of types that Spark refuses."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of

from tieout.errors import SourceError

_IDS = [uuid.UUID(int=2**100 + n) for n in range(2)]
_REFUSED = {
    "UUID": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes for one in _IDS], pa.binary(16))),
    "FLOAT16": pa.array([1.0, 2.0], pa.float32()).cast(pa.float16()),
    "TIME(NANOS": pa.array([1, 2], pa.time64("ns")),
    "TIME(MICROS": pa.array([1, 2], pa.time64("us")),
    "TIME(MILLIS": pa.array([1, 2], pa.time32("ms")),
    "group": pa.array([{"of_day": 1}, None], pa.struct([("of_day", pa.time64("us"))])),
    "DECIMAL(50": pa.array([Decimal(10) ** 40, None], pa.decimal256(50, 0)),
}


def _evidence(spark: SparkSession, folder: Path, **spec: Any) -> Any:
    source = {"kind": "files", "format": "parquet", "path": "*.parquet"}
    return evidence_of(spark, folder, "delivered", source=source, **spec)


def test_a_file_that_spark_cannot_unpack_is_not_called_corrupt(spark: SparkSession, tmp_path: Path) -> None:
    """Spark comes without what unpacks Brotli, which other programs write."""
    pq.write_table(pa.table({"message_id": ["a"]}), tmp_path / "a.parquet", compression="brotli")

    found = _evidence(spark, tmp_path)

    assert not found.coverage.is_within_tolerance
    assert "a.parquet: it is packed with Brotli" in found.coverage.notes[0]


@pytest.mark.parametrize("kind", [*_REFUSED])
def test_a_type_that_spark_refuses_costs_nothing_unless_it_is_used(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """The file is read without the column, beside one that has it as text; used, it is named with its type."""
    pq.write_table(pa.table({"message_id": ["a", "b"], "t": _REFUSED[kind]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"message_id": ["c"], "t": ["x"]}), tmp_path / "b.parquet")

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("a",), ("b",), ("c",)]
    assert found.coverage.unparsed == 0
    if kind == "UUID":
        used = _evidence(
            spark, tmp_path, columns={"payload_hash": "t", "message_id": "concat(message_id, '/', t)"}
        )
        assert rows_of(used, "payload_hash") == [(str(_IDS[0]),), (str(_IDS[1]),), ("x",)]
        assert rows_of(used, "message_id")[0] == (f"a/{_IDS[0]}",)
    else:
        with pytest.raises(
            SourceError, match=rf"a\.parquet: .*found t of the type .*{kind.split('(', 1)[0]}"
        ):
            _evidence(spark, tmp_path, columns={"payload_hash": "concat(t, '')"})


@pytest.mark.parametrize(("kind", "limit"), [(pa.float64(), 2**53), (pa.float32(), 2**24)])
def test_a_double_is_the_whole_number_that_it_is(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, limit: int
) -> None:
    """From 2^53 on, or 2^24, it may be another one: the row is unreadable. NaN is what pandas has for no value."""
    values = [101.0, -7.0, 0.5, limit - 1, limit, -limit, limit * 4.0, float("inf"), float("nan"), None]
    pq.write_table(pa.table({"id": pa.array(values, kind)}), tmp_path / "a.parquet")

    found = _evidence(spark, tmp_path, columns={"message_id": "id", "topic": "'t'"})

    ids = [row[0] for row in rows_of(found, "message_id")]
    assert sorted(one for one in ids if one is not None) == sorted(["101", "-7", "0.5", str(limit - 1)])
    assert ids.count(None) == 2
    assert found.coverage.unparsed == 4
    assert any("a floating-point number below 2^" in note for note in found.coverage.notes)
    assert "message_id: its source has floating-point numbers; 101.0 is read as 101" in found.coverage.notes


def test_a_decimal_keeps_its_places(spark: SparkSession, tmp_path: Path) -> None:
    """It is the text that its type makes of it: 12.00 with two places."""
    values = [Decimal("12.00"), Decimal(10) ** 30]
    pq.write_table(pa.table({"message_id": pa.array(values, pa.decimal128(38, 2))}), tmp_path / "a.parquet")

    found = _evidence(spark, tmp_path)

    assert sorted(row[0] for row in rows_of(found, "message_id")) == ["1" + "0" * 30 + ".00", "12.00"]
