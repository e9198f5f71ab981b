"""Files that a sink connector named by their offsets: as positions, and as output."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, rows_of
from tests.engine.sources.checkpoints import set_time

from tieout.engine.evidence import Evidence
from tieout.engine.reading import read_evidence
from tieout.errors import SourceError
from tieout.model import Identity, Ledger

_WRITTEN = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two files of one partition, one of another, and one that was being written."""
    folder = tmp_path / "out"
    _write(folder / "topics" / "orders+0+0000000000+0000000002.json", 0, 1, 2)
    _write(folder / "topics" / "orders+0+0000000003+0000000005.json", 3, 5)
    _write(folder / "topics" / "orders+1+0000000000+0000000000.json", 0)
    _write(folder / "+tmp" / "orders" / "6c2e_tmp.json", 6)
    return folder


def _write(path: Path, *offsets: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps({"message_id": f"m{offset}", "offset": -offset}) + "\n" for offset in offsets)
    )
    set_time(path, _WRITTEN)


def _evidence(spark: SparkSession, out: Path, ledger: str = "committed", **source: Any) -> Evidence:
    columns = source.pop("columns", {})
    known = {"kind": "connect_files", "path": "out", "format": "jsonl", "taken_at": "now"}
    return evidence_of(spark, out.parent, ledger, source={**known, **source}, columns=columns)


def test_each_name_is_a_range_of_positions(spark: SparkSession, out: Path) -> None:
    """From its first offset to behind its last, at the time of the file; none of a file that was being written."""
    found = _evidence(spark, out)

    assert rows_of(found, "consumer_group", "topic", "partition", "first_offset", "committed_offset") == [
        ("loader", "orders", 0, 0, 3),
        ("loader", "orders", 0, 3, 6),
        ("loader", "orders", 1, 0, 1),
    ]
    assert {row[0].astimezone(UTC) for row in rows_of(found, "committed_at")} == {_WRITTEN}
    assert found.coverage.complete_until == NOW
    assert found.coverage.is_sound
    assert found.coverage.notes == ("1 files below +tmp were being written, and are no output",)
    assert [line.partition("  ")[2] for line in found.coverage.digests] == ["names of 3 files in out"]


def test_a_copy_has_no_times(spark: SparkSession, out: Path) -> None:
    """It is complete until it was taken."""
    found = _evidence(spark, out, taken_at="2026-11-20T11:00:00Z")

    assert {row[0] for row in rows_of(found, "committed_at")} == {None}
    assert found.coverage.complete_until == datetime(2026, 11, 20, 11, tzinfo=UTC)


def test_a_row_has_an_offset_where_its_file_has_one_for_each(spark: SparkSession, out: Path) -> None:
    """In the order of the rows; a file with fewer rows than offsets gives none."""
    found = _evidence(spark, out, "delivered")

    assert rows_of(found, "message_id", "topic", "partition", "offset", "consumer_group") == [
        ("m0", "orders", 0, 0, "loader"),
        ("m0", "orders", 1, 0, "loader"),
        ("m1", "orders", 0, 1, "loader"),
        ("m2", "orders", 0, 2, "loader"),
        ("m3", "orders", 0, None, "loader"),
        ("m5", "orders", 0, None, "loader"),
    ]
    assert found.coverage.is_sound


@pytest.mark.parametrize("columns", [{}, {"offset": "0 - cast(value_offset as bigint)"}])
def test_by_position_a_row_without_an_offset_is_no_message(
    spark: SparkSession, out: Path, columns: dict[str, str]
) -> None:
    """Whatever it is the output of is not lost; where the row itself has its offset, that of the name is not needed."""
    source = {"kind": "connect_files", "path": "out", "format": "jsonl", "taken_at": "now"}
    contract = contract_of(out.parent, {"delivered": {"source": source, "columns": columns}})
    by_position = contract.model_copy(update={"identity": Identity.POSITION})

    coverage = read_evidence(spark, by_position, WINDOW, NOW)[Ledger.DELIVERED].coverage

    assert coverage.unparsed == (0 if columns else 2)
    assert coverage.is_sound == bool(columns)
    text = "out/topics/orders+0+0000000003+0000000005.json:1: expected 3 rows, as many as the file's name has offsets"
    assert any(note.startswith(text) for note in coverage.notes) == (not columns), coverage.notes


def test_an_unreadable_line_is_a_row_of_its_file(spark: SparkSession, out: Path) -> None:
    """It keeps its offset, and those behind it theirs."""
    path = out / "topics" / "orders+0+0000000000+0000000002.json"
    path.write_text('{"message_id": "m0"}\n{"message_id": \n{"message_id": "m2"}\n')

    found = _evidence(spark, out, "delivered")

    assert [
        row
        for row in rows_of(found, "message_id", "offset", "partition")
        if row[2] == 0 and row[1] is not None
    ] == [
        ("m0", 0, 0),
        ("m2", 2, 0),
    ]
    assert found.coverage.unparsed == 1


def test_a_file_s_own_columns_keep_another_name(spark: SparkSession, out: Path) -> None:
    """A contract can take the offset from the row, and the time from the file."""
    mapped = {"offset": "cast(value_offset as bigint) * -1", "processed_at": "file_modified_at"}
    found = _evidence(spark, out, "delivered", columns=mapped)

    assert ("m5", 5) in rows_of(found, "message_id", "offset")
    assert {row[0].astimezone(UTC) for row in rows_of(found, "processed_at")} == {_WRITTEN}


def test_another_pattern_is_the_contract_s(spark: SparkSession, tmp_path: Path) -> None:
    """Such as that of an application that names its files otherwise."""
    _write(tmp_path / "out" / "orders_0_5-9.json", 5)
    pattern = r"(?P<topic>.+)_(?P<partition>\d+)_(?P<first>\d+)-(?P<last>\d+)\.json"

    found = _evidence(spark, tmp_path / "out", pattern=pattern)

    assert rows_of(found, "topic", "partition", "first_offset", "committed_offset") == [("orders", 0, 5, 10)]


def _strange_name(out: Path) -> str:
    _write(out / "topics" / "notes.txt", 1)
    return "out/topics/notes.txt: expected a name of the pattern"


def _pipe(out: Path) -> str:
    os.mkfifo(out / "topics" / "orders+1+1+2.json")
    return "out/topics/orders+1+1+2.json: cannot be read: expected a file, found a named pipe"


def _link_out(out: Path) -> str:
    _write(out.parent / "elsewhere.json", 1)
    (out / "topics" / "orders+1+1+1.json").symlink_to(out.parent / "elsewhere.json")
    return "out/topics/orders+1+1+1.json: a link out of the folder out"


def _linked_folder(out: Path) -> str:
    (out / "linked").symlink_to(out / "topics", target_is_directory=True)
    return "out/linked: cannot be read: expected a file, found a folder"


@pytest.mark.parametrize("ledger", ["committed", "delivered"])
def test_what_does_not_fit_keeps_the_ledger_from_covering(
    spark: SparkSession, out: Path, ledger: str
) -> None:
    """Another name, a pipe, a link; each is named."""
    expected_notes = [damage(out) for damage in (_strange_name, _pipe, _link_out, _linked_folder)]

    found = _evidence(spark, out, ledger).coverage

    assert not found.is_sound
    assert found.unparsed == len(expected_notes)
    missing = [text for text in expected_notes if not any(note.startswith(text) for note in found.notes)]
    assert missing == [], found.notes


def test_files_that_a_partitioner_divided_are_no_ranges(spark: SparkSession, out: Path) -> None:
    """Their names overlap in different folders; their rows are output all the same."""
    _write(out / "other" / "orders+0+0000000001+0000000004.json", 4)

    positions, output = _evidence(spark, out), _evidence(spark, out, "delivered")

    assert not positions.coverage.is_sound
    assert rows_of(positions, "partition", "committed_offset") == [(1, 1)]
    assert any("its offsets overlap those of" in note for note in positions.coverage.notes)
    assert output.coverage.is_sound
    assert ("m4", None) in rows_of(output, "message_id", "offset")


def test_a_second_file_of_the_same_offsets_is_no_step_back(spark: SparkSession, out: Path) -> None:
    """A copy or a checksum beside a file is no position; that the sink wrote it twice it does not show."""
    first = "out/topics/orders+0+0000000000+0000000002.json"
    endings = (".bak", ".gz", ".md5")
    for ending in endings:
        (out.parent / f"{first}{ending}").write_bytes(b"1b69")

    found = _evidence(spark, out)

    assert rows_of(found, "partition", "first_offset", "committed_offset") == [
        (0, 0, 3),
        (0, 3, 6),
        (1, 0, 1),
    ]
    assert (found.coverage.unparsed, found.coverage.is_sound) == (len(endings), False)
    expected = [f"{first}{ending}: its name has the offsets of {first}:" for ending in endings]
    assert [note[: len(text)] for note, text in zip(found.coverage.notes, expected, strict=False)] == expected


def test_no_folder_and_no_format(spark: SparkSession, tmp_path: Path) -> None:
    """The one is missing evidence, the other an error of the contract."""
    found = _evidence(spark, tmp_path / "out")

    assert not found.coverage.is_sound
    assert found.coverage.notes[0] == "out: no such folder"
    with pytest.raises(SourceError, match=r"source.format: expected the format"):
        _evidence(spark, tmp_path / "out", "delivered", format=None)
    with pytest.raises(SourceError, match="is evidence for"):
        _evidence(spark, tmp_path / "out", "produced")


def test_a_file_without_a_byte_is_a_fault_of_the_output(spark: SparkSession, out: Path) -> None:
    """Its name says that rows were in it: cut to nothing, what they doubled was gone without a word."""
    (out / "topics" / "orders+0+0000000003+0000000005.json").write_bytes(b"")

    found = _evidence(spark, out, "delivered")

    assert found.coverage.unparsed == 1
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[0].endswith(
        ": expected the rows of the offsets in its name, found no byte: cut off"
    )
