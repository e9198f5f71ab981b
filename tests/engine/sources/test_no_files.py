"""What lies in a folder of evidence and is no plain file of it: named, and never waited for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, jsonl, rows_of

from tieout.engine.reading import open_ledgers
from tieout.model import Ledger

ROW = '{"message_id":"%s","attempted_at":"2026-11-20T10:05:00Z"}\n'


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path has a hundred letters at most
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


NO_FILES: dict[str, Callable[[Path], Any]] = {
    "expected a file, found a named pipe": os.mkfifo,
    "expected a file, found a socket": _socket,
    "a link out of the folder sent": lambda path: path.symlink_to("/dev/zero"),
    "cannot be read: No such file or directory": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize(("reason", "make"), NO_FILES.items())
@pytest.mark.parametrize(
    "source",
    [
        jsonl("sent"),
        jsonl("sent/*.jsonl"),
        {"kind": "files", "format": "csv", "path": "sent"},
        {"kind": "files", "format": "parquet", "path": "sent/x*"},
        {"kind": "verifiable_producer", "path": "sent/x.jsonl"},
        {"kind": "kafka_dump_log", "path": "sent", "topic": "t", "partition": 0},
    ],
    ids=["folder", "pattern", "csv", "parquet", "verifiable", "dump"],
)
def test_what_is_no_file_is_named_and_not_waited_for(
    spark: SparkSession, tmp_path: Path, source: dict[str, Any], reason: str, make: Callable[[Path], Any]
) -> None:
    """Who opens a pipe that nobody writes to waits for ever, and a device never ends."""
    (tmp_path / "sent").mkdir()
    make(tmp_path / "sent" / "x.jsonl")
    ledger = "log" if source["kind"] == "kafka_dump_log" else "produced"

    found = evidence_of(spark, tmp_path, ledger, source=source).coverage

    assert found.unparsed >= 1
    assert not found.is_within_tolerance
    assert any("x.jsonl" in note for note in found.notes)
    if source["kind"] == "files":
        assert any(reason in note for note in found.notes)


@pytest.mark.parametrize("path", ["sent", "sent/*", "sent/**/*.jsonl"])
def test_a_link_may_stay_in_its_folder(spark: SparkSession, tmp_path: Path, path: str) -> None:
    """Kubernetes mounts files so; one that leaves the folder, or a folder behind a link, is named instead."""
    version = tmp_path / "sent" / "..2026_11_20"
    version.mkdir(parents=True)
    (version / "a.jsonl").write_text(ROW % "1")
    (tmp_path / "sent" / "..data").symlink_to("..2026_11_20")
    (tmp_path / "sent" / "a.jsonl").symlink_to("..data/a.jsonl")
    inside = evidence_of(spark, tmp_path, "produced", source=jsonl(path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.jsonl").write_text(ROW % "2")

    (tmp_path / "sent" / "b.jsonl").symlink_to("../other/b.jsonl")
    outside = evidence_of(spark, tmp_path, "produced", source=jsonl(path))
    named = evidence_of(spark, tmp_path, "produced", source=jsonl("sent/b.jsonl"))

    assert (rows_of(inside, "message_id"), inside.coverage.unparsed) == ([("1",)], 0)
    assert (rows_of(outside, "message_id"), outside.coverage.unparsed) == ([("1",)], 1)
    assert outside.coverage.notes[0].startswith(
        "sent/b.jsonl: a link out of the folder sent; name what it leads to"
    )
    assert (rows_of(named, "message_id"), named.coverage.unparsed) == ([("2",)], 0)


def test_a_folder_behind_a_link_is_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    """Nobody follows it, so what lies there would be missing and not be missed."""
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "a.jsonl").write_text(ROW % "1")
    (tmp_path / "day").mkdir()
    (tmp_path / "sent" / "day").symlink_to("../day")

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("sent")).coverage

    assert (found.rows, found.unparsed) == (1, 1)
    assert found.notes[0].startswith("sent/day: a link out of the folder sent")


@pytest.mark.parametrize("content", [ROW % "2" + ROW % "1", "", None], ids=["rewritten", "shrinks", "goes"])
def test_a_file_that_changes_while_it_is_read_is_a_fault(
    spark: SparkSession, tmp_path: Path, content: str | None
) -> None:
    """Its digest is not that of the rows: the ledger does not cover, and the note says what to do."""
    file = tmp_path / "p.jsonl"
    file.write_text(ROW % "1")
    (tmp_path / "q.jsonl").write_text(ROW % "3")
    contract = contract_of(tmp_path, {"produced": {"source": jsonl("*.jsonl"), "coverage": "declared"}})

    opened = open_ledgers(spark, contract, WINDOW, NOW)[Ledger.PRODUCED]
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    found = opened.kept().coverage

    assert found.unparsed >= 1
    assert not found.is_within_tolerance
    assert any(note.startswith("p.jsonl: ") for note in found.notes)


def test_a_file_that_is_written_on_is_what_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Logs are appended to all the time: the rows of before are there, and a note names the file."""
    file = tmp_path / "p.jsonl"
    file.write_text(ROW % "1")
    contract = contract_of(tmp_path, {"produced": {"source": jsonl("*.jsonl"), "coverage": "declared"}})

    opened = open_ledgers(spark, contract, WINDOW, NOW)[Ledger.PRODUCED]
    file.write_text(ROW % "1" + ROW % "2")
    found = opened.kept().coverage

    assert found.unparsed == 0
    assert found.is_within_tolerance
    assert any(note.startswith("p.jsonl: was written on") for note in found.notes)


def test_a_watermark_that_is_a_pipe_says_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The run does not wait for whoever may write to it."""
    (tmp_path / "p.jsonl").write_text(ROW % "1")
    os.mkfifo(tmp_path / "until")

    found = evidence_of(
        spark, tmp_path, "produced", source=jsonl("p.jsonl"), coverage={"watermark_file": "until"}
    ).coverage

    assert found.complete_until is None
    assert "watermark file until: expected a file, found a named pipe" in found.notes
