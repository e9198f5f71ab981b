"""A query's checkpoint as the ledger `committed`: its batches, its times, and what keeps it from covering."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, rows_of
from tests.engine.sources.checkpoints import BEGAN, began_at, set_time, write_checkpoint, written

from tieout.contracts import SparkCheckpointSource
from tieout.engine.evidence import Evidence
from tieout.engine.sources.source import Request
from tieout.engine.sources.spark_checkpoint import read
from tieout.errors import SourceError
from tieout.model import Ledger

_ENDS = [{"0": 5}, {"0": 9, "1": 2}, {"0": 12, "1": 4}]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Three batches, the last one in doubt."""
    write_checkpoint(tmp_path / "checkpoint", _ENDS, commits=2, first={"0": 1})
    return tmp_path / "checkpoint"


def _evidence(spark: SparkSession, checkpoint: Path, ledger: str = "committed", **source: Any) -> Evidence:
    known = {"kind": "spark_checkpoint", "path": checkpoint.name, "taken_at": "now"}
    return evidence_of(spark, checkpoint.parent, ledger, source={**known, **source})


def test_each_committed_batch_has_a_row_for_each_partition(spark: SparkSession, checkpoint: Path) -> None:
    """From the end of the batch before to its own, at the time of its commit; a batch in doubt has none."""
    rows = read(
        SparkCheckpointSource(path="checkpoint", taken_at="now"),
        Request(spark, Ledger.COMMITTED, checkpoint.parent, NOW, group="loader"),
    ).rows
    assert rows is not None

    columns = ("consumer_group", "topic", "partition", "first_offset", "committed_offset", "metadata")
    assert [
        tuple(row[name] for name in columns)
        for row in rows.orderBy("partition", "committed_offset").collect()
    ] == [
        ("loader", "orders", 0, 1, 5, '{"batch": 0}'),
        ("loader", "orders", 0, 5, 9, '{"batch": 1}'),
        ("loader", "orders", 1, None, 2, '{"batch": 1}'),
    ]


def test_the_checkpoint_of_a_running_query_covers_until_it_is_read(
    spark: SparkSession, checkpoint: Path
) -> None:
    """Its commits have the times of their files."""
    found = _evidence(spark, checkpoint)

    times = {row[0].astimezone(BEGAN.tzinfo) for row in rows_of(found, "committed_at")}
    assert times == {began_at(batch) + timedelta(seconds=10) for batch in (0, 1)}
    assert found.coverage.complete_until == NOW
    assert found.coverage.covers_from is None
    assert found.coverage.is_sound
    assert any(note.startswith("batch 2 is in doubt") for note in found.coverage.notes)
    assert len(found.coverage.digests) == 6


def test_a_copy_has_no_times(spark: SparkSession, checkpoint: Path) -> None:
    """Neither one that says when it was taken, nor one that claims to be the original with other times."""
    named = _evidence(spark, checkpoint, taken_at="2026-11-20T11:00:00Z")
    set_time(checkpoint / "commits" / "0", NOW)
    claimed = _evidence(spark, checkpoint)
    set_time(checkpoint / "commits" / "0", BEGAN - timedelta(seconds=5))
    earlier = _evidence(spark, checkpoint)

    for found in (named, claimed, earlier):
        assert {row[0] for row in rows_of(found, "committed_at")} == {None}
    assert any("its time is that of a copy" in note for note in claimed.coverage.notes)
    assert _evidence(spark, checkpoint, taken_at=None).coverage.complete_until is None


def test_what_was_purged_is_not_covered(spark: SparkSession, checkpoint: Path) -> None:
    """The history begins with the oldest batch that is left."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder / "0").unlink()

    found = _evidence(spark, checkpoint)

    assert found.coverage.covers_from == began_at(1)
    assert found.coverage.is_sound


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _cut_at_line(path: Path) -> None:
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:2]))


def _cut_behind_version(path: Path) -> None:
    path.write_bytes(b"v1\n")


def _later_version(path: Path) -> None:
    written(path, b"v2\n{}\n0:{}")


def _torn_json(path: Path) -> None:
    written(path, path.read_bytes()[:-3])


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_out(path: Path) -> None:
    shutil.move(path, path.parents[2] / "elsewhere")
    path.symlink_to(path.parents[2] / "elsewhere")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("offsets/1", Path.unlink),
        ("offsets/2", _truncate),
        ("offsets/1", _cut_at_line),
        ("offsets/0", _later_version),
        ("offsets/2", _torn_json),
        ("commits/0", Path.unlink),
        ("commits/1", _truncate),
        ("commits/0", _cut_behind_version),
        ("sources/0/0", _truncate),
        ("offsets/1", _pipe),
        ("commits/1", _pipe),
        ("offsets/1", _link_out),
        ("offsets/3.tmp", Path.touch),
        ("commits/03", Path.touch),
    ],
)
def test_a_damaged_checkpoint_does_not_cover_and_names_the_file(
    spark: SparkSession, checkpoint: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """A hole, a later version, a file that is cut off (at a line's end too), a pipe, a link, another name."""
    damage(checkpoint / name)

    found = _evidence(spark, checkpoint)

    assert not found.coverage.is_sound
    assert any(f"checkpoint/{name}" in note for note in found.coverage.notes), found.coverage.notes


def test_files_that_were_being_written_are_no_batches(spark: SparkSession, checkpoint: Path) -> None:
    """A hidden file is one that a killed query left, and a hosted Spark has a folder; they count for nothing."""
    (checkpoint / "offsets" / ".3.7b1c.tmp").write_bytes(b"v1\n{")
    (checkpoint / "offsets" / "__tmp_path_dir").mkdir()

    assert _evidence(spark, checkpoint).coverage.is_sound


@pytest.mark.parametrize("made", ["", "checkpoint", "checkpoint/commits"])
def test_no_checkpoint_is_no_evidence(spark: SparkSession, tmp_path: Path, made: str) -> None:
    """Neither is a folder without offsets."""
    (tmp_path / made).mkdir(parents=True, exist_ok=True)

    found = _evidence(spark, tmp_path / "checkpoint")

    assert not found.coverage.is_sound
    assert found.coverage.notes[0] == "checkpoint: no folder offsets of a Structured Streaming checkpoint"


def test_another_ledger_and_another_file_system_are_refused(spark: SparkSession, checkpoint: Path) -> None:
    """A checkpoint holds positions, and is read from this machine."""
    with pytest.raises(SourceError, match="is evidence for committed"):
        _evidence(spark, checkpoint, ledger="delivered")
    with pytest.raises(SourceError, match="s3a://bucket/checkpoint; copy it here"):
        _evidence(spark, checkpoint, path="s3a://bucket/checkpoint")
