"""JSON lines: ids stay what they were, and every line that cannot be used is counted and named."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl, rows_of


def test_ids_are_not_changed_by_guessing_types(spark: SparkSession, tmp_path: Path) -> None:
    """A quoted id, a number, a number with leading zeros in quotes and a huge number are the texts they were."""
    (tmp_path / "p.jsonl").write_text(
        '{"id": "17"}\n{"id": 17}\n{"id": "00123"}\n{"id": 12345678901234567890123}\n{"id": 17.0}\n'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns={"message_id": "id"})

    ids = [row[0] for row in rows_of(found, "message_id")]
    assert sorted(ids) == sorted(["17", "17", "00123", "12345678901234567890123", "17.0"])
    assert found.present == {"message_id"}
    assert found.rows.columns[:3] == ["producer_id", "producer_session", "sequence"]


def test_bad_lines_are_counted_and_named(spark: SparkSession, tmp_path: Path) -> None:
    """A malformed line, two objects on one line, a wrong type and a torn last line are named with file and line."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "offset": 1}\n'
        "\n"
        "not json\n"
        '{"message_id": "2", "offset": 2}{"message_id": "3", "offset": 3}\n'
        '{"message_id": "4", "offset": "four"}\n'
        '{"message_id": "5", "offset": 5.5}\n'
        '[{"message_id": "6"}]\n'
        '{"message_id": "7", "offs'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "offset") == [("1", 1)]
    assert found.coverage.unparsed == 6
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[:6] == (
        "a.jsonl:3: the line is not one JSON object",
        "a.jsonl:4: the line is not one JSON object",
        "a.jsonl:5: offset: expected a whole number",
        "a.jsonl:6: offset: expected a whole number",
        "a.jsonl:7: the line is not one JSON object",
        "1 more rows could not be read",
    )


def test_a_key_may_be_spelled_otherwise_on_other_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Capital and small letters make no other column, as in CSV: what failed is not read as without outcome."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "outcome": "ok"}\n'
        '{"message_id": "2", "Outcome": "failed", "partition": 7}\n'
        '{"MESSAGE_ID": "3", "OUTCOME": "failed", "Partition": "8"}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "partition", "outcome") == [
        ("1", None, "ok"),
        ("2", 7, "failed"),
        ("3", 8, "failed"),
    ]
    assert found.coverage.unparsed == 0
    assert found.present == {"message_id", "partition", "outcome"}


def test_a_key_in_two_spellings_on_one_line_is_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Which of both counts, nobody knows; keys within a value are the value's own."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "outcome": "ok", "headers": {"a": 1, "A": 2}}\n'
        '{"message_id": "2", "outcome": "ok", "Outcome": "failed"}\n'
        '{"message_id": "3", "outcome": null, "Outcome": "failed"}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "outcome") == [("1", "ok"), ("3", "failed")]
    assert found.coverage.unparsed == 1
    assert found.coverage.notes[0] == "a.jsonl:2: a key stands twice: Outcome, outcome"


def test_a_file_with_a_key_that_stands_twice_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """One damaged object keeps its file from being read, and no other."""
    (tmp_path / "a.jsonl").write_text('{"message_id": "1"}\n{"message_id": "2", "message_id": "3"}\n')
    (tmp_path / "b.jsonl").write_text('{"message_id": "4"}\n')

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id") == [("4",)]
    assert found.coverage.unparsed == 1
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[0] == "a.jsonl: a key stands twice in one of its objects"


def test_a_whole_number_may_be_a_float_however_large(spark: SparkSession, tmp_path: Path) -> None:
    """Pandas writes 12345678.0 where a column has nulls; above 2^53 that need not be the number that was meant."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "offset": 12345678.0, "processed_at": 1795168801000.0}\n'
        '{"message_id": "2", "offset": 9007199254740994.0}\n'
        '{"message_id": "3", "offset": 12345678.5}\n'
        '{"message_id": "4", "offset": 17.0}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "offset") == [("1", 12345678), ("4", 17)]
    assert found.coverage.undated == 1
    assert found.coverage.unset == 0
    assert found.coverage.unparsed == 2
