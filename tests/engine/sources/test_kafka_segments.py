"""Segment files that a real broker wrote, read as a ledger: transactions, bounds, damage, and what lies beside them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.engine.sources.builders import NOW, evidence_of, reading_of, rows_of
from tests.kafka_batches import batch, record

from tieout.engine.evidence import Evidence
from tieout.engine.sources import kafka_log
from tieout.engine.sources.source import Reading
from tieout.errors import SourceError

LOG = Path(__file__).parents[2] / "kafka_files" / "log"
ID = "get_json_object(cast(value as string), '$.id')"
COPIED = "2026-11-21T19:17:00Z"
ABORTED = "aborted"


def _source(path: str = "log", topic: str = "payments", **fields: Any) -> dict[str, Any]:
    return {"kind": "kafka_segments", "path": path, "topic": topic, **fields}


def _evidence(spark: SparkSession, folder: Path, ledger: str = "log", **source: Any) -> Evidence:
    columns = {"message_id": ID, "payload_hash": "sha2(value, 256)", "key_hash": "sha2(key, 256)"}
    return evidence_of(spark, folder, ledger, source=_source(**source), columns=columns)


def _reading(spark: SparkSession, folder: Path, **source: Any) -> Reading:
    return reading_of(spark, folder, "log", _source(**source))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the broker's log directory, to be damaged; the folder that it lies in."""
    shutil.copytree(LOG, tmp_path / "log")
    return tmp_path


@pytest.fixture(scope="module")
def payments(spark: SparkSession) -> Evidence:
    """The topic `payments`, as it is."""
    return _evidence(spark, LOG.parent, taken_at=COPIED, cleanup_policy="delete", partitions=2)


def _states(evidence: Evidence | Reading, partition: int = 0) -> dict[int, str]:
    assert evidence.rows is not None
    rows: list[Row] = (
        evidence.rows.where(f"partition = {partition}").select("offset", "transaction_state").collect()
    )
    return {row["offset"]: row["transaction_state"] for row in rows}


def test_every_record_has_its_transaction_s_state_also_where_the_marker_is_in_a_later_segment(
    payments: Evidence,
) -> None:
    """Plain records have none; a marker in the next segment decides; what no marker follows is open."""
    states = _states(payments)

    assert len(states) == 48
    assert {states[offset] for offset in (*range(6), 47)} == {"none"}
    assert {states[offset] for offset in (*range(6, 19), *range(32, 45))} == {"committed"}
    assert {states[offset] for offset in range(19, 32)} == {ABORTED}
    assert {states[45], states[46]} == {"open"}


def test_the_bounds_are_those_of_the_files(payments: Evidence) -> None:
    """The start is the checkpoint's, the last stable offset the open transaction's, the end behind the last record."""
    bounds = rows_of(
        payments, "partition", "log_start_offset", "last_stable_offset", "end_offset", "cleanup_policy"
    )

    assert set(bounds) == {(0, 0, 45, 48, "delete"), (1, 2, 4, 4, "delete")}
    assert len(_states(payments, partition=1)) == 2
    assert payments.coverage.complete_until is not None
    assert payments.coverage.complete_until.isoformat() == "2026-11-21T19:17:00+00:00"


def test_records_have_what_only_the_broker_knows(payments: Evidence) -> None:
    """Producer, -1 for a plain one, epoch, sequence and topic id; a control record has no key, no value and no id."""
    rows = {row["offset"]: row for row in payments.rows.where("partition = 0").collect()}

    assert (rows[0]["broker_producer_id"], rows[0]["broker_sequence"], rows[0]["message_id"]) == (
        -1,
        None,
        "plain-0",
    )
    assert (rows[5]["producer_epoch"], rows[5]["broker_sequence"], rows[5]["leader_epoch"]) == (0, 2, 0)
    assert rows[2]["payload_hash"] is None
    assert rows[2]["key_hash"] is not None
    assert (rows[18]["is_control"], rows[18]["message_id"], rows[18]["key_hash"]) == (True, None, None)
    assert {row["topic_id"] for row in rows.values()} == {_topic_id()}
    assert payments.coverage.unparsed == 0
    assert len(payments.coverage.digests) == 5


def _topic_id() -> str:
    return (LOG / "payments-0" / "partition.metadata").read_text().split("topic_id: ")[1].strip()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(spark: SparkSession, codec: str) -> None:
    """What the client compressed and what the broker did both come out."""
    found = reading_of(spark, LOG.parent, "log", _source(f"log/codec-{codec}-0", f"codec-{codec}"))

    assert found.rows is not None
    rows = found.rows.selectExpr(
        "offset", "trim(substring_index(cast(value as string), ' ', 1))", "headers[0].key"
    ).collect()
    assert sorted(map(tuple, rows)) == [
        (offset, f"{(codec, 'none')[offset // 3]}-{offset % 3}", "codec") for offset in range(6)
    ]


def test_a_torn_tail_is_an_unreadable_row_and_the_log_ends_before_it(spark: SparkSession, copy: Path) -> None:
    """A batch that is cut off is counted and named with file and byte; a tolerance covers it."""
    segment = copy / "log" / "payments-0" / "00000000000000000047.log"
    segment.write_bytes(segment.read_bytes()[:-20])

    found = _evidence(spark, copy)

    assert found.coverage.unparsed == 1
    assert not found.coverage.is_within_tolerance
    assert found.rows.agg({"end_offset": "max"}).head()[0] == 47  # type: ignore[index]
    assert any(
        "payments-0/00000000000000000047.log: a batch begins at byte 0 and is cut off at byte 97" in note
        for note in found.coverage.notes
    )


def test_a_batch_whose_checksum_fails_is_lost_whatever_is_tolerated(spark: SparkSession, copy: Path) -> None:
    """One changed byte loses its batch; the next ones are read, and the ledger proves nothing any more."""
    segment = copy / "log" / "payments-0" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[100] ^= 1
    segment.write_bytes(content)

    found = evidence_of(spark, copy, "log", source=_source(), tolerance={"unparsed_ratio": 0.9})

    assert min(_states(found)) == 2
    assert not found.coverage.is_within_tolerance
    assert any(
        "the batch at byte 0, offsets from 0: expected the checksum" in note for note in found.coverage.notes
    )


def test_a_missing_segment_is_missed_unless_the_topic_is_compacted(spark: SparkSession, copy: Path) -> None:
    """A hole between two segments is lost evidence; in a compacted topic it is how the log is."""
    (copy / "log" / "payments-0" / "00000000000000000031.log").unlink()

    found = _reading(spark, copy)
    compacted = _reading(spark, copy, cleanup_policy="compact")

    assert "payments-0: the segments with offsets 31 to 46 are missing" in found.notes
    assert found.unparsed_inputs > 0
    assert compacted.unparsed_inputs == 0
    assert _states(found)[19] == "open"


def test_a_partition_that_is_not_there_is_missed(spark: SparkSession, copy: Path) -> None:
    """Neither a number in between nor one of the contract's may be without its folder."""
    (copy / "log" / "payments-0").rename(copy / "log" / "payments-3")

    found = _reading(spark, copy, partitions=5)

    missed = [note.split(":")[0] for note in found.notes if "is not behind the path" in note]
    assert missed == ["payments-0", "payments-2", "payments-4"]
    assert found.unparsed_inputs > 0


def test_partitions_that_are_not_there_are_reported_in_ranges(spark: SparkSession, copy: Path) -> None:
    """A folder may have any number, and a contract may ask for as many: each is counted, and none has a line."""
    (copy / "log" / "payments-0").rename(copy / "log" / "payments-2000000000")

    found = _reading(spark, copy, partitions=2_147_483_647)

    missed = [note for note in found.notes if "not behind the path" in note]
    assert missed == [
        "payments-0: the log of this partition is not behind the path",
        "payments-2 to payments-1999999999: the logs of these are not behind the path",
        "payments-2000000001 to payments-2147483646: the logs of these are not behind the path",
    ]
    assert found.unparsed_inputs == 2_147_483_645


def test_unreadable_records_are_counted_and_have_one_row(spark: SparkSession, tmp_path: Path) -> None:
    """A batch says how many records it has, and is one row where they do not decode."""
    (tmp_path / "log" / "payments-0").mkdir(parents=True)
    content = batch([record(b"a")]) + batch(
        [record(b"b")], base_offset=1, count=2**31 - 1, last_delta=2**31 - 1
    )
    (tmp_path / "log" / "payments-0" / f"{0:020}.log").write_bytes(content)

    found = evidence_of(spark, tmp_path, "log", source=_source(), tolerance={"unparsed_ratio": 0.9})

    assert (found.coverage.rows, found.coverage.unparsed) == (1, 2**31 - 1)
    assert not found.coverage.is_within_tolerance
    (note,) = [note for note in found.coverage.notes if "do not decode" in note]
    assert note.endswith("(2147483647 records)")
    assert not any("more rows could not be read" in note for note in found.coverage.notes)


def test_an_older_record_format_is_refused_by_name(spark: SparkSession, copy: Path) -> None:
    """A segment of format 1 is no evidence, and the note says what it is."""
    segment = copy / "log" / "payments-1" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[16] = 1
    segment.write_bytes(content)

    found = _evidence(spark, copy)

    assert any(
        "expected record format 2 at offset 0, found format 1" in note for note in found.coverage.notes
    )
    assert not found.coverage.is_within_tolerance


def test_a_partition_without_records_still_states_its_bounds(spark: SparkSession, copy: Path) -> None:
    """Retention emptied the log: its start is its end, and a row without an offset says so."""
    folder = copy / "log" / "payments-1"
    (folder / "00000000000000000000.log").unlink()
    (folder / "00000000000000000004.log").touch()
    (copy / "log" / "log-start-offset-checkpoint").write_text("0\n0\n")

    found = _evidence(spark, copy)

    bounds = rows_of(found, "partition", "offset", "log_start_offset", "end_offset")
    assert (1, None, 4, 4) in bounds
    assert found.coverage.is_within_tolerance


def test_segments_that_are_not_there_below_the_first_are_not_taken_for_deleted(
    spark: SparkSession, copy: Path
) -> None:
    """The checkpoint says that the log starts before them: remote storage has them, or nobody copied them."""
    (copy / "log" / "payments-0" / "00000000000000000000.log").unlink()
    (copy / "log" / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 3\n")

    found = _reading(spark, copy)

    bounds = rows_of(found, "partition", "log_start_offset")
    assert (0, 3) in bounds
    assert any("the log starts at offset 3, the first segment is" in note for note in found.notes)
    assert found.unparsed_inputs > 0


def test_a_broker_that_has_just_started_is_read(spark: SparkSession, copy: Path, payments: Evidence) -> None:
    """Its checkpoints are empty for half a minute, and a segment that it has just begun is."""
    for name in ("log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (copy / "log" / name).write_text("")
    (copy / "log" / "payments-0" / "leader-epoch-checkpoint").write_text("0\n")
    for ending in ("log", "index", "timeindex", "snapshot"):
        (copy / "log" / "payments-0" / f"{48:020}.{ending}").touch()

    found = _evidence(spark, copy)

    assert _states(found) == _states(payments)
    assert found.coverage.unparsed == 0
    assert found.coverage.is_within_tolerance


def test_what_is_not_there_is_absent(spark: SparkSession, tmp_path: Path) -> None:
    """A path without the topic's folders is an absent ledger that says what was looked for."""
    found = _evidence(spark, tmp_path)

    assert not found.coverage.is_present
    assert found.coverage.notes[0] == "log: no folder payments-<partition> of a broker's log"


def test_two_copies_of_a_partition_are_refused(spark: SparkSession, copy: Path) -> None:
    """Which of two replicas is the log only their user knows."""
    shutil.copytree(copy / "log", copy / "other")

    with pytest.raises(
        SourceError, match="expected one folder for partition 0, found log/payments-0, other/payments-0"
    ):
        evidence_of(spark, copy, "log", source={**_source(), "path": ["log", "other"]})


def test_much_evidence_is_looked_through_beside_the_data(
    spark: SparkSession, payments: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark's tasks find of the pieces is what is found here of a few."""
    monkeypatch.setattr(kafka_log, "SMALL_BYTES", 0)

    found = _evidence(spark, LOG.parent, taken_at=COPIED, cleanup_policy="delete", partitions=2)

    assert found.coverage == payments.coverage
    assert rows_of(found, *found.rows.columns) == rows_of(payments, *payments.rows.columns)


def test_preallocated_space_is_no_damage(spark: SparkSession, copy: Path) -> None:
    """Zeros behind the last batch are space that the broker took in advance."""
    segment = copy / "log" / "payments-0" / "00000000000000000047.log"
    segment.write_bytes(segment.read_bytes() + bytes(500))

    found = _evidence(spark, copy)

    assert found.coverage.unparsed == 0
    assert len(_states(found)) == 48


def test_an_output_topic_s_positions_are_not_taken_for_the_message_s(spark: SparkSession) -> None:
    """As `delivered` a record's own place has other names, markers are no effects, and states are kept."""
    found = evidence_of(
        spark,
        LOG.parent,
        "delivered",
        source=_source(),
        columns={"message_id": ID, "processed_at": "source_timestamp"},
        where="value is not null",
    )

    assert "offset" not in found.present
    assert found.rows.where("message_id is null").isEmpty()
    assert {row["transaction_state"] for row in found.rows.collect()} == {
        "none",
        "committed",
        ABORTED,
        "open",
    }


@pytest.mark.parametrize("ledger", ["dead_letters", "filtered", "staged"])
@pytest.mark.parametrize("kind", ["kafka_segments", "kafka_dump_log"])
def test_what_sets_aside_shows_what_readers_of_committed_data_see(
    spark: SparkSession, ledger: str, kind: str
) -> None:
    """Aborted records are told apart, and what lies above the last stable offset is open, in whatever state it is."""
    source = (
        _source(partitions=2)
        if kind == "kafka_segments"
        else {"kind": kind, "path": "text/payments-0.dump.txt"}
    )
    found = evidence_of(
        spark,
        LOG.parent,
        ledger,
        source=source,
        columns={"message_id": ID, "offset": "source_offset", "partition": "source_partition"},
    )

    states = {row["offset"]: row["transaction_state"] for row in found.rows.where("partition = 0").collect()}
    assert {states[offset] for offset in range(6)} == {"none"}
    assert {states[offset] for offset in (*range(6, 18), *range(32, 44))} == {"committed"}
    assert {states[offset] for offset in range(19, 31)} == {ABORTED}
    assert {states[offset] for offset in (45, 46, 47)} == {"open"}


def test_it_is_no_evidence_for_reads(spark: SparkSession) -> None:
    """A log does not say who read it."""
    with pytest.raises(SourceError, match="kafka_segments is evidence for one of log, produced, delivered"):
        evidence_of(spark, LOG.parent, "read", source=_source())


def test_without_a_time_of_the_copy_nothing_is_claimed(spark: SparkSession) -> None:
    """Who does not say when the files were taken gets neither a coverage nor observed bounds."""
    found = _evidence(spark, LOG.parent)

    assert found.coverage.complete_until is None
    assert "observed_at" not in found.present
    assert _evidence(spark, LOG.parent, taken_at="now").coverage.complete_until == NOW
