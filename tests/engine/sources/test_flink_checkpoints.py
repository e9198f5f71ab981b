"""A Flink job's checkpoints as the ledger `committed`: positions, times, and what keeps it from covering."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, reading_of, rows_of
from tests.engine.sources.flink import JOB, SOURCE, metadata, split, write_checkpoint, written

from tieout.contracts import FlinkCheckpointsSource
from tieout.engine.evidence import Evidence
from tieout.engine.sources.flink_checkpoints import read
from tieout.engine.sources.source import Reading, Request
from tieout.engine.systems.flink_operators import id_of_uid
from tieout.errors import SourceError
from tieout.model import Ledger

_BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
_ANOTHER = "2779d52d9d6e7b53a617d107b47656c8"


def _at(checkpoint: int) -> datetime:
    return _BEGAN + timedelta(minutes=checkpoint)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Three checkpoints of one job; partition 1 is begun with the second."""
    folder = tmp_path / "checkpoints"
    for number, offsets in enumerate(({0: 5, 1: -2}, {0: 9, 1: 2}, {0: 12, 1: 4}), start=1):
        write_checkpoint(folder, number, offsets, _at(number))
    return folder


def _evidence(spark: SparkSession, checkpoints: Path, ledger: str = "committed", **source: Any) -> Evidence:
    known = {"kind": "flink_checkpoints", "path": checkpoints.name, "taken_at": "now"}
    return evidence_of(spark, checkpoints.parent, ledger, source={**known, **source})


def _reading(spark: SparkSession, checkpoints: Path, **source: Any) -> Reading:
    known = {"kind": "flink_checkpoints", "path": checkpoints.name, "taken_at": "now"}
    return reading_of(spark, checkpoints.parent, "committed", {**known, **source})


def test_each_complete_checkpoint_has_a_row_for_each_partition(
    spark: SparkSession, checkpoints: Path
) -> None:
    """Where the source goes on, with the job and the checkpoint; a partition that is not begun has none."""
    rows = read(
        FlinkCheckpointsSource(path="checkpoints", taken_at="now"),
        Request(spark, Ledger.COMMITTED, checkpoints.parent, NOW, group="loader"),
    ).rows
    assert rows is not None

    columns = ("consumer_group", "topic", "partition", "first_offset", "committed_offset", "metadata")
    metadata = [f'{{"job": "{JOB}", "checkpoint": {number}}}' for number in (1, 2, 3)]
    assert [
        tuple(row[name] for name in columns)
        for row in rows.orderBy("partition", "committed_offset").collect()
    ] == [
        ("loader", "orders", 0, None, 5, metadata[0]),
        ("loader", "orders", 0, None, 9, metadata[1]),
        ("loader", "orders", 0, None, 12, metadata[2]),
        ("loader", "orders", 1, None, 2, metadata[1]),
        ("loader", "orders", 1, None, 4, metadata[2]),
    ]


def test_the_checkpoints_of_a_running_job_cover_until_they_are_read(
    spark: SparkSession, checkpoints: Path
) -> None:
    """Each position has the time of its checkpoint's file."""
    found = _evidence(spark, checkpoints)

    assert {row[0].astimezone(UTC) for row in rows_of(found, "committed_at")} == {_at(1), _at(2), _at(3)}
    assert found.coverage.complete_until == NOW
    assert found.coverage.covers_from is None
    assert found.coverage.is_sound
    assert f"job {JOB}: checkpoint 1 to 3" in found.coverage.notes
    assert len(found.coverage.digests) == 3


def test_a_copy_has_no_times(spark: SparkSession, checkpoints: Path) -> None:
    """Neither one that says when it was taken, nor one that claims to be the original with times out of order."""
    named = _evidence(spark, checkpoints, taken_at="2026-11-20T11:00:00Z")
    os.utime(checkpoints / JOB / "chk-1" / "_metadata", (NOW.timestamp(), NOW.timestamp()))
    claimed = _evidence(spark, checkpoints)

    for found in (named, claimed):
        assert {row[0] for row in rows_of(found, "committed_at")} == {None}
    assert any("its time is that of a copy" in note for note in claimed.coverage.notes)
    assert _evidence(spark, checkpoints, taken_at=None).coverage.complete_until is None


def test_checkpoints_that_are_not_retained_are_not_covered(spark: SparkSession, checkpoints: Path) -> None:
    """A job's first checkpoint is number 1, or follows the one that it was restored from."""
    write_checkpoint(checkpoints, 3, {0: 12}, _at(4), job=_ANOTHER)
    restored = _reading(spark, checkpoints)
    assert restored.complete_from is None

    shutil.rmtree(checkpoints / JOB / "chk-2")
    between = _reading(spark, checkpoints)
    shutil.rmtree(checkpoints / JOB)
    alone = _reading(spark, checkpoints)

    for found in (between, alone):
        assert found.complete_from == _at(4)
        assert any("num-retained" in note for note in found.notes)
    copied = _reading(spark, checkpoints, taken_at="2026-11-20T11:00:00Z")
    assert copied.complete_from == datetime(2026, 11, 20, 11, tzinfo=UTC)


def test_a_job_that_began_anew_is_covered_from_its_beginning(spark: SparkSession, checkpoints: Path) -> None:
    """It counts from 1 again; its positions follow those of the job before."""
    write_checkpoint(checkpoints, 1, {0: 3}, _at(4), job=_ANOTHER)

    found = _evidence(spark, checkpoints)

    assert found.coverage.covers_from is None
    assert rows_of(found, "partition", "committed_offset").count((0, 3)) == 1


def test_a_savepoint_is_a_position_as_well(spark: SparkSession, checkpoints: Path) -> None:
    """Whichever folder it is in; it counts as one of the job's checkpoints."""
    content = metadata(4, {SOURCE: {"SourceReaderState": [split("orders", 0, 20)]}})
    written(checkpoints / "savepoints" / "savepoint-1b6992-0a1b" / "_metadata", content, _at(4))
    write_checkpoint(checkpoints, 5, {0: 21}, _at(5), job=_ANOTHER)

    found = _reading(spark, checkpoints)

    assert found.complete_from is None
    metadata_of_savepoint = '{"savepoint": "savepoint-1b6992-0a1b", "checkpoint": 4}'
    assert (20, metadata_of_savepoint) in rows_of(found, "committed_offset", "metadata")


@pytest.mark.parametrize("copy", [f"{JOB}/chk-1.bak", f"backup/{JOB}/chk-1", "aside/first"])
def test_a_copy_of_a_checkpoint_counts_once(spark: SparkSession, checkpoints: Path, copy: str) -> None:
    """Made later, it is no step back of the positions, and takes the others' times from none."""
    shutil.copytree(checkpoints / JOB / "chk-1", checkpoints / copy)
    os.utime(checkpoints / copy / "_metadata", (_at(7).timestamp(), _at(7).timestamp()))

    found = _reading(spark, checkpoints)

    assert rows_of(found, "committed_offset") == [(12,), (2,), (4,), (5,), (9,)]
    assert {row[0].astimezone(UTC) for row in rows_of(found, "committed_at")} == {_at(1), _at(2), _at(3)}
    assert found.unparsed_inputs == 0
    expected_note = f"checkpoints/{copy}: a copy of checkpoints/{JOB}/chk-1, which counts once"
    assert expected_note in found.notes


@pytest.mark.parametrize("taken_at", ["now", "2026-11-20T11:00:00Z"])
def test_two_jobs_that_ran_at_once_are_not_one(spark: SparkSession, checkpoints: Path, taken_at: str) -> None:
    """What the other one read was not read by the job that is judged; which one that is nobody says."""
    write_checkpoint(checkpoints, 1, {0: 30}, _BEGAN + timedelta(minutes=2, seconds=30), job=_ANOTHER)

    found = _reading(spark, checkpoints, taken_at=taken_at)

    assert found.unparsed_inputs > 0
    assert rows_of(found, "partition", "committed_offset") == [(1, 2), (1, 4)]
    assert found.notes[0].startswith(f"orders-0: job {JOB} and job {_ANOTHER} wrote checkpoints by turns")


def test_the_times_of_a_copy_that_was_written_in_parallel_show_no_jobs_at_once(
    spark: SparkSession, checkpoints: Path
) -> None:
    """They are later than the copy began; where they are kept, they are the job's own."""
    write_checkpoint(checkpoints, 1, {0: 3}, _at(4), job=_ANOTHER)
    write_checkpoint(checkpoints, 2, {0: 30}, _at(5), job=_ANOTHER)
    taken_at = "2026-11-20T11:00:00Z"
    assert _reading(spark, checkpoints, taken_at=taken_at).unparsed_inputs == 0

    copied = datetime(2026, 11, 20, 11, 0, 1, tzinfo=UTC).timestamp()
    for place, name in enumerate((f"{JOB}/chk-1", f"{_ANOTHER}/chk-1", f"{JOB}/chk-2", f"{_ANOTHER}/chk-2")):
        os.utime(checkpoints / name / "_metadata", (copied + place, copied + place))
    os.utime(checkpoints / JOB / "chk-3" / "_metadata", (copied + 5, copied + 5))

    found = _reading(spark, checkpoints, taken_at=taken_at)
    assert found.unparsed_inputs == 0, found.notes
    assert len(rows_of(found, "committed_offset")) == 7
    assert _reading(spark, checkpoints).unparsed_inputs > 0


def test_a_consumer_of_the_older_kind_is_a_fault_unless_another_source_is_named(
    spark: SparkSession, checkpoints: Path
) -> None:
    """Its positions are in a state of another form, and would be missing without a word."""
    states = {
        SOURCE: {"SourceReaderState": [split("orders", 0, 20)]},
        ("Source: refunds", "refunds"): {"topic-partition-offset-states": [b"kryo"]},
    }
    content = metadata(4, states, version=4)
    written(checkpoints / JOB / "chk-4" / "_metadata", content, _at(4))

    found = _reading(spark, checkpoints)
    assert found.unparsed_inputs > 0
    assert any(f"the operator {id_of_uid('refunds')} is a FlinkKafkaConsumer" in note for note in found.notes)
    named = _reading(spark, checkpoints, source="input")
    assert named.unparsed_inputs == 0
    assert (20,) in rows_of(named, "committed_offset")


def test_jobs_at_once_may_read_what_the_other_does_not(spark: SparkSession, checkpoints: Path) -> None:
    """A folder may be that of all jobs: theirs are the positions of other partitions."""
    at = _BEGAN + timedelta(minutes=2, seconds=30)
    write_checkpoint(checkpoints, 1, {2: 30}, at, job=_ANOTHER)

    assert _reading(spark, checkpoints).unparsed_inputs == 0


def test_a_checkpoint_without_metadata_counts_for_nothing(spark: SparkSession, checkpoints: Path) -> None:
    """It is not complete, or never was."""
    (checkpoints / JOB / "chk-4").mkdir()
    (checkpoints / JOB / "shared").mkdir()
    (checkpoints / JOB / "taskowned").mkdir()

    found = _reading(spark, checkpoints)

    assert found.unparsed_inputs == 0
    assert len(rows_of(found, "committed_offset")) == 5
    assert f"checkpoints/{JOB}/chk-4: has no _metadata, so it is not complete" in found.notes


def test_a_folder_that_is_not_looked_into_is_named(spark: SparkSession, checkpoints: Path) -> None:
    """A link to one is not followed: what it leads to may hold a newer checkpoint."""
    write_checkpoint(checkpoints.parent / "elsewhere", 4, {0: 20}, _at(4))
    (checkpoints / "linked").symlink_to(checkpoints.parent / "elsewhere")

    found = _evidence(spark, checkpoints)

    assert not found.coverage.is_sound
    assert any(note.startswith("checkpoints/linked: a link to a folder") for note in found.coverage.notes)


def test_a_state_in_a_file_beside_the_metadata_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """As Flink wrote it; without the file the checkpoint cannot be read."""
    recorded = Path(__file__).resolve().parents[2] / "flink_files" / "files"
    shutil.copytree(recorded, tmp_path / "checkpoints")

    found = _reading(spark, tmp_path / "checkpoints")
    assert rows_of(found, "topic", "committed_offset") == [("fx-files-in", 20)]
    assert len(found.digests) == 2

    (metadata_file,) = (tmp_path / "checkpoints").rglob("_metadata")
    for path in metadata_file.parent.iterdir():
        if path.name != "_metadata":
            path.unlink()
    lacking = _reading(spark, tmp_path / "checkpoints")
    assert lacking.unparsed_inputs > 0
    assert any("cannot be read: No such file" in note for note in lacking.notes)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _another_version(path: Path) -> None:
    path.write_bytes(metadata(2, {}, version=7))


def _without_source(path: Path) -> None:
    path.write_bytes(metadata(2, {}))


def _another_number(path: Path) -> None:
    path.write_bytes(metadata(3, {SOURCE: {"SourceReaderState": [split("orders", 0, 9)]}}))


def _twice(path: Path) -> None:
    path.write_bytes(metadata(2, {SOURCE: {"SourceReaderState": [split("orders", 0, 9)] * 2}}))


def _unaligned(path: Path) -> None:
    channels = bytes(2) + b"\0\0\0\1" + bytes(4)
    path.write_bytes(metadata(2, {SOURCE: {"SourceReaderState": [split("orders", 0, 9)]}}, rest=channels))


def _link_out(path: Path) -> None:
    elsewhere = path.parents[3] / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def _file_out(path: Path) -> None:
    (path.parents[3] / "elsewhere").write_bytes(bytes(64))
    states = {SOURCE: {"SourceReaderState": [split("orders", 0, 9)]}}
    path.write_bytes(metadata(2, states, below="../../../elsewhere"))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_cut, "properties are not whole"),
        (_another_version, "found version 7"),
        (_without_source, "found none that keeps positions"),
        (_another_number, "expected checkpoint 2, found 3"),
        (_twice, "orders-0 twice"),
        (_unaligned, "unaligned"),
        (_link_out, "a link out of the folder"),
        (_file_out, "a link out of the folder"),
        (_pipe, "a named pipe"),
        (_folder, "a folder"),
    ],
)
def test_a_damaged_checkpoint_does_not_cover_and_is_named(
    spark: SparkSession, checkpoints: Path, damage: Callable[[Path], None], reason: str
) -> None:
    """What is wrong with it stands beside its name, and the other checkpoints are read."""
    path = checkpoints / JOB / "chk-2" / "_metadata"
    damage(path)

    found = _reading(spark, checkpoints)

    assert found.unparsed_inputs > 0
    notes = [note for note in found.notes if f"checkpoints/{JOB}/chk-2" in note]
    assert any(reason in note for note in notes), found.notes
    assert {row[0] for row in rows_of(found, "committed_offset")} == {5, 12, 4}


def test_of_several_sources_the_contract_names_one(spark: SparkSession, checkpoints: Path) -> None:
    """By its uid or its name, also without what Flink puts before it."""
    other = ("Source: refunds", "")
    states = {
        SOURCE: {"SourceReaderState": [split("orders", 0, 20)]},
        other: {"SourceReaderState": [split("refunds", 0, 7)]},
        ("Source: files", "files"): {"SourceReaderState": [b"\0\0\0\1\0\0\0\2/x"]},
    }
    shutil.rmtree(checkpoints / JOB)
    written(checkpoints / JOB / "chk-1" / "_metadata", metadata(1, states), _at(1))

    with pytest.raises(SourceError, match="as Source: refunds, input read Kafka"):
        _reading(spark, checkpoints)
    assert rows_of(_reading(spark, checkpoints, source="input"), "committed_offset") == [(20,)]
    assert rows_of(_reading(spark, checkpoints, source="refunds"), "committed_offset") == [(7,)]
    assert _reading(spark, checkpoints, source="files").unparsed_inputs > 0
    assert _reading(spark, checkpoints, source="elsewhere").unparsed_inputs > 0


@pytest.mark.parametrize("version", [4, 5, 6])
def test_each_version_of_the_metadata_has_the_same_positions(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    """As Flink 1.18 to 2.3 write them; the source is named by its uid or its id in all of them."""
    folder = tmp_path / "checkpoints"
    for number, offset in enumerate((5, 9), start=1):
        write_checkpoint(folder, number, {0: offset}, _at(number), version=version)

    for named in ({}, {"source": "input"}, {"source": id_of_uid("input")}):
        found = _reading(spark, folder, **named)
        assert found.unparsed_inputs == 0
        assert rows_of(found, "topic", "partition", "committed_offset") == [
            ("orders", 0, 5),
            ("orders", 0, 9),
        ]
    by_name = _reading(spark, folder, source="Source: input")
    assert (by_name.unparsed_inputs == 0) == (version > 4)
    assert version > 4 or any("Flink before 2.0 writes no names" in note for note in by_name.notes)


def test_a_job_of_which_flink_was_upgraded_has_one_source(spark: SparkSession, checkpoints: Path) -> None:
    """Its older checkpoints know the operator by its id, the newer ones by its name as well."""
    write_checkpoint(checkpoints, 1, {0: 5, 1: -2}, _at(1), version=4)
    write_checkpoint(checkpoints, 2, {0: 9, 1: 2}, _at(2), version=5)

    found = _reading(spark, checkpoints)

    assert found.unparsed_inputs == 0
    assert rows_of(found, "committed_offset") == [(12,), (2,), (4,), (5,), (9,)]


def test_of_several_sources_without_names_the_ids_are_told(spark: SparkSession, tmp_path: Path) -> None:
    """A uid from the contract finds its operator all the same; the other one's partitions are not read."""
    states = {
        SOURCE: {"SourceReaderState": [split("orders", 0, 20)]},
        ("Source: refunds", "refunds"): {"SourceReaderState": [split("refunds", 0, 7)]},
    }
    content = metadata(1, states, version=4)
    written(tmp_path / "checkpoints" / JOB / "chk-1" / "_metadata", content, _at(1))

    ids = ", ".join(sorted(map(id_of_uid, ("input", "refunds"))))
    with pytest.raises(SourceError, match=f"{ids} read Kafka"):
        _reading(spark, tmp_path / "checkpoints")
    found = _reading(spark, tmp_path / "checkpoints", source="refunds")
    assert found.unparsed_inputs == 0
    assert rows_of(found, "topic", "committed_offset") == [("refunds", 7)]


@pytest.mark.parametrize(
    "version", ["1.18/savepoint", "1.20/savepoint", "1.20/files", "2.0/savepoint", "2.0/files"]
)
def test_what_earlier_versions_of_flink_wrote_is_read(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    """Savepoints, and a checkpoint with its states in files beside it."""
    recorded = Path(__file__).resolve().parents[2] / "flink_files" / version
    shutil.copytree(recorded, tmp_path / "checkpoints")

    found = _reading(spark, tmp_path / "checkpoints", source="input")

    name = f"f{version.replace('.', '').replace('/', '-')}-in"
    expected = 20 if version.endswith("files") else 30
    assert (found.unparsed_inputs, rows_of(found, "topic", "committed_offset")) == (0, [(name, expected)])


@pytest.mark.parametrize("made", ["", "checkpoints", f"checkpoints/{JOB}/chk-1"])
def test_no_checkpoint_is_no_evidence(spark: SparkSession, tmp_path: Path, made: str) -> None:
    """Neither is an incomplete one."""
    (tmp_path / made).mkdir(parents=True, exist_ok=True)

    found = _reading(spark, tmp_path / "checkpoints")

    assert found.unparsed_inputs > 0
    assert found.notes[0] == "checkpoints: no checkpoint of a Flink job, a folder with _metadata"


def test_another_ledger_and_another_file_system_are_refused(spark: SparkSession, checkpoints: Path) -> None:
    """A checkpoint holds positions, and is read from this machine."""
    with pytest.raises(SourceError, match="is evidence for committed"):
        _evidence(spark, checkpoints, ledger="delivered")
    with pytest.raises(SourceError, match="s3a://bucket/checkpoints; copy it here"):
        _evidence(spark, checkpoints, path="s3a://bucket/checkpoints")


@pytest.mark.parametrize("name", ["SourceReaderState", "SourceReaderStatf"])
def test_a_subtask_without_the_state_that_others_have_is_a_fault(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """One changed letter in the name of its state took its partitions away without a word."""
    one, other = ([split("orders", partition, 5)] for partition in (0, 1))
    content = metadata(1, {SOURCE: {"SourceReaderState": one}}, others=[{name: other}])
    written(tmp_path / "checkpoints" / JOB / "chk-1" / "_metadata", content, _at(1))

    found = _reading(spark, tmp_path / "checkpoints")

    assert (len(rows_of(found, "topic")), found.unparsed_inputs) == ((2, 0) if name[-1] == "e" else (0, 1))


@pytest.mark.parametrize("file", ["a\0b", "n" * 300, "../../x"])
def test_a_state_in_a_file_of_no_name_is_a_fault(spark: SparkSession, tmp_path: Path, file: str) -> None:
    """A zero byte in it ended the run, and not in a fault."""
    states = {SOURCE: {"SourceReaderState": [split("orders", 0, 5)]}}
    content = metadata(1, states, below=file)
    written(tmp_path / "checkpoints" / JOB / "chk-1" / "_metadata", content, _at(1))

    found = _reading(spark, tmp_path / "checkpoints")

    assert (len(rows_of(found, "topic")), found.unparsed_inputs) == (0, 1)
