"""What whoever writes a file of evidence may put into it to end every run, or to hide a row: it is that row's fault."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, faults_of, jsonl, rows_of

from tieout.engine.evidence import Evidence

_CSV = {"kind": "files", "format": "csv", "path": "p.csv"}


def _read_json(spark: SparkSession, folder: Path, *lines: str) -> Evidence:
    (folder / "p.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return evidence_of(spark, folder, "produced", source=jsonl("p.jsonl"))


def _check_one_is_faulty(found: Evidence, expected_note: str) -> None:
    assert (found.coverage.rows, found.coverage.unparsed) == (1, 1)
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[0] == expected_note


def test_many_levels_are_one_lines_fault(spark: SparkSession, tmp_path: Path) -> None:
    """Some hundred levels would overflow the stack of Python, or of Java, and end the session."""
    deep = [
        f'{{"message_id": "{levels} {first}", "x": {first * levels}1{last * levels}}}'
        for levels in (65, 200, 900, 20_000)
        for first, last in (('{"a":', "}"), ("[", "]"))
    ]
    lines = ['{"message_id": "a"}', *deep]

    found = _read_json(spark, tmp_path, *lines)
    faults = {
        text: fault for _, text, fault in faults_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"))
    }

    expected = "expected objects and arrays of at most 64 levels, found more"
    assert faults == dict.fromkeys(deep, expected)
    assert rows_of(found, "message_id") == [("a",)]
    assert found.coverage.unparsed == len(deep)
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[0] == f"p.jsonl:2: {expected}"


def test_brackets_that_are_not_levels_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Many objects beside each other, and brackets in a text."""
    beside = {"message_id": "a", "x": [{"y": [1]}] * 200}
    text = {"message_id": "b", "x": '{"[' * 100 + '\\"{'}

    found = _read_json(spark, tmp_path, json.dumps(beside), json.dumps({**text, "x": [text["x"]]}))

    assert (found.coverage.rows, found.coverage.unparsed) == (2, 0)


def test_half_a_character_is_a_fault(spark: SparkSession, tmp_path: Path) -> None:
    """Java writes any half as a question mark: ids that differ in halves would be one, and a loss of one unseen."""
    halves = ["\\ud800", "\\uDFFF", "\\\\\\ud801", "\\ud83dx\\ude00"]

    found = _read_json(
        spark, tmp_path, '{"message_id": "a"}', *(f'{{"message_id": "b{half}"}}' for half in halves)
    )

    expected = "half of a surrogate pair is no character: two such texts would be read as one"
    assert found.coverage.notes[: len(halves)] == tuple(f"p.jsonl:{line}: {expected}" for line in range(2, 6))
    assert (found.coverage.rows, found.coverage.unparsed) == (1, len(halves))
    assert not found.coverage.is_within_tolerance


def test_a_whole_character_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """A pair is one character, and behind an escaped backslash stands no escape."""
    lines = [f'{{"message_id": "{whole}"}}' for whole in ("\\ud83d\\ude00", "x\\uD83D\\uDE00", "\\\\ud800")]

    found = _read_json(spark, tmp_path, *lines)

    assert set(rows_of(found, "message_id")) == {(json.loads(line)["message_id"],) for line in lines}
    assert found.coverage.unparsed == 0


def _spellings(count: int) -> Iterator[str]:
    letters = [(one, one.upper()) if one.isalpha() else (one,) for one in "message_id"]
    return ("".join(parts) for parts in itertools.islice(itertools.product(*letters), count))


def test_spellings_of_one_key_are_bounded(spark: SparkSession, tmp_path: Path) -> None:
    """Each is a column of Spark's: some hundred took all memory. What is spelled otherwise is a fault, not left out."""
    lines = [f'{{"{name}": "m{place}"}}' for place, name in enumerate(_spellings(200))]

    found = _read_json(spark, tmp_path, *lines)

    assert (found.coverage.rows, found.coverage.unparsed) == (8, 192)
    assert found.coverage.notes[0].endswith("expected a key in at most 8 spellings, found more")


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet", "orc"])
def test_columns_named_as_the_readers_own_are_not_read(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """Such a column ended the run, or said in a row's stead how many faults it is."""
    names = ("_tieout_file", "_tieout_text", "_tieout_fault", "_tieout_count", "_tieout_lacks", "_TIEOUT_row")
    _write(tmp_path / f"p.{file_format}", {"message_id": ["a"], **{name: ["0"] for name in names}})

    source = {"kind": "files", "format": file_format, "path": f"p.{file_format}"}
    found = evidence_of(spark, tmp_path, "produced", source=source)

    assert rows_of(found, "message_id") == [("a",)]
    assert found.coverage.unparsed == 0


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_a_column_named_as_sparks_own_is_no_place(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """Spark tells the place of a row in a column `_metadata`, and a file may have one of that name."""
    _write(tmp_path / f"p.{file_format}", {"message_id": ["a"], "_metadata": ["x"]})

    source = {"kind": "files", "format": file_format, "path": f"p.{file_format}"}
    found = evidence_of(spark, tmp_path, "produced", source=source)

    assert rows_of(found, "message_id") == [("a",)]


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    """Write one row as each format has it."""
    names, values = list(columns), [column[0] for column in columns.values()]
    if path.suffix == ".jsonl":
        path.write_text(json.dumps(dict(zip(names, values, strict=True))) + "\n")
    elif path.suffix == ".csv":
        path.write_text(f"{','.join(names)}\n{','.join(values)}\n")
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        pyarrow.orc.write_table(pa.table(columns), path)


@pytest.mark.parametrize("quoted", [False, True])
def test_a_csv_line_of_very_many_values(spark: SparkSession, tmp_path: Path, quoted: bool) -> None:
    """Spark's parser ends the job beyond 20,480 values; within quotes separators are none."""
    value = '"' + "," * 30_000 + '"' if quoted else "," * 30_000
    (tmp_path / "p.csv").write_text(f"message_id,x\na,\nb,{value}\n")

    found = evidence_of(spark, tmp_path, "produced", source=_CSV)

    if quoted:
        assert (found.coverage.rows, found.coverage.unparsed) == (2, 0)
    else:
        _check_one_is_faulty(found, "p.csv:3: expected 2 columns, found more than 20000")


def test_a_header_that_tells_no_columns_is_its_files_fault(spark: SparkSession, tmp_path: Path) -> None:
    """It ended the run, with all other files of the ledger."""
    headers = {
        "long": ("x" * 200_000, "expected a header of columns' names, found one that is too long for any"),
        "many": (
            ",".join(f"c{n}" for n in range(5000)),
            "expected a header of at most 4096 columns, found more",
        ),
        "none": (",,", "expected the columns' names in the first line, found none"),
        "twice": (
            "message_id,x,X",
            "expected a name of its own for each column of its header, found X twice",
        ),
    }
    (tmp_path / "a.csv").write_text("message_id\na\n")
    for name, (header, _) in headers.items():
        (tmp_path / f"{name}.csv").write_text(f"{header}\nb,,\n")

    found = evidence_of(spark, tmp_path, "produced", source={**_CSV, "path": "*.csv"})

    assert (found.coverage.rows, found.coverage.unparsed) == (1, len(headers))
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[: len(headers)] == tuple(
        f"{name}.csv: {reason}" for name, (_, reason) in headers.items()
    )


def test_what_makes_a_parquet_file_unreadable_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    """Each was called corrupt, or its columns keys of an object."""
    _write(tmp_path / "a.parquet", {"message_id": ["a"]})
    _write(tmp_path / "b.parquet", {"message_id": ["b"]})
    (tmp_path / ".b.parquet.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + bytes(16))
    _write(tmp_path / "c.parquet", {"message_id": ["c"], "Message_Id": ["d"]})
    (tmp_path / "d.txt").write_text("what the files hold")

    found = evidence_of(
        spark, tmp_path, "produced", source={"kind": "files", "format": "parquet", "path": "*"}
    )

    assert rows_of(found, "message_id") == [("a",)]
    assert found.coverage.unparsed == 3
    for note, (name, words) in zip(
        found.coverage.notes[:3],
        [
            ("b.parquet", "its checksum in .b.parquet.crc"),
            ("c.parquet", "the same but for capital letters"),
            ("d.txt", "no Parquet file"),
        ],
        strict=True,
    ):
        assert note.startswith(f"{name}: ")
        assert words in note


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_what_is_no_number_in_a_file_whose_column_has_another_type_is_a_fault(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """One file more in the folder ended the run, for Spark reads both as one type or not at all."""
    _write(tmp_path / f"a.{file_format}", {"message_id": ["a"], "offset": [1]})
    _write(tmp_path / f"b.{file_format}", {"message_id": ["b"], "Offset": ["x"]})
    _write(tmp_path / f"c.{file_format}", {"message_id": ["c"], "offset": [3]})

    source = {"kind": "files", "format": file_format, "path": f"*.{file_format}"}
    found = evidence_of(spark, tmp_path, "produced", source=source)

    assert rows_of(found, "message_id", "offset") == [("a", 1), ("c", 3)]
    assert found.coverage.notes[0] == f"b.{file_format}: offset: expected a whole number below 2^62, found x"
    assert not found.coverage.is_within_tolerance


@pytest.mark.parametrize(
    ("file_format", "is_remote"), [("parquet", False), ("parquet", True), ("orc", False)]
)
def test_more_rows_than_a_files_bytes_can_tell_are_not_read(
    spark: SparkSession, tmp_path: Path, file_format: str, is_remote: bool
) -> None:
    """Kilobytes of nulls would be a run of hours; Spark is not asked to read them, wherever the file lies."""
    _write(tmp_path / f"a.{file_format}", {"message_id": ["a"]})
    table = pa.table({"message_id": pa.nulls(3_000_000, pa.string())})
    (pq.write_table if file_format == "parquet" else pyarrow.orc.write_table)(
        table, tmp_path / f"b.{file_format}"
    )
    folder = f"file://{tmp_path}" if is_remote else str(tmp_path)

    source = {"kind": "files", "format": file_format, "path": f"{folder}/*.{file_format}"}
    found = evidence_of(spark, tmp_path, "produced", source=source)

    assert (found.coverage.rows, found.coverage.unparsed) == (1, 1)
    assert "expected at most 100 rows a byte, found 3000000 rows in " in found.coverage.notes[0]


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_a_type_of_very_many_levels_is_its_files_fault(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """It overflowed the stack of a thread for which Spark waited, and the run did not end; or no page was looked at."""
    _write(tmp_path / f"a.{file_format}", {"message_id": ["a"]})
    for levels in (150, 1500):
        deep = pa.array([1])
        for _ in range(levels):
            deep = pa.StructArray.from_arrays([deep], names=["a"])
        table = pa.table({"message_id": ["b"], "x": deep})
        write = pq.write_table if file_format == "parquet" else pyarrow.orc.write_table
        write(table, tmp_path / f"{levels}.{file_format}")

    source = {"kind": "files", "format": file_format, "path": f"*.{file_format}"}
    found = evidence_of(spark, tmp_path, "produced", source=source)

    assert (found.coverage.rows, found.coverage.unparsed) == (1, 2)
    assert [note.split(": ")[0] for note in found.coverage.notes[:2]] == [
        f"150.{file_format}",
        f"1500.{file_format}",
    ]


def test_a_name_that_is_no_text_is_its_files_fault(spark: SparkSession, tmp_path: Path) -> None:
    """Java is handed no such path, and the run ended; names with any other character are read."""
    names = [b"a\n.jsonl", b"b%20c.jsonl", b"d\\*.jsonl", b"{e,f}?.jsonl", b" g.jsonl"]
    for number, name in enumerate([*names, b"z\xff.jsonl"]):
        with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:  # noqa: PTH118, PTH123 - a name in bytes
            file.write(f'{{"message_id": "{number}"}}\n')

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"))

    assert (found.coverage.rows, found.coverage.unparsed) == (len(names), 1), found.coverage.notes
    assert found.coverage.notes[0] == "z\\udcff.jsonl: expected a path in UTF-8, found other bytes; rename it"
