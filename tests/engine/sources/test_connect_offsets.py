"""Positions of a source connector: from a standalone worker's file, and from the topic of distributed ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, reading_of, rows_of
from tests.engine.sources.checkpoints import set_time
from tests.engine.sources.maps import serialised_map
from tests.kafka_batches import batch, marker, record

from tieout.engine.evidence import Evidence
from tieout.engine.sources.source import Reading
from tieout.errors import SourceError

_WRITTEN = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
_MILLIS = int(_WRITTEN.timestamp() * 1000)
_POSITION = ("topic", "partition", "committed_offset")


def _key(place: str = "/in", connector: str = "src") -> bytes:
    return json.dumps([connector, {"filename": place}]).encode()


def _value(position: object) -> bytes:
    return json.dumps({"position": position}).encode()


def write_map(path: Path, *entries: tuple[bytes, bytes | None]) -> None:
    """Write a worker's file."""
    path.write_bytes(serialised_map(*entries))


def _evidence(spark: SparkSession, folder: Path, **source: Any) -> Evidence:
    known = {"kind": "connect_offsets", "connector": "src", "taken_at": "now"}
    return evidence_of(spark, folder, source.pop("ledger", "committed"), source={**known, **source})


def _reading(spark: SparkSession, folder: Path, **source: Any) -> Reading:
    known = {"kind": "connect_offsets", "connector": "src", "taken_at": "now"}
    return reading_of(spark, folder, "committed", {**known, **source})


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    """A worker's folder, with the file of its positions."""
    path = tmp_path / "connect.offsets"
    write_map(path, (_key(), _value(30)), (_key("/old"), None), (_key("/in", "other"), _value(7)))
    set_time(path, _WRITTEN)
    return tmp_path


@pytest.mark.parametrize("ledger", ["committed", "mirrored"])
def test_a_worker_s_file_has_current_positions(spark: SparkSession, worker: Path, ledger: str) -> None:
    """Of the connector asked for, at the time of the file; one that was deleted has no offset."""
    found = _evidence(spark, worker, path="connect.offsets", ledger=ledger)

    assert rows_of(found, *_POSITION, "first_offset", "consumer_group") == [
        ("/in", 0, 30, None, "loader"),
        ("/old", 0, None, None, "loader"),
    ]
    assert {row[0].astimezone(UTC) for row in rows_of(found, "committed_at")} == {_WRITTEN}
    assert found.coverage.complete_until == NOW
    assert found.coverage.is_sound
    assert found.coverage.notes[0] == "1 positions of other connectors, passed over"


def test_a_copy_of_the_file_has_no_times(spark: SparkSession, worker: Path) -> None:
    """It says when it was taken."""
    found = _evidence(spark, worker, path="connect.offsets", taken_at="2026-11-20T11:00:00Z")

    assert {row[0] for row in rows_of(found, "committed_at")} == {None}
    assert {row[0].astimezone(UTC).hour for row in rows_of(found, "taken_at")} == {11}


_ANSWER = {"offsets": [{"partition": {"filename": "/in"}, "offset": {"position": 30}}]}
_OF_SINK = {
    "offsets": [
        {
            "partition": {"kafka_topic": "orders", "kafka_partition": number},
            "offset": {"kafka_offset": 7 + number},
        }
        for number in (0, 1)
    ]
}


@pytest.mark.parametrize(
    ("answer", "fields", "rows"),
    [
        (_ANSWER, {}, [("/in", 0, 30)]),
        (
            _OF_SINK,
            {"place": "kafka_topic", "position": "kafka_offset"},
            [("orders", 0, 7), ("orders", 1, 8)],
        ),
        ({"offsets": []}, {}, []),
    ],
)
def test_an_answer_of_the_rest_interface_has_current_positions(
    spark: SparkSession, tmp_path: Path, answer: object, fields: dict[str, str], rows: list[Any]
) -> None:
    """As `GET /connectors/NAME/offsets` gives them, of a source or a sink; when it was asked for the contract says."""
    (tmp_path / "offsets.json").write_text(json.dumps(answer, indent=2))
    known = {"path": "offsets.json", **fields}

    found = _reading(spark, tmp_path, taken_at="2026-11-20T11:00:00Z", **known)
    assert rows_of(found, *_POSITION) == rows
    assert {row[0] for row in rows_of(found, "committed_at")} <= {None}
    assert found.unparsed_inputs == 0

    requested = _reading(spark, tmp_path, **known)
    assert requested.unparsed_inputs > 0
    assert "say in taken_at when it was asked for" in requested.notes[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_an_answer_that_powershell_saved_is_read(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    """It writes a byte order mark, and UTF-16 where its version is old."""
    (tmp_path / "offsets.json").write_text(json.dumps(_ANSWER), encoding=encoding)

    found = _reading(spark, tmp_path, path="offsets.json", taken_at="2026-11-20T11:00:00Z")

    assert rows_of(found, *_POSITION) == [("/in", 0, 30)]
    assert found.unparsed_inputs == 0


def test_another_answer_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Such as that there is no such connector."""
    (tmp_path / "offsets.json").write_text('{"error_code": 404, "message": "Connector src not found"}')

    found = _reading(spark, tmp_path, path="offsets.json", taken_at="2026-11-20T11:00:00Z")
    assert found.unparsed_inputs > 0
    assert (
        "GET /connectors/src/offsets, an object with offsets, found fields error_code, message"
        in (found.notes[0])
    )


def _cut(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-4])
    return "connect.offsets: cut off at byte"


def _emptied(path: Path) -> str:
    path.write_bytes(b"")
    return "connect.offsets: cut off at byte 0"


def _without_position(path: Path) -> str:
    write_map(path, (_key(), b"{}"))
    return "connect.offsets: expected a field position in the source offset, found none"


def _of_another_place(path: Path) -> str:
    write_map(path, (b'["src",{"table":"t"}]', _value(1)))
    return "connect.offsets: expected a field filename in the source partition, found table"


def _pipe(path: Path) -> str:
    path.unlink()
    os.mkfifo(path)
    return "connect.offsets: cannot be read: expected a file, found a named pipe"


def _gone(path: Path) -> str:
    path.unlink()
    return "connect.offsets: no such file"


@pytest.mark.parametrize("damage", [_cut, _emptied, _without_position, _of_another_place, _pipe, _gone])
def test_a_damaged_file_does_not_cover_and_is_named(
    spark: SparkSession, worker: Path, damage: Callable[[Path], str]
) -> None:
    """A worker takes it for none, without a word."""
    expected_note = damage(worker / "connect.offsets")

    found = _reading(spark, worker, path="connect.offsets")

    assert found.unparsed_inputs > 0
    assert any(note.startswith(expected_note) for note in found.notes), found.notes


def _segment(folder: Path, *batches: bytes) -> None:
    path = folder / "log" / "connect-offsets-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))


def _record(offset: int, key: bytes | None, value: bytes | None, producer: int = -1) -> bytes:
    attributes = 0 if producer < 0 else 0x10
    return batch(
        record(value, key=key),
        base_offset=offset,
        first_ms=_MILLIS + offset,
        attributes=attributes,
        producer=producer,
    )


def _of_segments(spark: SparkSession, folder: Path, **source: Any) -> Evidence:
    return _evidence(spark, folder, segments="log", topic="connect-offsets", **source)


def test_the_topic_has_the_history_in_force(spark: SparkSession, tmp_path: Path) -> None:
    """None of an aborted or open transaction; another connector's are passed over, a tombstone deletes."""
    _segment(
        tmp_path,
        _record(0, _key(), _value(10)),
        _record(1, _key(), _value(20), producer=5),
        marker(1, base_offset=2, producer=5),
        _record(3, _key(), _value(25), producer=5),
        marker(0, base_offset=4, producer=5),
        _record(5, _key("/in", "other"), b"not ours"),
        _record(6, _key("/old"), None),
        _record(7, _key(), _value(30), producer=6),
    )

    found = _of_segments(spark, tmp_path)

    assert rows_of(found, *_POSITION) == [("/in", 0, 10), ("/in", 0, 20), ("/old", 0, None)]
    times = {round(row[0].timestamp() * 1000) - _MILLIS for row in rows_of(found, "committed_at")}
    assert times == {0, 1, 6}
    assert found.coverage.is_sound
    for expected_note in (
        "1 positions in aborted",
        "1 positions in transactions that are still open",
        "1 positions of other",
    ):
        assert any(note.startswith(expected_note) for note in found.coverage.notes), found.coverage.notes


def test_a_record_of_another_form_is_an_unreadable_row(spark: SparkSession, tmp_path: Path) -> None:
    """A key that is none, a field that is not there, a number that is no position."""
    records = [
        (None, _value(1)),
        (b"{}", _value(2)),
        (b'["src"]', _value(3)),
        (b'["src",{"file":"x"}]', _value(4)),
        (_key(), b""),
        (_key(), b"{}"),
        (_key(), b'{"position":30'),
        (_key(), _value(-1)),
        (_key(), _value(2**62)),
        (_key(), _value(1.5)),
        (_key(), _value(True)),
    ]
    _segment(
        tmp_path,
        _record(0, _key(), _value(10)),
        *(_record(offset, key, value) for offset, (key, value) in enumerate(records, start=1)),
    )

    found = _of_segments(spark, tmp_path)

    assert rows_of(found, *_POSITION) == [("/in", 0, 10)]
    assert found.coverage.unparsed == len(records)
    assert not found.coverage.is_sound


def test_other_fields_are_the_contract_s(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever signs are in their names."""
    _segment(tmp_path, _record(0, b'["src",{"a \'b.c":"orders"}]', b'{"incrementing id":17}'))

    found = _of_segments(spark, tmp_path, place="a 'b.c", position="incrementing id")

    assert rows_of(found, *_POSITION) == [("orders", 0, 17)]


def test_no_position_of_the_connector_is_reported(spark: SparkSession, worker: Path) -> None:
    """As where its name is spelled otherwise; and other ledgers are refused."""
    found = _evidence(spark, worker, path="connect.offsets", connector="Src")

    assert "no position of the connector Src" in found.coverage.notes
    with pytest.raises(SourceError, match="is evidence for committed and mirrored only"):
        _evidence(spark, worker, path="connect.offsets", ledger="staged")


def _mirrored(topic: str, partition: object, cluster: str = "a") -> bytes:
    return json.dumps(["src", {"cluster": cluster, "partition": partition, "topic": topic}]).encode()


_OFFSETS = {"place": "topic", "position": "offset"}


def test_partitions_of_a_place_are_distinguished(spark: SparkSession, tmp_path: Path) -> None:
    """MirrorMaker has a position for each partition of a topic."""
    entries = [(_mirrored("t", 0), b'{"offset":3}'), (_mirrored("t", 12), b'{"offset":5}')]
    _segment(tmp_path, *(_record(number, *entry) for number, entry in enumerate(entries)))
    write_map(tmp_path / "mm2.offsets", *entries)

    for found in (
        _of_segments(spark, tmp_path, **_OFFSETS),
        _evidence(spark, tmp_path, path="mm2.offsets", **_OFFSETS),
    ):
        assert rows_of(found, *_POSITION) == [("t", 0, 3), ("t", 12, 5)]
        assert found.coverage.is_sound


@pytest.mark.parametrize(
    "others",
    [(_mirrored("t", 0, "b"),), (_mirrored("t", "x"), b'["src",{"topic":"t"}]')],
    ids=["cluster", "no number"],
)
def test_several_source_partitions_are_no_place(
    spark: SparkSession, tmp_path: Path, others: tuple[bytes, ...]
) -> None:
    """The furthest of them would be where the connector came in each."""
    entries = [(key, b'{"offset":9}') for key in (_mirrored("t", 0), *others, _mirrored("u", 0))]
    _segment(tmp_path, *(_record(number, *entry) for number, entry in enumerate(entries)))
    write_map(tmp_path / "mm2.offsets", *entries)

    history = _of_segments(spark, tmp_path, **_OFFSETS)
    current = _evidence(spark, tmp_path, path="mm2.offsets", **_OFFSETS)

    assert rows_of(history, *_POSITION) == [("u", 0, 9)]
    assert history.coverage.unparsed == 1 + len(others)
    for found in (history, current):
        assert not found.coverage.is_sound
        assert any(
            "found several that have the same in the field topic" in note for note in found.coverage.notes
        )


def test_a_source_partition_that_was_deleted_is_in_no_other_s_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nor is one that is written again, with its fields in another order."""
    again = b'["src",{"topic":"t","partition":0,"cluster":"a"}]'
    _segment(
        tmp_path,
        _record(0, _mirrored("t", 0), b'{"offset":3}'),
        _record(1, again, b'{"offset":4}'),
        _record(2, _mirrored("t", 0, "b"), None),
    )

    found = _of_segments(spark, tmp_path, **_OFFSETS)

    assert rows_of(found, *_POSITION) == [("t", 0, 3), ("t", 0, 4), ("t", 0, None)]
    assert found.coverage.is_sound
