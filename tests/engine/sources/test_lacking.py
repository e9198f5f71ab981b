"""Files that lack a column of what messages carry, where others of their ledger have it: null there says nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

Rows = Sequence[Mapping[str, Any]]
WITH: Rows = ({"message_id": "1", "body": "x"}, {"message_id": "2", "body": None})
WITHOUT: Rows = ({"message_id": "3"}, {"message_id": "4"})
HASH = {"payload_hash": "sha2(body, 256)"}


def _jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _csv(path: Path, rows: Rows) -> None:
    lines = [",".join(rows[0]), *(",".join(value or "" for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def _table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([(name, pa.string()) for name in rows[0]])
    )


def _parquet(path: Path, rows: Rows) -> None:
    parquet.write_table(_table(rows), path)


def _orc(path: Path, rows: Rows) -> None:
    orc.write_table(_table(rows), str(path))


@pytest.mark.parametrize(
    ("form", "write"), [("jsonl", _jsonl), ("csv", _csv), ("parquet", _parquet), ("orc", _orc)]
)
def test_rows_of_a_file_without_the_column_say_so(
    spark: SparkSession, tmp_path: Path, form: str, write: Callable[[Path, Rows], None]
) -> None:
    """Whatever the format; in a file that has the column, null is a value, and nothing is said."""
    write(tmp_path / "a file.dat", WITH)
    write(tmp_path / "b.dat", WITHOUT)
    source = {"kind": "files", "format": form, "path": "*.dat"}

    found = evidence_of(spark, tmp_path, "delivered", source=source, columns=HASH)

    lacks = "lacks: payload_hash"
    assert rows_of(found, "message_id", "content") == [("1", None), ("2", None), ("3", lacks), ("4", lacks)]
    assert "content" in found.present
    assert any("2 rows are in files without payload_hash" in note for note in found.coverage.notes)
    assert found.coverage.unknown == ()


def test_a_json_file_has_a_key_that_any_of_its_lines_has(spark: SparkSession, tmp_path: Path) -> None:
    """Even where it is null there, or written in capital letters: encoders leave out what is null."""
    _jsonl(tmp_path / "a.jsonl", ({"message_id": "1", "key_hash": "k"},))
    _jsonl(tmp_path / "b.jsonl", ({"message_id": "2", "KEY_HASH": None}, {"message_id": "3"}))

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "content") == [(None,)] * 3
    assert "content" not in found.present


def test_what_no_file_has_is_lacking_in_none(spark: SparkSession, tmp_path: Path) -> None:
    """A column that the source does not have at all is not judged; words of an expression are no columns."""
    _jsonl(tmp_path / "a.jsonl", ({"message_id": "1", "note": "string"},))
    _jsonl(tmp_path / "b.jsonl", ({"message_id": "2"},))
    columns = {"payload_hash": "sha2(cast(message_id as string), 256)"}

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"), columns=columns)

    assert found.present == {"message_id", "payload_hash"}


def test_rows_of_unknown_content_are_counted_by_column(spark: SparkSession, tmp_path: Path) -> None:
    """By the row, by the contract, by an outcome that knows nothing, and of times that the client sets."""
    rows = [
        {"message_id": "1", "payload_hash": None, "key_hash": "k", "outcome": "acked", "content": "unknown"},
        {"message_id": "2", "payload_hash": None, "key_hash": None, "outcome": "acked"},
        {"message_id": "3", "payload_hash": None, "key_hash": "k", "outcome": "failed"},
        {
            "message_id": "4",
            "payload_hash": "x",
            "key_hash": None,
            "outcome": "acked",
            "record_timestamp": None,
        },
    ]
    _jsonl(tmp_path / "a.jsonl", rows)

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.jsonl"), unknown=["key_hash"])

    assert found.coverage.unknown == (("payload_hash", 2), ("key_hash", 2), ("record_timestamp", 4))


def test_a_note_says_what_an_empty_text_of_csv_would_be(spark: SparkSession, tmp_path: Path) -> None:
    """Many programs write null and an empty text alike; a value that is made of two columns is neither's."""
    _csv(tmp_path / "a.csv", WITH)
    columns = HASH | {"key_hash": "sha2(concat(message_id, body), 256)"}
    source = {"kind": "files", "format": "csv", "path": "a.csv"}

    found = evidence_of(spark, tmp_path, "delivered", source=source, columns=columns)

    assert found.empty == {"payload_hash": hashlib.sha256(b"").hexdigest()}
    _jsonl(tmp_path / "a.jsonl", WITH)
    assert evidence_of(spark, tmp_path, "read", source=jsonl("a.jsonl"), columns=HASH).empty == {}
