"""Files of every format: present or absent, whole or broken, each told apart and digested."""

from __future__ import annotations

import bz2
import gzip
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql import functions as F
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

from tieout.engine.session import set_to
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.listing import of_these_files
from tieout.errors import SourceError, SourceUnreachableError


def _csv(path: str, **options: Any) -> dict[str, Any]:
    return {"kind": "files", "format": "csv", "path": path, "options": options}


def _parquet(path: str) -> dict[str, Any]:
    return {"kind": "files", "format": "parquet", "path": path}


def test_the_same_file_twice_is_no_evidence(spark: SparkSession, tmp_path: Path) -> None:
    """Evidence that was handed over twice would double every effect; files without rows double nothing."""
    row = '{"message_id":"1","processed_at":"2026-11-20T10:05:00Z","kind":"%s"}\n'
    texts = {"a": row % "in", "b": row % "in", "c": row % "out", "d": row % "out", "e": "", "f": ""}
    for name, text in texts.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    spec: dict[str, Any] = {"source": jsonl("*.jsonl"), "where": "kind = 'in'", "coverage": "declared"}

    found = evidence_of(spark, tmp_path, "delivered", **spec).coverage
    harmless = evidence_of(spark, tmp_path, "dead_letters", **spec, columns={"at": "processed_at"}).coverage

    assert found.rows == 2
    assert found.doubled == ("b.jsonl holds what a.jsonl holds",)
    assert not found.is_sound
    assert harmless.is_sound


def test_a_packed_copy_is_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    """`gzip --keep` leaves the file beside its archive; archives of one text differ by the time that they were made."""
    pairs = [("a.jsonl", "a.jsonl.gz"), ("b.jsonl.gz", "c.jsonl.gz"), ("d.jsonl", "d.jsonl.bz2")]
    for number, pair in enumerate(pairs):
        text = b'{"message_id":"%d","processed_at":"2026-11-20T10:05:00Z"}\n' % number
        for time, name in enumerate(pair):
            if name.endswith(".gz"):
                (tmp_path / name).write_bytes(gzip.compress(text, mtime=time))
            else:
                (tmp_path / name).write_bytes(bz2.compress(text) if name.endswith(".bz2") else text)

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*"), coverage="declared").coverage

    assert (found.rows, set(found.doubled)) == (
        6,
        {f"{copy} holds what {name} holds" for name, copy in pairs},
    )


def _packed(name: str, text: str) -> bytes:
    return gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()


def test_a_log_with_the_lines_of_its_rotated_copy_is_no_evidence(spark: SparkSession, tmp_path: Path) -> None:
    """`logrotate` copies a log before it empties it: what is collected in between has every line twice.

    So have a download and a later one, and exports of which each has the rows of the one before.
    """
    names = [
        *("a.jsonl.1", "b.jsonl.2.gz", "c.jsonl.gz", "d.jsonl-20261120", "e.jsonl.old", "f (1).jsonl"),
        *("g-10.jsonl", "day=10/h.jsonl"),
    ]
    wholes = {name: f"day=11/{name[7:]}" if "/" in name else f"{name[0]}.jsonl" for name in names}
    for place, (name, whole) in enumerate(wholes.items()):
        lines = [
            f'{{"message_id":"{name} {number}","processed_at":"2026-11-20T10:05:0{number}Z"}}\n'
            for number in range(4)
        ]
        for file, text in {whole: "".join(lines), name: "".join(lines[:2])}.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(_packed(file, text))
        (tmp_path / f"other-{name[0]}.jsonl.1").write_text("".join(lines[:1]))
        (tmp_path / f"part-{place}-0.jsonl").write_text("".join(lines[1:3]))
        (tmp_path / f"part-{place}-1.jsonl").write_text("".join(lines[1:2]))

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*"), coverage="declared").coverage

    assert set(found.doubled) == {
        f"{whole} begins with the lines of {name}" for name, whole in wholes.items()
    }
    assert not found.is_sound


def test_logs_that_share_a_header_or_first_bytes_are_no_copies(spark: SparkSession, tmp_path: Path) -> None:
    """A log that was emptied has its header alone, and every file of a log begins like the others."""
    header, row = "message_id,processed_at\n", "{},2026-11-20T10:05:00Z\n"
    (tmp_path / "a.csv").write_text(header)
    (tmp_path / "a.csv.1").write_text(header + row.format(1) + row.format(2))
    (tmp_path / "a.csv.2").write_text(header + row.format(1) + row.format(3))

    source = {"kind": "files", "format": "csv", "path": "a.csv*"}
    found = evidence_of(spark, tmp_path, "delivered", source=source, coverage="declared").coverage

    assert (found.rows, found.doubled) == (4, ())


@pytest.mark.parametrize(("path", "is_meant"), [("out", False), ("out/*", False), ("out/*.tmp", True)])
def test_unfinished_files_are_faults_unless_their_ending_is_named(
    spark: SparkSession, tmp_path: Path, path: str, *, is_meant: bool
) -> None:
    """What is not yet, or no longer, in the output must not count, nor count twice; an empty file has nothing."""
    row = '{"message_id":"1","processed_at":"2026-11-20T10:05:00Z"}\n'
    (tmp_path / "out").mkdir()
    for name in ("a.jsonl", "a.jsonl.tmp", "a.jsonl~"):
        (tmp_path / "out" / name).write_text(row if name != "a.jsonl" else row.replace('"1"', '"2"'))
    (tmp_path / "out" / "b.tmp").touch()

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl(path), coverage="declared").coverage

    assert found.rows == 1
    assert found.is_sound == is_meant
    faulty = [] if is_meant else ["out/a.jsonl.tmp", "out/a.jsonl~"]
    assert [note.split(":")[0] for note in found.notes] == faulty


def test_equal_parts_of_one_job_are_no_copies(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives every row to one part, so equal ones are rows that stand twice; of two jobs they may be a copy."""
    row = '{"message_id":"1","processed_at":"2026-11-20T10:05:00Z"}\n'
    job = "4f0cbf1e-6f5b-4cb4-8f6a-0d2f1f8d7a11-c000.json"
    for name in (f"part-00000-{job}", f"part-00001-{job}"):
        (tmp_path / name).write_text(row)
    spec: dict[str, Any] = {"source": jsonl("*.json"), "coverage": "declared"}

    of_one = evidence_of(spark, tmp_path, "delivered", **spec).coverage
    (tmp_path / f"part-00000-5{job[1:]}").write_text(row)
    of_two = evidence_of(spark, tmp_path, "delivered", **spec).coverage

    assert (of_one.rows, of_one.doubled) == (2, ())
    assert len(of_two.doubled) == 1


@pytest.mark.parametrize(
    ("first", "second", "is_copy"),
    [
        ("out/part-00000-", "out-copy/part-00000-", True),
        ("out/day=1/part-00000-", "out-copy/day=1/part-00000-", True),
        ("out/day=1/part-00000-", "out/day=2/part-00000-", False),
        ("out/part-00000-", "out-copy/part-00001-", False),
    ],
)
def test_one_part_in_two_folders_is_a_copy_unless_these_are_partitions(
    spark: SparkSession, tmp_path: Path, first: str, second: str, *, is_copy: bool
) -> None:
    """A folder that was copied would double every effect; the rows of two days may be the same but for the day."""
    row = '{"message_id":"1","processed_at":"2026-11-20T10:05:00Z"}\n'
    for name in (first, second):
        file = tmp_path / f"{name}4f0cbf1e-6f5b-4cb4-8f6a-0d2f1f8d7a11-c000.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(row)

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("out*/**/*.json"), coverage="declared")

    assert found.coverage.rows == 2
    assert bool(found.coverage.doubled) is is_copy


def test_missing_files_are_an_absent_ledger(spark: SparkSession, tmp_path: Path) -> None:
    """A path without files is evidence that there is none, not an exception; expressions cannot be checked."""
    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source=jsonl("no/*.jsonl"),
        columns={"message_id": "id"},
        coverage="declared",
    )

    assert not found.coverage.is_present
    assert not found.coverage.is_sound
    assert found.coverage.notes == ("no/*.jsonl: no such file",)
    assert found.rows.count() == 0
    assert found.present == frozenset()


def test_one_missing_path_of_two_is_not_covered(spark: SparkSession, tmp_path: Path) -> None:
    """A list of paths is a promise about each of them."""
    (tmp_path / "a.jsonl").write_text('{"message_id":"1"}\n')

    found = evidence_of(spark, tmp_path, "produced", source=jsonl(["a.jsonl", "b.jsonl"]))  # type: ignore[arg-type]

    assert found.coverage.is_present
    assert found.coverage.rows == 1
    assert not found.coverage.is_within_tolerance
    assert "b.jsonl: no such file" in found.coverage.notes


def test_file_that_cannot_be_opened_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is listed but cannot be opened costs coverage, and the others are read."""
    (tmp_path / "a.jsonl").write_text('{"message_id":"1"}\n')
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "nowhere")

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id") == [("1",)]
    assert found.coverage.notes[0] == "b.jsonl: cannot be read: No such file or directory"
    assert found.coverage.digests[1] == "unread  b.jsonl"
    assert not found.coverage.is_within_tolerance


def test_rows_that_changed_are_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's memory of an earlier reading of the same path is not evidence."""
    for name in ("1", "2"):
        (tmp_path / "a.jsonl").write_text(f'{{"message_id":"{name}"}}\n')
        assert rows_of(evidence_of(spark, tmp_path, "produced", source=jsonl("a.jsonl")), "message_id") == [
            (name,)
        ]


def test_empty_file_is_present_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """An empty file says that nothing happened, which is not the same as no file."""
    (tmp_path / "a.jsonl").touch()

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.jsonl"), columns={"message_id": "id"})

    assert found.coverage.is_present
    assert found.coverage.is_within_tolerance
    assert found.coverage.rows == 0
    assert found.coverage.digests == (f"sha256:{hashlib.sha256(b'').hexdigest()}  a.jsonl",)


def test_a_bzip2_file_that_ends_within_a_stream_is_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """Also where Spark reads the streams before it without an error."""
    first, second = (bz2.compress(f'{{"message_id":"{n}"}}\n'.encode()) for n in range(2))
    names = []
    for length in (2, 4, 10, len(second) - 4):
        names.append(f"{length:03}.jsonl.bz2")
        (tmp_path / names[-1]).write_bytes(first + second[:length])

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*")).coverage

    assert not found.is_within_tolerance
    assert found.notes[:4] == tuple(f"{name}: the bzip2 file is cut off" for name in names)


def test_a_packed_file_without_a_byte_was_not_written(spark: SparkSession, tmp_path: Path) -> None:
    """Its program died before it wrote what it had; a packed file of no rows has bytes."""
    for ending in ("bz2", "gz", "zst"):
        (tmp_path / f"a.jsonl.{ending}").touch()

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*"), columns={"message_id": "id"}).coverage

    assert (found.unparsed, found.is_within_tolerance) == (3, False)
    assert [note.split(":")[0] for note in found.notes if "found one without a byte" in note] == [
        f"a.jsonl.{ending}" for ending in ("bz2", "gz", "zst")
    ]


def test_an_empty_csv_file_has_lost_its_header(spark: SparkSession, tmp_path: Path) -> None:
    """An export without rows still has one; a file without may have had rows as well."""
    (tmp_path / "blank.csv").write_text("\n\n")
    (tmp_path / "empty.csv").touch()

    source = {"kind": "files", "format": "csv", "path": "*.csv"}
    found = evidence_of(spark, tmp_path, "produced", source=source).coverage

    assert (found.unparsed, found.is_within_tolerance) == (2, False)
    assert [note.split(":")[0] for note in found.notes if "expected a header line" in note] == [
        "blank.csv",
        "empty.csv",
    ]


def test_an_orc_file_with_times_that_spark_does_not_read_is_not_called_corrupt(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Arrow and pandas write times with a zone so; Spark's reader of ORC knows no such type."""
    at = pa.array([0], pa.timestamp("us", "UTC"))
    orc.write_table(pa.table({"message_id": ["a"], "at": at}), tmp_path / "a.orc")

    found = evidence_of(
        spark, tmp_path, "produced", source={"kind": "files", "format": "orc", "path": "*.orc"}
    )

    assert not found.coverage.is_within_tolerance
    assert "a.orc: it has a column of the type timestamp with local time zone" in found.coverage.notes[0]


def test_names_with_wildcards_blanks_and_percents(spark: SparkSession, tmp_path: Path) -> None:
    """A file is read whatever it is called, and a bad line in it is named as the file is."""
    folder = tmp_path / "a b%20[1]{x}"
    folder.mkdir()
    (folder / "é*.jsonl").write_text('{"message_id":"1"}\nbad\n')

    found = evidence_of(spark, folder, "produced", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id") == [("1",)]
    assert "é*.jsonl:2: the line is not one JSON object" in found.coverage.notes


def test_a_packed_file_that_is_called_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    """A zip file may hold whole lines as they are; the rest of it would count as lines that do not read."""
    line = b'{"message_id":"1"}\n'
    files = {
        "a.jsonl": (gzip.compress(line), "let its name end in .gz"),
        "a.jsonl.gz": (line, "not a gzip file, which its name says it is"),
        "a.jsonl.xz": (b"\xfd7zXZ\x00\n", "an xz file; expected text"),
        "a.jsonl.zip": (b"PK\x03\x04\n" + line, "a zip file; expected text"),
        "a.jsonl.zst": (line, "not a zstd file, which its name says it is"),
    }
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.*")).coverage

    assert (found.rows, found.unparsed, found.is_within_tolerance) == (0, len(files), False)
    notes = dict(note.split(": ", maxsplit=1) for note in found.notes[: len(files)])
    assert {name: note for name, (_, note) in files.items() if note not in notes.get(name, "")} == {}


def test_a_gzip_file_whose_name_ends_in_capital_letters(spark: SparkSession, tmp_path: Path) -> None:
    """Spark unpacks it all the same."""
    (tmp_path / "a.jsonl.GZ").write_bytes(gzip.compress(b'{"message_id":"1"}\n'))

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.*"))

    assert (found.coverage.rows, found.coverage.unparsed) == (1, 0)


def test_gzip_whole_and_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """A compressed file is read and its lines are numbered; one that is cut off is named, the others still read."""
    packed = gzip.compress(b'{"message_id":"1"}\nbad\n')
    (tmp_path / "a.jsonl.gz").write_bytes(packed + gzip.compress(b'{"message_id":"2"}\n'))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"message_id":"3"}\n' * 100)[:-12])

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.gz"))

    assert rows_of(found, "message_id") == [("1",), ("2",)]
    assert found.coverage.unparsed == 2
    assert "a.jsonl.gz:2: the line is not one JSON object" in found.coverage.notes
    assert "b.jsonl.gz: the gzip file is cut off" in found.coverage.notes
    assert not found.coverage.is_within_tolerance


def test_what_spark_would_take_for_empty_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads no row of these and says nothing: a ledger of them would seem to be silent."""
    line = b'{"message_id":"1"}\n'
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(line))
    (tmp_path / "b.jsonl.bz2").write_bytes(line)
    (tmp_path / "c.jsonl.bz2").write_bytes(bz2.compress(b""))
    (tmp_path / "d.jsonl.lz4").write_bytes(bytes(range(200)))
    (tmp_path / "e.jsonl.snappy").write_bytes(b"\x00" * 4)

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl.*"))

    assert rows_of(found, "message_id") == [("1",)]
    assert found.coverage.unparsed == 3
    assert "b.jsonl.bz2: not a bzip2 file, which its name says it is" in found.coverage.notes
    assert [note.split(":")[0] for note in found.coverage.notes[:3]] == [
        "b.jsonl.bz2",
        "d.jsonl.lz4",
        "e.jsonl.snappy",
    ]
    assert not found.coverage.is_within_tolerance


def test_corrupt_parquet_is_named_and_the_others_read(spark: SparkSession, tmp_path: Path) -> None:
    """A file cut off, one with spoilt pages and one that is none each cost coverage, not the run."""
    good = tmp_path / "good"
    spark.range(1000).selectExpr("cast(id as string) message_id", "id * 2 offset").coalesce(1).write.parquet(
        str(good)
    )
    part = next(good.glob("*.parquet")).read_bytes()
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "a.parquet").write_bytes(part)
    (tmp_path / "evidence" / "b.parquet").write_bytes(part[:-100])
    (tmp_path / "evidence" / "c.parquet").write_bytes(part[:4] + b"\xff" * 600 + part[604:])
    (tmp_path / "evidence" / "d.parquet").write_bytes(b"PAR1" + b"\x00" * 40 + b"PAR1")

    found = evidence_of(spark, tmp_path, "produced", source=_parquet("evidence/*.parquet"))

    assert found.coverage.rows == found.rows.count() == 1000
    assert found.coverage.unparsed == 3
    assert not found.coverage.is_within_tolerance
    unread_files = [note.split(":")[0] for note in found.coverage.notes if note.startswith("evidence/")]
    assert unread_files == ["evidence/b.parquet", "evidence/c.parquet", "evidence/d.parquet"]


def test_parquet_types_are_held_strictly(spark: SparkSession, tmp_path: Path) -> None:
    """A whole double is a number, a broken one is not; times keep their microseconds; bytes become hexadecimal."""
    rows = "values (17.0D, timestamp'2026-11-20 10:00:00.123456', x'AB'), (17.5D, null, null) t(offset, at, hash)"
    spark.sql(f"select * from {rows}").coalesce(1).write.parquet(str(tmp_path / "p"))  # noqa: S608 - no input

    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source=_parquet("p"),
        columns={"attempted_at": "at", "payload_hash": "hash"},
    )

    times = found.rows.selectExpr("offset", "unix_micros(attempted_at)", "payload_hash").collect()
    expected = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp() * 1_000_000 + 123456
    assert [tuple(row) for row in times] == [(17, expected, "ab")]
    assert found.coverage.unparsed == 1
    assert any("offset: expected a whole number" in note for note in found.coverage.notes)


def test_parquet_times_of_nanoseconds_are_times(spark: SparkSession, tmp_path: Path) -> None:
    """What pandas and Arrow write by default is read, with a zone or without one, whatever lies beside it."""
    at = datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)
    nanoseconds = int(at.timestamp()) * 1_000_000_000 + 123_456_789
    columns = {
        "a": pa.array([nanoseconds, None], pa.timestamp("ns", tz="Europe/Berlin")),
        "b": pa.array([nanoseconds], pa.timestamp("ns")),
        "c": pa.array([at], pa.timestamp("us", tz="UTC")),
    }
    for name, times in columns.items():
        ids = [f"{name}{number}" for number in range(len(times))]
        pq.write_table(pa.table({"message_id": ids, "attempted_at": times}), tmp_path / f"{name}.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "d.parquet").write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])

    found = evidence_of(spark, tmp_path, "produced", source=_parquet("*.parquet"))

    micros = found.rows.selectExpr("message_id", "unix_micros(attempted_at)").collect()
    expected = int(at.timestamp()) * 1_000_000 + 123_456
    assert sorted(map(tuple, micros)) == [("a0", expected), ("a1", None), ("b0", expected), ("c0", expected)]
    assert (found.coverage.unparsed, found.coverage.undated) == (1, 1)


def test_csv_rows_with_another_number_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Too few and too many columns are counted with their lines; doubled quotes and separators inside are fine."""
    (tmp_path / "a.csv").write_text(
        '\ufeffid,topic,offset\n00123,"a ""b"", c",1\nx,t\ny,t,3,4\nz,,five\n', encoding="utf-8"
    )

    found = evidence_of(spark, tmp_path, "produced", source=_csv("a.csv"), columns={"message_id": "id"})

    assert rows_of(found, "message_id", "topic", "offset") == [("00123", 'a "b", c', 1)]
    assert found.coverage.notes[0] == "a.csv: its byte order mark was left out"
    assert found.coverage.notes[1:4] == (
        "a.csv:3: the line has not 3 columns",
        "a.csv:4: the line has not 3 columns",
        "a.csv:5: offset: expected a whole number below 2^62, found five",
    )
    assert found.coverage.unparsed == 3


def test_a_line_break_within_a_csv_value_is_reported_as_such(spark: SparkSession, tmp_path: Path) -> None:
    """Its first line would else be a row that is cut off, and its second one perhaps a row that nobody wrote."""
    good = '"1","a, ""b"""\n2," ""c"" "\n3,5" pipe\n4,""\n'
    (tmp_path / "a.csv").write_text(f'id,topic\n{good}5,"x\ny,z"\n6,"x""\n')

    found = evidence_of(spark, tmp_path, "produced", source=_csv("a.csv"), columns={"message_id": "id"})

    reason = "a quote is not closed on its line: values with line breaks are read from JSON lines and Parquet"
    assert [note for note in found.coverage.notes if "quote" in note] == [
        f"a.csv:6: {reason}",
        f"a.csv:8: {reason}",
    ]
    assert {topic for _, topic in rows_of(found, "message_id", "topic")} >= {'a, "b"', ' "c" ', '5" pipe'}


def test_csv_files_with_columns_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    """Each file is read by its own header; a column that one of them lacks is null there."""
    (tmp_path / "a.csv").write_text("message_id;topic\n1;t\n")
    (tmp_path / "b.csv").write_text("topic;message_id;offset\nu;2;7\n")

    found = evidence_of(spark, tmp_path, "produced", source=_csv("*.csv", sep=";"))

    assert rows_of(found, "message_id", "topic", "offset") == [("1", "t", None), ("2", "u", 7)]
    assert found.coverage.unparsed == 0


def test_a_csv_column_in_two_spellings_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Columns that differ in capital letters only are one, so it stands twice; nobody knows which of both counts."""
    (tmp_path / "a.csv").write_text("message_id,outcome,Outcome\n1,ok,failed\n")

    found = evidence_of(spark, tmp_path, "delivered", source=_csv("*.csv"))

    assert (found.coverage.rows, found.coverage.unparsed) == (0, 1)
    assert not found.coverage.is_within_tolerance
    assert "found Outcome twice" in found.coverage.notes[0]


def test_csv_columns_without_a_name_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """Pandas writes its index so, a spreadsheet the empty columns behind its own; a cell in one is not the row's."""
    (tmp_path / "a.csv").write_text(",message_id,outcome,,\n0,a,ok,,\n1,b,ok,,note\n2,c,ok,\n")
    (tmp_path / "b.csv").write_text("message_id,outcome\nd,ok\n")

    found = evidence_of(spark, tmp_path, "delivered", source=_csv("*.csv"))

    assert rows_of(found, "message_id", "outcome") == [("a", "ok"), ("b", "ok"), ("d", "ok")]
    assert (found.coverage.unparsed, found.coverage.notes[0]) == (1, "a.csv:4: the line has not 5 columns")


def test_a_line_above_a_csv_header_that_only_excel_reads_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Some programs write `sep=;` for Excel; as a header it would name no column, and the true header be a row."""
    (tmp_path / "a.csv").write_text("sep=;\nmessage_id;outcome\n1;ok\n")

    found = evidence_of(spark, tmp_path, "delivered", source=_csv("*.csv"))

    assert (found.coverage.rows, found.coverage.unparsed) == (0, 1)
    assert "found sep=;, which only Excel reads" in found.coverage.notes[0]


@pytest.mark.parametrize(("header", "option"), [("id;at", "{sep: ';'}"), ("id\tat", '{sep: "\\t"}')])
def test_a_csv_header_with_another_separator_is_reported_as_such(
    spark: SparkSession, tmp_path: Path, header: str, option: str
) -> None:
    """Excel writes semicolons where the decimal point is a comma; the one column is no column of the contract."""
    (tmp_path / "a.csv").write_text(f"{header}\n")

    with pytest.raises(SourceError, match="no column `id`") as raised:
        evidence_of(spark, tmp_path, "delivered", source=_csv("*.csv"), columns={"message_id": "id"})

    assert str(raised.value).endswith(f"columns are: {header}; options: {option} cuts it")


def test_a_csv_file_without_a_header_is_reported_as_such(spark: SparkSession, tmp_path: Path) -> None:
    """Databases export rows alone unless they are asked; the first row would be the names of columns."""
    (tmp_path / "a.csv").write_text("o-1,2026-11-20T10:00:03Z\no-2,2026-11-20T10:00:13Z\n")

    with pytest.raises(SourceError, match=r"the first line has to name the columns$"):
        evidence_of(spark, tmp_path, "delivered", source=_csv("*.csv"), columns={"message_id": "id"})


def test_csv_file_that_begins_with_a_blank_line(spark: SparkSession, tmp_path: Path) -> None:
    """The header is the first line that is not blank; the file is not passed over for the others' sake."""
    (tmp_path / "a.csv").write_text("message_id,offset\n1,7\n")
    (tmp_path / "b.csv").write_text("\ufeff\r\n  \r\noffset,message_id\r\n8,2\r\n")

    found = evidence_of(spark, tmp_path, "produced", source=_csv("*.csv"))

    assert rows_of(found, "message_id", "offset") == [("1", 7), ("2", 8)]
    assert found.coverage.unparsed == 0


@pytest.mark.parametrize("is_remote", [False, True], ids=["path", "uri"])
def test_file_that_spark_leaves_out_is_named(spark: SparkSession, tmp_path: Path, *, is_remote: bool) -> None:
    """Spark passes over some names without a word: such a file costs coverage, unless it is empty."""
    line = '{"message_id":"1"}\n'
    (tmp_path / "a.jsonl").write_text(line)
    (tmp_path / "_b.jsonl").write_text(line)
    (tmp_path / "c.jsonl._COPYING_").write_text(line)
    (tmp_path / "_SUCCESS").touch()
    folder = f"file://{tmp_path}" if is_remote else str(tmp_path)

    chosen = evidence_of(spark, tmp_path, "produced", source=jsonl(f"{folder}/*"))
    named = evidence_of(spark, tmp_path, "produced", source=jsonl(f"{folder}/_b.jsonl"))

    unread_files = [note.split("/")[-1].split(":")[0] for note in chosen.coverage.notes]
    assert unread_files[:2] == ["_b.jsonl", "c.jsonl._COPYING_"]
    assert chosen.coverage.rows == 1
    assert not chosen.coverage.is_within_tolerance
    assert not named.coverage.is_within_tolerance


@pytest.mark.parametrize("is_remote", [False, True], ids=["path", "uri"])
def test_what_is_passed_over_in_a_folder_is_named(
    spark: SparkSession, tmp_path: Path, *, is_remote: bool
) -> None:
    """A name with a leading _ may hold evidence: unless it is known for none, the ledger does not cover without it."""
    reported = ["_retries.jsonl", "_others/a.jsonl", "day=1/_retries.jsonl"]
    known = ["_SUCCESS", "_committed_17", "_checkpoint/commits/0", ".a.jsonl.crc"]
    for path in ("a.jsonl", *known):
        (tmp_path / "sent" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sent" / path).write_text('{"message_id":"1"}\n')
    (tmp_path / "sent" / "_empty.jsonl").touch()
    spec: dict[str, Any] = {
        "source": jsonl(f"file://{tmp_path}/sent" if is_remote else "sent"),
        "coverage": "declared",
    }

    whole = evidence_of(spark, tmp_path, "produced", **spec).coverage
    for path in reported:
        (tmp_path / "sent" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "sent" / path).write_text('{"message_id":"1"}\n')
    found = evidence_of(spark, tmp_path, "produced", **spec).coverage

    expected = "a name that begins with _ is passed over"
    assert whole.is_within_tolerance
    assert not any(expected in note for note in whole.notes)
    skipped = [note.split("sent/")[-1].split(":")[0] for note in found.notes if expected in note]
    assert sorted(skipped) == sorted(path.removesuffix("/a.jsonl") for path in reported)
    assert (found.unparsed, found.is_within_tolerance) == (len(reported), False)
    assert whole.rows == found.rows == 1


def test_an_output_that_a_job_still_writes_is_not_complete(spark: SparkSession, tmp_path: Path) -> None:
    """What a task has not committed yet would be lost; a single file that a contract names is whole all the same."""
    row = '{"message_id":"1","processed_at":"2026-11-20T10:05:00Z"}\n'
    for name in ("part-0.json", "day=1/part-0.json", "_temporary/0/part-1.json"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(row)

    expected = [["out/_temporary", "a job is writing here, or died while it was"]]
    for path in ("out", "out/*", "out/*.json", "o*/day=1/*.json"):
        found = evidence_of(spark, tmp_path, "delivered", source=jsonl(path), coverage="declared").coverage
        notes = [note.split(": ")[:2] for note in found.notes]
        assert (path, found.is_within_tolerance, notes) == (path, False, expected)
    single = evidence_of(
        spark, tmp_path, "delivered", source=jsonl("out/part-0.json"), coverage="declared"
    ).coverage
    assert single.is_sound


@pytest.mark.parametrize("file_format", ["parquet", "orc", "jsonl", "csv"])
def test_a_file_that_spark_leaves_out_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """An installation may filter paths for every reader; the digests would name one of which no row was read."""
    texts = {"jsonl": '{{"message_id": "{0}"}}\n', "csv": "message_id\n{0}\n"}
    for name in ("a", "b"):
        file = tmp_path / "sent" / f"{name}.{file_format}"
        file.parent.mkdir(exist_ok=True)
        if file_format in texts:
            file.write_text(texts[file_format].format(name))
        else:
            table = pa.table({"message_id": [name]})
            (pq.write_table if file_format == "parquet" else orc.write_table)(table, file)
    source = {"kind": "files", "format": file_format, "path": "sent"}
    assert evidence_of(spark, tmp_path, "produced", source=source).coverage.rows == 2

    filtered = property(lambda session: DataFrameReader(session).option("pathGlobFilter", "a.*"))
    monkeypatch.setattr(type(spark), "read", filtered)

    with pytest.raises(SourceError, match=rf"^sent/b\.{file_format}: expected Spark to read every file"):
        evidence_of(spark, tmp_path, "produced", source=source)


def test_what_spark_lists_is_held_against_the_digests(spark: SparkSession, tmp_path: Path) -> None:
    """Either list may be the longer one, and the file is named; names may need escapes."""
    files = []
    for name in ("a b.jsonl", "c%20d.jsonl", "[e].jsonl"):
        (tmp_path / name).write_text("{}\n")
        files.append(Input(str(tmp_path / name), name, "sha256:0", size=3))
    paths = [file.read_path for file in files]

    assert of_these_files(spark.read.text(paths), files).count() == 3
    with pytest.raises(
        SourceError, match=r"^c%20d\.jsonl: expected Spark to read every file that was digested"
    ):
        of_these_files(spark.read.text([paths[0], paths[2]]), files)
    with pytest.raises(SourceError, match=r"c%20d\.jsonl: expected .*found one more"):
        of_these_files(spark.read.text(paths), [files[0], files[2]])
    of_these_files(spark.read.text(paths[:2]), [*files[:2], replace(files[2], size=0)])


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_what_an_installation_ignores_is_not_ignored(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    """With Spark's defaults set to pass over corrupt files, a file cut in its middle is a fault all the same."""
    rows = spark.range(20_000).select(F.sha2(F.col("id").cast("string"), 256).alias("message_id"))
    for name in ("a", "b"):
        rows.coalesce(1).write.format(file_format).option("compression", "none").save(str(tmp_path / name))
    (broken,) = (tmp_path / "b").glob(f"part-*.{file_format}")
    content = bytearray(broken.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    broken.write_bytes(content)
    source = {"kind": "files", "format": file_format, "path": ["a", "b"]}

    with set_to(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        found = evidence_of(spark, tmp_path, "produced", source=source).coverage

    assert (found.rows, found.unparsed) == (20_000, 1)
    assert not found.is_within_tolerance


def test_bytes_that_are_no_utf8_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A line in another encoding is a bad line, not a message with a replaced character in its id."""
    (tmp_path / "a.jsonl").write_bytes(b'{"message_id":"1"}\n{"message_id":"\xe9"}\n')

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.jsonl"))

    assert rows_of(found, "message_id") == [("1",)]
    assert found.coverage.notes[0] == "a.jsonl:2: the line is not UTF-8"


@pytest.mark.parametrize(("table_format", "name"), [("delta", "Delta"), ("iceberg", "Iceberg")])
def test_a_table_without_its_jars_says_what_to_install(
    spark: SparkSession, tmp_path: Path, table_format: str, name: str
) -> None:
    """Before anything of it is looked at: the shared session has no table format's jars."""
    source = {"kind": "files", "format": table_format, "path": "orders"}

    with pytest.raises(SourceError) as raised:
        evidence_of(spark, tmp_path, "delivered", source=source)

    assert str(raised.value) == (
        f"ledgers.delivered.source: reading format: {table_format} needs {name}'s jars for Spark, which are not among "
        "Spark's: fetch them with `make jars` (needs Maven), or name a folder that has them with TIEOUT_JARS"
    )


@pytest.mark.parametrize(
    ("log", "path", "name"),
    [
        ("_delta_log/0.json", "orders", "Delta"),
        ("_delta_log/0.json", "orders/day=1/*.parquet", "Delta"),
        ("metadata/v1.metadata.json", "orders/data", "Iceberg"),
    ],
)
def test_the_files_of_a_table_are_not_read_as_parquet(
    spark: SparkSession, tmp_path: Path, log: str, path: str, name: str
) -> None:
    """Some are of earlier versions: their rows would be effects that the table does not have."""
    for part in ("orders/day=1", "orders/data"):
        (tmp_path / part).mkdir(parents=True)
        pq.write_table(pa.table({"id": [0]}), tmp_path / part / "part-0.parquet")
    (tmp_path / "orders" / log).parent.mkdir()
    (tmp_path / "orders" / log).touch()

    with pytest.raises(SourceError) as raised:
        evidence_of(spark, tmp_path, "delivered", source=_parquet(path))

    assert str(raised.value) == (
        "ledgers.delivered.source: expected Parquet files that are no table's, "
        f"found those of the {name} table orders, removed ones included; read it with format: {name.lower()}"
    )


@pytest.mark.parametrize("scheme", ["s3a", "s3", "gs", "abfss", "unheard-of"])
def test_a_file_system_without_its_jar_is_said(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    """Whoever writes such a path is told which jar is missing, and where to name it."""
    with pytest.raises(SourceError, match=f"none for {scheme}://; name .* in spark.jars") as refused:
        inputs_of(spark, [f"{scheme}://bucket/orders/*.jsonl"], tmp_path, "jsonl")
    assert len(str(refused.value).splitlines()) == 1


def test_a_host_that_is_not_there_may_be_later(spark: SparkSession, tmp_path: Path) -> None:
    """What cannot be reached now is tried again by Airflow."""
    with pytest.raises(SourceUnreachableError, match="expected to list it"):
        inputs_of(spark, ["hdfs://no-such-host.invalid:1/orders.jsonl"], tmp_path, "jsonl")
