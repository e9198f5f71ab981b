"""A topic as evidence of what was sent or came out does not cover the time of records that the broker removed."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of
from tests.engine.sources.test_kafka_segments import COPIED, ID, LOG
from tests.kafka_batches import batch, record

from tieout.engine.evidence import Evidence

ANSWERS = Path(__file__).parents[2] / "pulsar_answers"
AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
_MOMENT = timedelta(milliseconds=1)
_MILLIS = int(AT.timestamp() * 1000)


def _evidence(
    spark: SparkSession, folder: Path, ledger: str = "produced", coverage: Any = None, **source: Any
) -> Evidence:
    reported = {} if coverage is None else {"coverage": coverage}
    log = {"kind": "kafka_segments", "path": "log", "topic": "orders", "taken_at": "now", **source}
    time = {"produced": "attempted_at", "delivered": "processed_at", "dead_letters": "at"}
    columns = {"message_id": ID, **({time[ledger]: "source_timestamp"} if ledger in time else {})}
    return evidence_of(spark, folder, ledger, source=log, columns=columns, **reported)


def _write(folder: Path, *batches: bytes, start: int = 0) -> None:
    """Write a broker's folder with one partition, whose log begins at the offset."""
    segment = folder / "log" / "orders-0"
    segment.mkdir(parents=True)
    (segment / f"{0:020}.log").write_bytes(b"".join(batches))
    (folder / "log" / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")


def _batch(offset: int, minutes: int, *deltas: int, last: int | None = None) -> bytes:
    """A batch with a record at each of these distances from its first offset, a minute apart."""
    records = [
        record(b'{"id": "m%d"}' % (offset + delta), delta=delta, delta_ms=60_000 * delta) for delta in deltas
    ]
    return batch(records, base_offset=offset, last_delta=last, first_ms=_MILLIS + 60_000 * minutes)


def test_a_whole_topic_is_complete_from_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing was removed of a log that begins at 0 and has a record at every offset."""
    _write(tmp_path, _batch(0, 0, 0, 1, 2))

    coverage = _evidence(spark, tmp_path).coverage

    assert (coverage.covers_from, coverage.complete_until, coverage.notes) == (None, NOW, ())


@pytest.mark.parametrize("ledger", ["produced", "delivered", "dead_letters"])
def test_a_topic_whose_beginning_is_gone_is_complete_since_the_first_record_that_is_left(
    spark: SparkSession, tmp_path: Path, ledger: str
) -> None:
    """What was removed may have the very time of that record."""
    _write(tmp_path, _batch(0, 0, 0, 1), _batch(2, 2, 0, 1), start=3)

    coverage = _evidence(spark, tmp_path, ledger).coverage

    assert coverage.covers_from == AT + timedelta(minutes=3) + _MOMENT
    assert "orders-0: records before offset 3 were removed" in coverage.notes[-1]


def test_a_log_says_itself_which_positions_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    """They lie below its start, so it covers as before."""
    _write(tmp_path, _batch(0, 0, 0, 1), start=1)

    assert _evidence(spark, tmp_path, "log").coverage.covers_from is None


@pytest.mark.parametrize(("coverage", "begins"), [(None, NOW), ("declared", None)])
def test_a_topic_that_is_empty_by_now_covers_where_its_contract_says_so(
    spark: SparkSession, tmp_path: Path, coverage: str | None, begins: datetime | None
) -> None:
    """No record says until when the others were written; `declared` is its author's word."""
    _write(tmp_path, _batch(0, 0, 0, 1), start=2)

    found = _evidence(spark, tmp_path, coverage=coverage).coverage

    assert found.covers_from == (begins or datetime(2026, 11, 20, 9, 45, tzinfo=UTC))
    assert "no later record says until when" in found.notes[-1]


def test_a_compacted_topic_is_complete_behind_its_last_hole(spark: SparkSession, tmp_path: Path) -> None:
    """Between two batches, and within one whose last offsets the cleaner kept in its head."""
    _write(tmp_path, _batch(0, 0, 0), _batch(3, 3, 0, 2, last=2), _batch(6, 6, 0, 1))
    behind = _evidence(spark, tmp_path).coverage
    shutil.rmtree(tmp_path / "log")
    _write(tmp_path, _batch(0, 0, 0), _batch(1, 1, 0, last=4))
    at_the_end = _evidence(spark, tmp_path).coverage

    assert behind.covers_from == AT + timedelta(minutes=5) + _MOMENT
    assert at_the_end.covers_from == NOW


def test_markers_are_no_holes_in_a_brokers_own_files(spark: SparkSession) -> None:
    """They are there, so that a topic with transactions is whole; its other partition begins at offset 2."""
    found = _evidence(
        spark,
        LOG.parent,
        "delivered",
        path="log",
        topic="payments",
        taken_at=COPIED,
        cleanup_policy="compact",
    )

    assert found.coverage.covers_from is not None
    (removed,) = [note for note in found.coverage.notes if "removed" in note]
    assert removed.startswith("payments-1: ")


def test_what_lay_before_a_pulsar_topic_s_first_ledger_nobody_knows(spark: SparkSession) -> None:
    """Ledgers that were acknowledged are deleted, and their numbers do not begin at 0."""
    source = {"kind": "pulsar", "path": ANSWERS.name, "topic": "orders", "taken_at": "now"}
    columns = {"message_id": "cast(value as string)", "processed_at": "source_timestamp"}
    found = evidence_of(spark, ANSWERS.parent, "delivered", source=source, columns=columns)
    first = found.rows.agg({"processed_at": "min"}).collect()[0][0].astimezone(UTC)

    assert found.coverage.covers_from == first + _MOMENT
    assert any("does not say what lay before" in note for note in found.coverage.notes)
