"""Sources that no contract describes yet: looked at without Spark, and read by what was drafted from the look."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tieout.cli.starting import drafted
from tieout.contracts import FilesSource, load_contract
from tieout.engine.reading import read_evidence
from tieout.engine.sampling import ROWS, needs_spark, sample
from tieout.engine.session import suited_to
from tieout.engine.sources import tables
from tieout.errors import SourceError
from tieout.model import Guarantee, Ledger, Window

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


def test_what_is_drafted_reads_what_was_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    """JSON lines, CSV and Parquet: every row conforms, ids and times are what they were."""
    (tmp_path / "sent").mkdir()
    lines = [
        {"orderId": f"o-{n}", "sent_ms": 1763632800000 + n, "status": "ok", "partition": 0, "offset": n}
        for n in range(3)
    ]
    (tmp_path / "sent" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "out.csv").write_text(
        "order id,loaded_at\no-1,2026-11-20 10:00:03\no-2,2026-11-20 10:00:04\n"
    )
    times = pa.array([START, START + timedelta(seconds=1)], pa.timestamp("us", tz="UTC"))
    table = pa.table({"group_id": ["g", "g"], "topic": ["t", "t"], "partition": [0, 0], "committed_offset": [1, 2],
                      "committed_at": times})  # fmt: skip
    pq.write_table(table, tmp_path / "committed.parquet")
    sources = {
        Ledger.PRODUCED: str(tmp_path / "sent"),
        Ledger.DELIVERED: str(tmp_path / "out.csv"),
        Ledger.COMMITTED: str(tmp_path / "committed.parquet"),
    }

    made = drafted("orders", Guarantee.AT_LEAST_ONCE, None, sources, tmp_path)

    (tmp_path / "orders.yml").write_text(made.text)
    contract = load_contract(tmp_path / "orders.yml")
    with suited_to(spark, is_small=True):
        window = Window(START, START + timedelta(hours=1))
        evidence = read_evidence(spark, contract, window, START + timedelta(hours=2))
        sent = evidence[Ledger.PRODUCED].rows.orderBy("message_id").collect()
        written = evidence[Ledger.DELIVERED].rows.orderBy("message_id").collect()
    coverages = {ledger: found.coverage for ledger, found in evidence.items()}
    assert {ledger: (found.rows, found.unparsed) for ledger, found in coverages.items()} == {
        Ledger.PRODUCED: (3, 0), Ledger.DELIVERED: (2, 0), Ledger.COMMITTED: (2, 0),
    }  # fmt: skip
    assert {found.complete_until for found in coverages.values()} == {None}
    assert [(row["message_id"], row["outcome"], row["offset"]) for row in sent] == [
        ("o-0", "acked", 0), ("o-1", "acked", 1), ("o-2", "acked", 2),
    ]  # fmt: skip
    assert [row["message_id"] for row in written] == ["o-1", "o-2"]
    assert written[0]["processed_at"].second == 3


def test_a_look_is_bounded(tmp_path: Path) -> None:
    """A thousand rows, however long the file; torn lines are passed over."""
    (tmp_path / "long.jsonl").write_text("torn\n" + '{"id": 1}\n' * (3 * ROWS))

    found = sample(str(tmp_path / "long.jsonl"), "--produced", Ledger.PRODUCED)

    assert (found.rows, len(found.columns[0].values)) == (ROWS - 1, ROWS - 1)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda _folder: None, "expected files, found none"),
        (lambda folder: (folder / "a.txt").write_text(""), "expected files, found none"),
        (
            lambda folder: [(folder / name).write_text("") for name in ("a.csv", "b.jsonl")],
            "files of one format",
        ),
        (lambda folder: (folder / "a.json").write_text("[{}]"), "a.json holds a JSON array"),
        (lambda folder: (folder / "a.parquet").write_text("no"), "cannot be read as parquet"),
        (
            lambda folder: [(folder / name).write_text("") for name in ("a.json", "b.jsonl")],
            "files of one format.*found .json, .jsonl",
        ),
        (
            lambda folder: (folder / "a.jsonl.gz").write_bytes(gzip.compress(b"{}" * 9)[:-9]),
            "cannot be read as jsonl",
        ),
    ],
)
def test_what_cannot_be_sampled_is_reported(
    tmp_path: Path, make: Callable[[Path], object], expected: str
) -> None:
    """With the option that named it, and what to give instead."""
    make(tmp_path)

    with pytest.raises(SourceError, match=rf"--produced .*{expected}"):
        sample(str(tmp_path), "--produced", Ledger.PRODUCED)


@pytest.mark.parametrize("name", ["long.jsonl.gz", "long.csv.gz"])
def test_a_line_without_an_end_is_not_held_in_memory(tmp_path: Path, name: str) -> None:
    """A small packed file that unpacks to one line of 100 MB is refused after its first megabytes."""
    with gzip.open(tmp_path / name, "wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()

    with pytest.raises(SourceError, match="a line of more than"):
        sample(str(tmp_path / name), "--produced", Ledger.PRODUCED)

    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_a_document_nested_too_deeply_is_no_row(tmp_path: Path) -> None:
    """It is passed over as the reader would count it; the other rows are looked at."""
    (tmp_path / "deep.jsonl").write_text('{"a":' * 100_000 + "\n" + '{"id": "m-1"}\n')

    assert [
        column.name for column in sample(str(tmp_path / "deep.jsonl"), "--produced", Ledger.PRODUCED).columns
    ] == ["id"]


def test_packed_files_and_other_separators_are_looked_at(tmp_path: Path) -> None:
    """What the reader takes is guessed as well: packed files, a byte order mark, columns parted by semicolons."""
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "a.jsonl.gz").write_bytes(
        gzip.compress(b'\xef\xbb\xbf{"id": "a", "sent_ms": 1763632800000}\n')
    )
    (tmp_path / "out [1].csv").write_bytes(b"\xef\xbb\xbfid;written_ms\r\na;1763632800000\r\n")
    sources = {Ledger.PRODUCED: str(tmp_path / "sent"), Ledger.DELIVERED: str(tmp_path / "out [1].csv")}

    made = drafted("orders", Guarantee.AT_LEAST_ONCE, None, sources, tmp_path)

    assert 'sent/*.jsonl.gz"}' in made.text
    assert 'out [1].csv", options: {sep: ";"}' in made.text
    assert "message_id: id  # id: by its name" in made.text
    assert "processed_at: timestamp_millis(cast(written_ms as bigint))" in made.text


def test_line_breaks_in_csv_are_reported_before_they_are_judged(tmp_path: Path) -> None:
    """They can be looked at here, and cannot be read there."""
    (tmp_path / "out.csv").write_text('id,text\na,"x\ny"\n')

    found = sample(str(tmp_path / "out.csv"), "--delivered", Ledger.DELIVERED)

    assert found.rows == 1
    assert found.warnings == (
        "some values hold line breaks, which are not read from CSV: write them as JSON lines or Parquet",
    )


def test_a_table_needs_a_connection_and_a_name() -> None:
    """Written jdbc:CONNECTION:TABLE."""
    with pytest.raises(SourceError, match="expected jdbc:CONNECTION:TABLE"):
        sample("jdbc:warehouse", "--delivered", Ledger.DELIVERED)


@pytest.mark.parametrize(
    ("log", "form"), [("_delta_log/0.json", "delta"), ("metadata/v1.metadata.json", "iceberg")]
)
def test_a_tables_folder_is_looked_at_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, form: str
) -> None:
    """And not as the Parquet files that lie in it, of which some are of earlier versions."""
    (tmp_path / "orders" / log).parent.mkdir(parents=True)
    (tmp_path / "orders" / log).touch()
    (tmp_path / "orders" / "part-0.parquet").touch()
    requested: list[FilesSource] = []

    def first_rows(spec: FilesSource, _place: str, _limit: int) -> list[dict[str, object]]:
        requested.append(spec)
        return [{"message_id": "a", "processed_at": START}]

    monkeypatch.setattr(tables, "first_rows", first_rows)

    found = sample(str(tmp_path / "orders"), "--delivered", Ledger.DELIVERED)

    assert [(spec.format, spec.path) for spec in requested] == [(form, (str(tmp_path / "orders"),))]
    assert (found.form, found.path, found.rows) == (form, str(tmp_path / "orders"), 1)
    assert [(column.name, column.kind) for column in found.columns] == [
        ("message_id", "text"),
        ("processed_at", "time"),
    ]
    assert needs_spark(str(tmp_path / "orders"))
    assert not needs_spark(str(tmp_path))


def test_a_table_without_its_jars_names_what_was_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """The error says which argument of `tieout init` it is about, and what to install."""
    spec = FilesSource(format="delta", path=(str(tmp_path),))

    with pytest.raises(SourceError, match=r"^--delivered lake: reading format: delta needs Delta's jars"):
        tables.first_rows_in(spark, spec, "--delivered lake", 5)
