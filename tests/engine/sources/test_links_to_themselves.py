"""A link that leads to itself ended every run of its folder: it is that file's fault, as a link to nowhere is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl
from tests.pulsar import ANSWERS, ORDERS


@pytest.mark.parametrize(
    ("ledger", "source"),
    [
        ("produced", jsonl("in")),
        ("produced", jsonl("in/*.txt")),
        ("read", {"kind": "verifiable_consumer", "path": "in/*.txt"}),
        ("log", {"kind": "kafka_dump_log", "path": "in/*.txt"}),
        ("committed", {"kind": "kafka_consumer_groups", "path": "in/*.txt"}),
    ],
    ids=["folder", "pattern", "consumer", "dump", "table"],
)
def test_a_link_to_itself_is_its_own_fault(
    spark: SparkSession, tmp_path: Path, ledger: str, source: dict[str, Any]
) -> None:
    """Named, and the others are read."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").symlink_to("a.txt")

    found = evidence_of(spark, tmp_path, ledger, source=source)

    assert found.coverage.unparsed >= 1
    assert "in/a.txt: cannot be read: Too many levels of symbolic links" in found.coverage.notes


@pytest.mark.parametrize("place", ["a link to itself", "a pipe", "a folder"])
def test_what_is_no_file_in_the_place_of_an_answer_is_that_entrys_fault(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    """It ended the run; the other entries of the copy are read."""
    shutil.copytree(ANSWERS, tmp_path / "answers")
    entry = tmp_path / "answers" / ORDERS / "ledger" / "15" / "entry" / "1"
    source = {"kind": "pulsar", "path": "answers", "topic": "public/default/orders"}
    before = evidence_of(spark, tmp_path, "log", source=source).coverage
    entry.unlink()
    if place == "a pipe":
        os.mkfifo(entry)
    elif place == "a folder":
        entry.mkdir()
    else:
        entry.symlink_to(entry.name)

    found = evidence_of(spark, tmp_path, "log", source=source).coverage

    assert found.unparsed == before.unparsed + 1
    assert any(note.startswith("entry 15:1: cannot be read: ") for note in found.notes)
