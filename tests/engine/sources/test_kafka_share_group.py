"""What a share group is done with, from segments of `__share_group_state`: times, stretches, ids, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, rows_of
from tests.engine.sources.share_state import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    TOPIC_ID,
    key,
    snapshot,
    update,
)
from tests.kafka_batches import batch, record

from tieout.contracts import Contract, KafkaShareGroupSource
from tieout.engine.evidence import Evidence
from tieout.engine.reading import read_evidence
from tieout.engine.sources.kafka_share_group import read
from tieout.engine.sources.source import FAULT, ROW, Reading, Request
from tieout.errors import SourceError
from tieout.model import Ledger

_COLUMNS = ("partition", "first_offset", "committed_offset", "is_individual", "metadata")
_NAME = f"{0:020}.log"
KeyedValue = tuple[bytes, bytes | None]


def _data(folder: Path, *records: KeyedValue, topic_id: str | None = TOPIC_ID) -> Path:
    """Write a broker's log directory with these records, a second apart."""
    state = folder / "data" / "__share_group_state-0"
    state.mkdir(parents=True)
    batches = (
        batch(record(value, key=name), base_offset=offset, first_ms=1_795_168_800_000 + 1000 * offset)
        for offset, (name, value) in enumerate(records)
    )
    (state / _NAME).write_bytes(b"".join(batches))
    own = folder / "data" / "orders-0"
    own.mkdir()
    (own / _NAME).write_bytes(b"")
    if topic_id is not None:
        (own / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return folder


def _source(**options: Any) -> dict[str, Any]:
    known = {
        "kind": "kafka_share_group",
        "path": "data",
        "group": "loader",
        "topic": "orders",
        "partitions": 1,
    }
    return {**known, "taken_at": "2026-11-20T11:30:00Z", **options}


def _contract(folder: Path, ledger: str, source: dict[str, Any]) -> Contract:
    document = contract_of(folder, {}).model_dump(mode="json", exclude_unset=True)
    document |= {"consumption": "queue", "ledgers": {**document["ledgers"], ledger: {"source": source}}}
    return Contract.model_validate_json(json.dumps(document)).located_in(folder)


def _evidence(spark: SparkSession, folder: Path, ledger: str = "committed", **options: Any) -> Evidence:
    contract = _contract(folder, ledger, _source(**options))
    return read_evidence(spark, contract, WINDOW, NOW)[Ledger(ledger)]


def _reading(spark: SparkSession, folder: Path, **options: Any) -> Reading:
    spec = KafkaShareGroupSource.model_validate(_source(**options))
    return read(spec, Request(spark, Ledger.COMMITTED, folder, NOW, group="loader"))


def test_acknowledged_and_archived_stretches_are_rows_and_nothing_else_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What is available, be it released, and what is locked is done with by nobody; the start offset is a prefix."""
    folder = _data(
        tmp_path,
        (key(0), snapshot(-1)),
        (key(1), update(0, (0, 4, ACKNOWLEDGED, 1))),
        (key(1), update(5, (6, 6, ARCHIVED, 5), (7, 8, AVAILABLE, 1), (9, 9, ACQUIRED, 1))),
        (key(1), update(-1, (11, 11, ACKNOWLEDGED, 2))),
        (key(1, partition=1), update(0, (0, 0, ACKNOWLEDGED, 1))),
    )

    found = _evidence(spark, folder)

    assert rows_of(found, *_COLUMNS) == [
        (0, 0, 5, True, "acknowledged, delivered 1 times"),
        (0, 11, 12, True, "acknowledged, delivered 2 times"),
        (0, 6, 7, True, "archived, delivered 5 times"),
        (0, None, 0, False, "start offset"),
        (0, None, 5, False, "start offset"),
        (1, 0, 1, True, "acknowledged, delivered 1 times"),
        (1, None, 0, False, "start offset"),
    ]
    assert found.coverage.is_share_group
    assert found.coverage.unparsed == 0


def test_only_an_acknowledgement_has_a_time_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """What was rejected, and what lies below the start offset, was done with when the record was written, at latest."""
    folder = _data(
        tmp_path, (key(1), update(3, (3, 3, ACKNOWLEDGED, 1), (4, 4, ARCHIVED, 1))), (key(1), update(5))
    )

    rows = _evidence(spark, folder).rows.collect()

    times = {(row["first_offset"], row["committed_offset"]): row["committed_at"] for row in rows}
    assert {place for place, time in times.items() if time is not None} == {(3, 4)}
    assert all((row["committed_at"] is None) != (row["taken_at"] is None) for row in rows)


def test_a_stretch_that_a_later_snapshot_repeats_keeps_its_first_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A snapshot says again what the updates before it said."""
    folder = _data(
        tmp_path,
        (key(1), update(0, (2, 2, ACKNOWLEDGED, 1))),
        (key(0), snapshot(0, (2, 2, ACKNOWLEDGED, 1))),
    )

    found = _evidence(spark, folder)

    rows = found.rows.where("first_offset is not null").collect()
    assert [row["committed_at"].minute * 60 + row["committed_at"].second for row in rows] == [0]


@pytest.mark.parametrize(("epoch", "is_dated"), [(0, True), (7, False)])
def test_a_state_that_was_written_again_has_no_times(
    spark: SparkSession, tmp_path: Path, epoch: int, is_dated: bool
) -> None:
    """A broker writes an idle state again, and drops what was before: the time is not that of acknowledging.

    What the state then changes to has the time of its record, again.
    """
    folder = _data(
        tmp_path,
        (key(0), snapshot(0, (2, 2, ACKNOWLEDGED, 1), epoch=epoch)),
        (key(1), update(0, (3, 3, ACKNOWLEDGED, 1))),
    )

    rows = _evidence(spark, folder).rows.where("first_offset is not null").collect()

    times = {row["first_offset"]: (row["committed_at"] is not None, row["taken_at"] is None) for row in rows}
    assert times == {2: (is_dated, is_dated), 3: (True, True)}


def test_archived_records_may_be_dead_letters_each_a_row(spark: SparkSession, tmp_path: Path) -> None:
    """Only the delivery state tells what was rejected from what was acknowledged."""
    folder = _data(
        tmp_path,
        (key(1), update(0, (0, 1, ACKNOWLEDGED, 1), (2, 4, ARCHIVED, 5))),
        (key(1, group="other"), update(0, (9, 9, ARCHIVED, 1))),
    )

    found = _evidence(spark, folder, "dead_letters")

    assert rows_of(found, "topic", "partition", "offset", "reason") == [
        ("orders", 0, offset, "archived, delivered 5 times") for offset in (2, 3, 4)
    ]


def test_states_of_other_groups_and_topics_are_not_the_group_s(spark: SparkSession, tmp_path: Path) -> None:
    """Nor is a state that was deleted one of the group's."""
    folder = _data(
        tmp_path,
        (key(1, group="loader-2"), update(9)),
        (key(1, topic_id="B" * 22), update(9)),
        (key(0), None),
    )

    found = _evidence(spark, folder)

    assert rows_of(found, *_COLUMNS) == []
    assert found.coverage.unparsed == 0
    assert "1 states of other topics of the group, passed over" in found.coverage.notes
    assert "1 states that were deleted" in found.coverage.notes


_GOOD = update(0, (0, 0, ACKNOWLEDGED, 1))


def test_a_record_of_another_form_is_an_unreadable_row(spark: SparkSession, tmp_path: Path) -> None:
    """It may say what the group is done with; the others are read."""
    records = [
        (key(1), update(0, version=1), "expected a state of version 0, found version 1"),
        (key(1), _GOOD[:-9], "cut off"),
        (key(1), _GOOD + b"\0", "more bytes behind it"),
        (key(2), _GOOD, "found type 2"),
        (key(1)[:-2], _GOOD, "cut off"),
        (key(1), update(-2), "start offset"),
        (key(1), update(0, (5, 4, ACKNOWLEDGED, 1)), "expected a stretch of offsets, found 5 to 4"),
        (key(1), update(0, (4, 5, 9, 1)), "expected a delivery state from 0 to 4, found 9"),
        (key(1), _GOOD[:18] + b"\xff\xff\xff\xff\x0f", "found 4294967294"),
    ]
    folder = _data(tmp_path, (key(1, partition=3), _GOOD), *((name, value) for name, value, _ in records))

    found = _evidence(spark, folder)
    rows = _reading(spark, folder).rows
    assert rows is not None
    faults = [row[FAULT] for row in rows.where(f"{FAULT} IS NOT NULL").orderBy(ROW).collect()]

    wrong = [
        (expected, fault)
        for (_, _, expected), fault in zip(records, faults, strict=True)
        if expected not in fault
    ]
    assert wrong == []
    assert found.coverage.unparsed == len(records)
    assert not found.coverage.is_within_tolerance
    assert {row["partition"] for row in found.rows.collect()} == {3}


def test_a_stretch_without_end_is_not_written_out(spark: SparkSession, tmp_path: Path) -> None:
    """As dead letters each record is a row; no broker archives a billion at once."""
    folder = _data(tmp_path, (key(1), update(0, (0, 1 << 40, ARCHIVED, 1))))

    found = _evidence(spark, folder, "dead_letters")

    assert found.coverage.unparsed == 1
    assert "at most 1000000 archived records" in " ".join(found.coverage.notes)


def test_the_topic_s_id_is_said_by_its_folders_or_by_the_contract(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The state is kept by the id, and another topic of the name may have been there before."""
    folder = _data(tmp_path, (key(1), _GOOD), topic_id=None)

    assert len(rows_of(_evidence(spark, folder, topic_id=TOPIC_ID), *_COLUMNS)) == 2
    with pytest.raises(SourceError, match="expected the id of orders"):
        _evidence(spark, folder)


def test_a_folder_of_the_state_that_is_missing_leaves_the_ledger_uncovered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Which of them has the state of a partition is known to the broker alone."""
    found = _evidence(spark, _data(tmp_path, (key(1), _GOOD)), partitions=2)

    assert not found.coverage.is_within_tolerance
    assert "__share_group_state-1: the log of this partition is not behind the path" in found.coverage.notes


def test_a_torn_segment_is_no_whole_ledger(spark: SparkSession, tmp_path: Path) -> None:
    """What was cut off may be an acknowledgement."""
    folder = _data(tmp_path, (key(1), _GOOD), (key(1), update(1)))
    segment = folder / "data" / "__share_group_state-0" / _NAME
    segment.write_bytes(segment.read_bytes()[:-5])

    found = _evidence(spark, folder)

    assert not found.coverage.is_within_tolerance


def test_another_ledger_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The state has no record of the topic."""
    with pytest.raises(
        SourceError, match="kafka_share_group is evidence for committed, mirrored, dead_letters"
    ):
        _evidence(spark, _data(tmp_path, (key(1), _GOOD)), "log")
