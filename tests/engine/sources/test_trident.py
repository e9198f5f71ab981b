"""The batches of a Trident stream as the ledger `committed`: ranges, times, and what keeps it from covering."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW
from tests.engine.sources.zookeeper import (
    MILLIS,
    ROOT,
    TOPOLOGY,
    current,
    entry,
    log,
    ranged,
    snapshot,
    write,
)

from tieout.contracts import TridentSource
from tieout.engine.sources.source import Request
from tieout.engine.sources.trident import read
from tieout.errors import SourceError
from tieout.model import Ledger

_ANOTHER = "counter-1-1795170099"
_ENTRIES = (
    entry(1, ("/transactional", b"")),
    entry(2, ("/transactional/orders/user/orders@0", b"7")),
    entry(3, ranged(1, 0, 4), ranged(1, 0, 1, partition=1)),
    entry(4, current(2)),
    entry(5, ranged(2, 5, 9), ranged(2, 1, 1, partition=1)),
    entry(6, (f"{ROOT}/user/orders@0/1", None)),
    entry(7, (f"{ROOT}/user/orders@0/2", None)),
    entry(8, ranged(2, 5, 11, topology=_ANOTHER)),
    entry(9, current(3)),
    entry(10, ranged(3, 12, 20, topology=_ANOTHER)),
)
"""Two batches that succeeded, the second at its second try, and one that did not."""


def _at(zxid: int) -> datetime:
    return datetime.fromtimestamp(MILLIS / 1000 + zxid, UTC)


def _reading(spark: SparkSession, folder: Path, ledger: Ledger = Ledger.COMMITTED, **options: Any) -> Any:
    known = {"kind": "trident", "path": "zookeeper", "taken_at": "now", **options}
    return read(TridentSource.model_validate(known), Request(spark, ledger, folder, NOW, group="counter"))


def _ranges(reading: Any) -> list[tuple[int, int, int]]:
    rows = reading.rows.orderBy("committed_at", "partition").collect()
    return [(row["partition"], row["first_offset"], row["committed_offset"]) for row in rows]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A server's folder, from its first transaction on."""
    write(tmp_path / "zookeeper", "log.1", log(_ENTRIES))
    write(tmp_path / "zookeeper", "snapshot.0", snapshot({}))
    return tmp_path


def test_each_batch_that_succeeded_has_a_row_for_each_partition(spark: SparkSession, server: Path) -> None:
    """As its last try had it, at the time of its success; a range without a record repeats the end, and is none."""
    reading = _reading(spark, server)

    assert _ranges(reading) == [(0, 0, 5), (1, 0, 2), (0, 5, 12)]
    rows = reading.rows.orderBy("committed_at", "partition").collect()
    assert [row["committed_at"].replace(tzinfo=UTC) for row in rows] == [_at(4), _at(4), _at(9)]
    assert {(row["consumer_group"], row["topic"]) for row in rows} == {("counter", "orders")}
    assert json.loads(rows[0]["metadata"]) == {"txid": 1, "topologyId": TOPOLOGY}
    assert json.loads(rows[2]["metadata"]) == {"txid": 2, "topologyId": _ANOTHER}
    assert (reading.unparsed_inputs, reading.complete_until, reading.complete_from) == (0, NOW, None)
    assert "1 ranges of batches without a record, passed over" in reading.notes
    assert len(reading.digests) == 1


def test_without_a_time_it_covers_until_the_last_entry(spark: SparkSession, server: Path) -> None:
    """Which a server wrote before it answered; a copy says until when it is one."""
    assert _reading(spark, server, taken_at=None).complete_until == _at(10)
    copied = _reading(spark, server, taken_at="2026-11-20T11:00:00Z")
    assert copied.complete_until == datetime(2026, 11, 20, 11, tzinfo=UTC)
    assert copied.rows.where("committed_at is null").count() == 0


def test_positions_without_a_record_are_no_hole(spark: SparkSession, tmp_path: Path) -> None:
    """A topology goes on where its last batch ended; another one may have been told to begin elsewhere."""
    entries = (
        *(entry(1, ranged(1, 0, 4)), entry(2, current(2))),
        *(entry(3, ranged(2, 6, 9)), entry(4, current(3))),
        *(entry(5, ranged(3, 20, 24, topology=_ANOTHER)), entry(6, current(4))),
        *(entry(7, ranged(4, 0, 2, topology="counter-2")), entry(8, current(5))),
    )
    write(tmp_path / "zookeeper", "log.1", log(entries))

    assert _ranges(_reading(spark, tmp_path)) == [(0, 0, 5), (0, 5, 10), (0, 20, 25), (0, 0, 3)]


def test_an_entry_that_is_being_written_is_read_once_more(
    spark: SparkSession, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running server leaves the end of its log torn for a moment."""
    whole = log(_ENTRIES, padding=0)
    write(server / "zookeeper", "log.1", whole[:-7])
    monkeypatch.setattr(
        "tieout.engine.sources.zookeeper_folders.time.sleep",
        lambda _: write(server / "zookeeper", "log.1", whole) and None,
    )

    assert _reading(spark, server).unparsed_inputs == 0


def test_a_torn_end_is_a_fault_until_the_next_log(spark: SparkSession, server: Path) -> None:
    """A killed server leaves one, and so does who cuts a file off; the next log shows that nothing is missing."""
    whole = log(_ENTRIES, padding=0)
    write(server / "zookeeper", "log.1", whole[:-7] + bytes(64))
    torn = _reading(spark, server)
    write(server / "zookeeper", "log.a", log((entry(10, ranged(3, 12, 13)), entry(11, current(4)))))
    gone_on = _reading(spark, server)
    changed = bytearray(whole)
    changed[len(log(_ENTRIES[:4], padding=0)) + 50] ^= 1
    write(server / "zookeeper", "log.1", bytes(changed))
    broken = _reading(spark, server)

    assert (torn.unparsed_inputs, gone_on.unparsed_inputs) == (1, 0)
    assert any("ends within an entry" in note and "no log follows" in note for note in torn.notes)
    assert any("ends within an entry" in note for note in gone_on.notes)
    assert _ranges(gone_on)[-1] == (0, 12, 14)
    assert broken.unparsed_inputs >= 1
    assert any("expected a whole entry" in note for note in broken.notes)


def test_a_missing_log_is_a_fault(spark: SparkSession, server: Path) -> None:
    """Between two logs, and behind the last one where a snapshot knows a later transaction."""
    write(server / "zookeeper", "log.c", log((entry(12, current(4)),)))
    between = _reading(spark, server)
    (server / "zookeeper" / "version-2" / "log.c").unlink()
    write(server / "zookeeper", "snapshot.f", snapshot({}))
    behind = _reading(spark, server)

    assert any("transactions are missing between 0xa and 0xc" in note for note in between.notes)
    assert any("does not have transaction 0xf" in note for note in behind.notes)
    assert between.unparsed_inputs
    assert behind.unparsed_inputs


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_snapshot_shows_what_was_deleted(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    """The batch that had succeeded by then has a row; before the first entry behind it nothing is covered."""
    nodes = {
        path: (data or b"", MILLIS + 2000) for path, data in (current(3), ranged(2, 5, 9), ranged(3, 10, 14))
    }
    content = snapshot(nodes)
    write(tmp_path / "zookeeper", f"snapshot.3{suffix}", gzip.compress(content) if suffix else content)
    write(tmp_path / "zookeeper", "log.4", log((entry(4, ("/a", b"")), entry(5, current(4)))))

    reading = _reading(spark, tmp_path)

    assert _ranges(reading) == [(0, 5, 10), (0, 10, 15)]
    assert (reading.unparsed_inputs, reading.complete_from) == (0, _at(4))


def test_a_snapshot_may_be_ahead_of_its_name(spark: SparkSession, tmp_path: Path) -> None:
    """A server works on while it writes one: what the log tells again is told once."""
    nodes = {path: (data or b"", MILLIS + 5000) for path, data in (current(3), ranged(2, 5, 9))}
    write(tmp_path / "zookeeper", "snapshot.3", snapshot(nodes))
    entries = (
        entry(4, ranged(2, 5, 9)),
        entry(5, current(3)),
        entry(6, ranged(3, 10, 11)),
        entry(7, current(4)),
    )
    write(tmp_path / "zookeeper", "log.4", log(entries))

    assert _ranges(_reading(spark, tmp_path)) == [(0, 5, 10), (0, 10, 12)]


def test_a_log_that_begins_anywhere_covers_from_there(spark: SparkSession, tmp_path: Path) -> None:
    """Where no snapshot is whole, a batch whose ranges were told before is unknown, and the ledger begins behind it."""
    write(tmp_path / "zookeeper", "snapshot.3", snapshot({}, checksum=5))
    entries = (entry(4, current(3)), entry(5, ranged(3, 10, 11)), entry(6, current(4)))
    write(tmp_path / "zookeeper", "log.4", log(entries))
    reading = _reading(spark, tmp_path)

    assert _ranges(reading) == [(0, 10, 12)]
    assert (reading.unparsed_inputs, reading.complete_from) == (0, _at(4))
    assert any("no snapshot tells what was there before it" in note for note in reading.notes)


_BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "another version": (lambda: log(_ENTRIES, version=1), "expected version 2"),
    "another file": (lambda: b"PK\3\4" * 10, "expected a transaction log"),
    "another spout": (lambda: log((entry(1, current(2)),)), "batch 1 succeeded, and has no ranges"),
    "no range": (
        lambda: log((entry(1, (f"{ROOT}/user/orders@0/1", b'{"firstOffset": 4}')), entry(2, current(2)))),
        "expected firstOffset and lastOffset",
    ),
    "no JSON": (
        lambda: log((entry(1, (f"{ROOT}/user/orders@0/1", b"7,")), entry(2, current(2)))),
        "expected JSON",
    ),
    "no partition": (
        lambda: log((entry(1, (f"{ROOT}/user/orders/1", b"{}")), entry(2, current(2)))),
        "expected <topic>@<partition>",
    ),
    "no batch": (lambda: log((entry(1, (f"{ROOT}/coordinator/currtx", b"x")),)), "expected a batch's number"),
    "no stream": (
        lambda: log((entry(1, ("/storm", b"")),)),
        "expected a stream of Trident below /transactional",
    ),
}


@pytest.mark.parametrize("name", _BAD)
def test_what_is_not_trident_s_does_not_cover(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """It is named in words."""
    content, reported = _BAD[name]
    write(tmp_path / "zookeeper", "log.1", content())

    reading = _reading(spark, tmp_path)

    assert reading.unparsed_inputs >= 1
    assert any(reported in note for note in reading.notes), reading.notes


def test_several_streams_must_be_distinguished(spark: SparkSession, server: Path) -> None:
    """By name; one that is not there is a fault."""
    root = "/transactional/refunds"
    more = (entry(11, ranged(1, 0, 0, root=root)), entry(12, current(2, root)))
    write(server / "zookeeper", "log.b", log(more))

    with pytest.raises(
        SourceError, match=r"committed\.source\.stream: expected the stream .* orders, refunds"
    ):
        _reading(spark, server)
    assert _ranges(_reading(spark, server, stream="refunds")) == [(0, 0, 1)]
    absent = _reading(spark, server, stream="returns")
    assert absent.unparsed_inputs == 1
    assert any("expected the stream returns" in note for note in absent.notes)


def test_no_folder_and_other_ledgers(spark: SparkSession, tmp_path: Path) -> None:
    """A folder that is not there is absent; batches are positions only."""
    assert not _reading(spark, tmp_path).is_present
    with pytest.raises(SourceError, match="trident is evidence for committed and mirrored only"):
        _reading(spark, tmp_path, Ledger.DELIVERED)
