"""What a Flink job's checkpoints count as written, as the ledger `staged`: committed, aborted and open."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of
from tests.engine.sources.flink import JOB, SINK, committer, metadata, transaction, write_checkpoint, written
from tests.kafka_batches import batch, marker, record

from tieout.engine.evidence import Evidence
from tieout.engine.sources.flink_folders import checkpoints_in
from tieout.engine.sources.flink_prepared import _prepared
from tieout.engine.systems.flink_operators import id_of_uid
from tieout.engine.systems.flink_states import COMMITTER_STATE, OLDER_SINKS
from tieout.errors import SourceError

_AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
_TRANSACTIONAL = 0x10
_ABORT, _COMMIT = 0, 1


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Three checkpoints with a transaction each: committed, aborted and open; one more was never prepared."""
    log = b""
    for place, (producer, kind) in enumerate(((11, _COMMIT), (12, _ABORT), (13, None), (14, _ABORT))):
        values = [record(b'{"id":"m%d"}' % (2 * place + n), delta=n) for n in range(2)]
        log += batch(values, base_offset=3 * place, attributes=_TRANSACTIONAL, producer=producer)
        if kind is not None:
            log += marker(kind, base_offset=3 * place + 2, producer=producer)
    written(tmp_path / "log" / "out-0" / ("0" * 20 + ".log"), log, _AT)
    for number, producer in enumerate((11, 12, 13), start=1):
        write_checkpoint(tmp_path / "checkpoints", number, {0: number}, _AT, transaction(producer, 0))
    return tmp_path


def _evidence(spark: SparkSession, folder: Path, ledger: str = "staged", **source: Any) -> Evidence:
    known = {
        "kind": "flink_prepared",
        "path": "checkpoints",
        "segments": "log",
        "topic": "out",
        "taken_at": "now",
    }
    columns = {"message_id": "get_json_object(string(value), '$.id')"}
    return evidence_of(spark, folder, ledger, source={**known, **source}, columns=columns)


def test_a_prepared_record_says_in_which_checkpoint_and_what_became_of_it(
    spark: SparkSession, prepared: Path
) -> None:
    """Those of other transactions are not among them; a note counts the transactions."""
    found = _evidence(spark, prepared)

    assert rows_of(found, "message_id", "transaction_state", "reason") == [
        ("m0", "committed", "prepared in checkpoint 1, committed"),
        ("m1", "committed", "prepared in checkpoint 1, committed"),
        ("m2", "aborted", "prepared in checkpoint 2, aborted"),
        ("m3", "aborted", "prepared in checkpoint 2, aborted"),
        ("m4", "open", "prepared in checkpoint 3, open"),
        ("m5", "open", "prepared in checkpoint 3, open"),
    ]
    assert found.coverage.is_sound
    assert found.coverage.notes[0] == (
        "3 transactions were prepared: 1 aborted with 2 records, 1 committed with 2 records, 1 open with 2 records"
    )


def test_a_transaction_without_a_record_is_reported(spark: SparkSession, prepared: Path) -> None:
    """The sink had nothing to write, or writes another topic as well; its epoch is another's."""
    write_checkpoint(prepared / "checkpoints", 4, {0: 4}, _AT, transaction(11, 1), transaction(99, 0))

    found = _evidence(spark, prepared)

    assert found.coverage.notes[0].endswith("2 without a record in the topic")
    assert len(rows_of(found, "message_id")) == 6


def test_of_an_epoch_with_two_transactions_it_is_not_known_which_was_prepared(
    spark: SparkSession, prepared: Path
) -> None:
    """Before Kafka 4 a producer keeps its epoch: its reason does not begin as that of a prepared one."""
    file = prepared / "log" / "out-0" / ("0" * 20 + ".log")
    more = batch([record(b'{"id":"m8"}')], base_offset=12, attributes=_TRANSACTIONAL, producer=12)
    file.write_bytes(file.read_bytes() + more + marker(_COMMIT, base_offset=13, producer=12))

    reasons = dict(rows_of(_evidence(spark, prepared), "message_id", "reason"))

    assert reasons["m2"] == "one of the epoch's transactions was prepared in checkpoint 2, aborted"
    assert reasons["m0"] == "prepared in checkpoint 1, committed"


def _read_without_spark(
    folder: Path, sink: str | None = None
) -> tuple[dict[tuple[int, int], int], tuple[str, ...]]:
    """The transactions that the checkpoints prepared, and the faults, as the reader finds them before the topic."""
    checkpoints = checkpoints_in(
        folder / "checkpoints",
        folder,
        COMMITTER_STATE,
        refused={} if sink else OLDER_SINKS,
        has_own_times=True,
    )
    transactions, faults, _ = _prepared(checkpoints.read, sink)
    return transactions, (*checkpoints.faults, *faults)


_THREE = {(11, 0): 1, (12, 0): 2, (13, 0): 3}
"""The transactions of the fixture, each with its checkpoint."""


def test_another_kind_of_sink_is_passed_over_unless_it_is_named(spark: SparkSession, prepared: Path) -> None:
    """A job may write files beside its topic."""
    states = {
        SINK: {"streaming_committer_raw_states": [committer(4, transaction(14, 0))]},
        ("files: Committer", "Sink Committer: files"): {
            "streaming_committer_raw_states": [committer(4, b"part-0")]
        },
    }
    written(prepared / "checkpoints" / JOB / "chk-4" / "_metadata", metadata(4, states), _AT)

    found = _evidence(spark, prepared)
    assert found.coverage.is_sound
    assert any(note.startswith("files: Committer prepares something else") for note in found.coverage.notes)
    for name in ("output", "Sink Committer: output", "output: Committer"):
        assert (name, *_read_without_spark(prepared, name)) == (name, {**_THREE, (14, 0): 4}, ())
    named = _evidence(spark, prepared, sink="files")
    assert not named.coverage.is_sound
    assert any("another sink's state" in note for note in named.coverage.notes)


def test_transactions_of_earlier_versions_of_flink_are_read(spark: SparkSession, prepared: Path) -> None:
    """Their metadata has no names: the sink is found by its uid, with or without Flink's prefix, and by its id."""
    for versions in ((0, 0), (1, 1)):
        for number, producer in enumerate((11, 12, 13), start=1):
            states = {
                SINK: {COMMITTER_STATE: [committer(number, transaction(producer, 0), versions=versions)]}
            }
            path = prepared / "checkpoints" / JOB / f"chk-{number}" / "_metadata"
            written(path, metadata(number, states, version=4), _AT)
        for named in (None, "output", "Sink Committer: output", id_of_uid(SINK[1])):
            assert (versions, named, *_read_without_spark(prepared, named)) == (versions, named, _THREE, ())
        transactions, faults = _read_without_spark(prepared, "output: Committer")
        assert (versions, transactions, len(faults)) == (versions, {}, 3)
        assert "Flink before 2.0 writes no names" in faults[0]

    found = _evidence(spark, prepared, sink="output")
    assert found.coverage.is_sound
    assert len(rows_of(found, "message_id")) == 6


def test_a_producer_of_the_older_kind_is_a_fault_unless_another_sink_is_named(
    spark: SparkSession, prepared: Path
) -> None:
    """Its transactions are in a state of another form, and would be missing without a word."""
    states = {
        SINK: {COMMITTER_STATE: [committer(4, transaction(14, 0))]},
        ("Sink: older", "older"): {"next-transactional-id-hint-v2": [b"kryo"]},
    }
    written(prepared / "checkpoints" / JOB / "chk-4" / "_metadata", metadata(4, states, version=4), _AT)

    found = _evidence(spark, prepared)
    assert not found.coverage.is_sound
    assert any("is a FlinkKafkaProducer" in note for note in found.coverage.notes)
    assert _read_without_spark(prepared, "output") == ({**_THREE, (14, 0): 4}, ())


def test_what_cannot_be_read_is_named_and_not_covered(spark: SparkSession, prepared: Path) -> None:
    """A checkpoint that is cut off, a torn log, a sink that no checkpoint has."""
    assert not _evidence(spark, prepared, topic="elsewhere").coverage.is_sound
    assert not _evidence(spark, prepared, path="elsewhere").coverage.is_sound
    assert not _evidence(spark, prepared, sink="elsewhere").coverage.is_sound

    path = prepared / "checkpoints" / JOB / "chk-2" / "_metadata"
    path.write_bytes(path.read_bytes()[:-1])
    log = prepared / "log" / "out-0" / ("0" * 20 + ".log")
    log.write_bytes(log.read_bytes()[:-5])
    found = _evidence(spark, prepared)

    assert found.coverage.unparsed == 2
    assert not found.coverage.is_sound
    assert any(f"{JOB}/chk-2/_metadata: cut off" in note for note in found.coverage.notes)
    assert any("is cut off at byte" in note for note in found.coverage.notes)


def test_checkpoints_that_are_not_retained_are_not_covered(spark: SparkSession, prepared: Path) -> None:
    """What they prepared is not known."""
    (prepared / "checkpoints" / JOB / "chk-1" / "_metadata").unlink()

    assert _evidence(spark, prepared).coverage.covers_from == _AT


def test_another_ledger_is_refused(spark: SparkSession, prepared: Path) -> None:
    """What was prepared is no output."""
    with pytest.raises(SourceError, match="is evidence for staged only"):
        _evidence(spark, prepared, ledger="delivered")
