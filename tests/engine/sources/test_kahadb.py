"""A queue of ActiveMQ as ledgers: rows, coverage, and what keeps a journal from covering."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW
from tests.engine.sources.kahadb import (
    END,
    added,
    batch,
    deleted,
    ended,
    journal,
    published,
    removed,
    rewritten,
    started,
    write,
)

from tieout.contracts import Contract, KahaDbSource
from tieout.engine.reconciling import reconcile
from tieout.engine.sources.kahadb import read
from tieout.engine.sources.source import Request
from tieout.errors import SourceError
from tieout.model import Ledger, Window

_FIRST = (1 << 32) + 28
_BEGAN = datetime.fromtimestamp(1795170000, UTC)
_WRITTEN = _BEGAN + timedelta(seconds=10)


def _kahadb(folder: Path, **options: Any) -> dict[str, Any]:
    return {
        "kind": "kahadb",
        "path": ["store", "archive"],
        "destination": "orders",
        "taken_at": "now",
        "concurrent_store_and_dispatch": False,
        **options,
    }


def _reading(spark: SparkSession, folder: Path, ledger: Ledger, **options: Any) -> Any:
    spec = KahaDbSource.model_validate(_kahadb(folder, **options))
    return read(spec, Request(spark, ledger, folder, NOW, group="loader"))


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """Four messages in two files, the first of them archived: three left the queue, one of them as poison."""
    (tmp_path / "store").mkdir()
    write(tmp_path / "archive", 1, journal(started(), added(0), removed(0), added(1)), _WRITTEN)
    last = journal(
        added(1, "ActiveMQ.DLQ", original="orders"),
        removed(1, kind=1),
        *(added(2, transaction=1), ended(1, is_committed=False)),
        *(added(3), removed(3, transaction=2)),
    )
    write(tmp_path / "store", 2, last, _WRITTEN)
    return tmp_path


def test_the_log_has_each_message_with_its_transaction(spark: SparkSession, queue: Path) -> None:
    """Positions are sparse, and the log's end is where the journal goes on."""
    reading = _reading(spark, queue, Ledger.LOG)

    rows = sorted(reading.rows.collect(), key=lambda row: row["offset"])
    assert [row["jms_message_id"][-1] for row in rows] == ["0", "1", "2", "3"]
    assert [row["transaction_state"] for row in rows] == ["none", "none", "aborted", "none"]
    assert all(row["is_sparse"] and row["end_offset"] > row["offset"] for row in rows)
    assert (rows[0]["properties"], bytes(rows[0]["value"])) == ({"id": "m0"}, b"body")
    assert (reading.unparsed_inputs, reading.complete_until) == (0, NOW)


def test_committed_has_what_left_the_queue_for_good(spark: SparkSession, queue: Path) -> None:
    """Acknowledgements in a transaction that is open count for nothing; each has the time by which it was given."""
    reading = _reading(spark, queue, Ledger.COMMITTED)

    rows = sorted(reading.rows.collect(), key=lambda row: row["first_offset"])
    assert [row["metadata"] for row in rows] == ["INDIVIDUAL", "POISON"]
    assert all(row["is_individual"] and row["committed_offset"] == row["first_offset"] + 1 for row in rows)
    assert rows[0]["taken_at"].replace(tzinfo=UTC) == _BEGAN + timedelta(seconds=1)
    assert reading.is_share_group


def test_poison_is_a_dead_letter_where_a_queue_has_it(spark: SparkSession, queue: Path) -> None:
    """What was taken away and parked nowhere is none, and is said."""
    assert _reading(spark, queue, Ledger.DEAD_LETTERS).rows.count() == 1
    write(queue / "store", 3, journal(added(4), removed(4, kind=1)), _WRITTEN)

    reading = _reading(spark, queue, Ledger.DEAD_LETTERS)

    assert reading.rows.count() == 1
    assert "1 messages were taken away as poison, and no dead letter queue has them" in reading.notes


@pytest.mark.parametrize(
    ("records", "count"),
    [
        ((removed(1, "ActiveMQ.DLQ", consumer=None, kind=2), added(1), removed(1)), 0),
        ((added(1), removed(1, kind=1), added(1, "ActiveMQ.DLQ", original="orders")), 1),
        ((added(1, transaction=7), ended(7, is_committed=False)), 1),
    ],
    ids=["retried", "refused again", "rolled back"],
)
def test_a_dead_letter_that_is_put_back_is_none_any_more(
    spark: SparkSession, queue: Path, records: tuple[bytes, ...], count: int
) -> None:
    """Whoever takes it then answers for it, and what is refused again is a dead letter once."""
    write(queue / "store", 3, journal(*records), _WRITTEN)

    reading = _reading(spark, queue, Ledger.DEAD_LETTERS)
    assert reading.rows.count() == count
    expected = "1 messages came back into the queue after they had left it"
    assert (expected in reading.notes) is (len(records) == 3)


def test_a_queue_that_the_journal_does_not_have_is_reported_with_those_that_it_has(
    spark: SparkSession, queue: Path
) -> None:
    """An empty queue is no fault."""
    for ledger in (Ledger.LOG, Ledger.COMMITTED):
        reading = _reading(spark, queue, ledger, destination="bills")

        expected = "no message of the queue bills in the journal, found messages of ActiveMQ.DLQ, orders"
        assert expected in reading.notes
        assert reading.unparsed_inputs == 0


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((added(0, "Orders"),), "found Orders: capital letters count"),
        ((published(0), published(1)), "orders is a topic in the journal"),
        ((added(0, "Consumer.A.orders", original="topic://orders"),), "handed on to Consumer.A.orders"),
        ((added(0, "orders.in", original="orders"), published(1)), "handed on to orders.in"),
    ],
    ids=["letters", "topic", "virtual topic", "composite queue"],
)
def test_a_name_that_is_no_queue_of_the_journal_covers_nothing(
    spark: SparkSession, tmp_path: Path, records: tuple[bytes, ...], expected: str
) -> None:
    """What waits for the subscribers of a topic, or in the queues it is handed on to, is not missing from the log."""
    write(tmp_path / "store", 1, journal(*records), _WRITTEN)

    for ledger in (Ledger.LOG, Ledger.COMMITTED):
        reading = _reading(spark, tmp_path, ledger, path="store")

        assert reading.unparsed_inputs == 1
        assert expected in reading.notes[0]


def test_a_topic_beside_a_queue_of_its_name_is_no_fault(spark: SparkSession, queue: Path) -> None:
    """The queue has messages of its own."""
    write(queue / "store", 3, journal(published(4)), _WRITTEN)

    assert _reading(spark, queue, Ledger.LOG).unparsed_inputs == 0


def test_dead_letters_of_a_broker_with_several_stores_are_not_covered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The queue of dead letters is in a store of its own, so that nobody knows whether it has them."""
    store = "queue#3a#2f#2forders"
    write(tmp_path / store, 1, journal(added(0), removed(0), added(1)), _WRITTEN)

    assert _reading(spark, tmp_path, Ledger.DEAD_LETTERS, path=store).unparsed_inputs == 0
    write(tmp_path / store, 1, journal(added(0), removed(0), added(1), removed(1, kind=1)), _WRITTEN)

    assert _reading(spark, tmp_path, Ledger.DEAD_LETTERS, path=store).unparsed_inputs == 1
    assert _reading(spark, tmp_path, Ledger.LOG, path=store).unparsed_inputs == 0


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "store/activemq-data-1.amq",
            "store/activemq-data-1.amq is of ActiveMQ Artemis, whose journal is not read",
        ),
        ("store/journal/activemq-data-1.amq", "is of ActiveMQ Artemis"),
        ("store/queue#3a#2f#2forders/db-1.log", "found journals in store/queue#3a#2f#2forders: name the one"),
    ],
)
def test_what_is_there_instead_of_a_journal_is_named(
    spark: SparkSession, tmp_path: Path, file: str, expected: str
) -> None:
    """Another product's files, or the stores of several queues below the folder."""
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_bytes(journal(added(0)))

    reading = _reading(spark, tmp_path, Ledger.LOG, path="store")

    assert reading.rows is None
    assert expected in reading.notes[0]


def _remove_first(folder: Path) -> None:
    (folder / "archive" / "db-1.log").unlink()


def _tear_first(folder: Path) -> None:
    path = folder / "archive" / "db-1.log"
    path.write_bytes(path.read_bytes().rstrip(b"\0")[:-2])


def _cut_last(folder: Path) -> None:
    """Cut the file off between two batches, where nothing is torn."""
    path = folder / "store" / "db-2.log"
    path.write_bytes(path.read_bytes()[: path.read_bytes().rindex(b"WRITE BATCH") - 5])


def _empty_last(folder: Path) -> None:
    path = folder / "store" / "db-2.log"
    cut = path.read_bytes().rindex(b"WRITE BATCH") - 5
    path.write_bytes(path.read_bytes()[:cut] + bytes(4096))


def _change_last(folder: Path) -> None:
    write(folder / "store", 2, batch(added(3), checksum=1) + batch(added(4)))


def _another(folder: Path) -> None:
    (folder / "store" / "db-2.log").write_text("nothing of the kind")


def _copy_first(folder: Path) -> None:
    write(folder / "store", 1, journal(started()))


def _number_far_on(folder: Path) -> None:
    (folder / "store" / "db-2.log").rename(folder / "store" / "db-999999999.log")


@pytest.mark.parametrize(
    ("strike", "expected"),
    [
        (_number_far_on, "files 1 to 999999999, 2, 3, 4, 5, 6 and 999999992 more are not there"),
        (_remove_first, "files 1 to 2, 1 is not there"),
        (_tear_first, "db-1.log: expected a whole batch or the mark of the journal's end at byte"),
        (_cut_last, "db-2.log: expected a whole batch or the mark of the journal's end at byte"),
        (_empty_last, "db-2.log: expected a whole batch or the mark of the journal's end at byte"),
        (_change_last, "db-2.log: expected a whole batch at byte 0"),
        (_another, "db-2.log: expected a journal of KahaDB"),
        (_copy_first, "expected what store/db-1.log holds, found another"),
    ],
)
@pytest.mark.parametrize("ledger", [Ledger.LOG, Ledger.COMMITTED])
def test_a_journal_that_is_not_whole_does_not_cover(
    spark: SparkSession, queue: Path, strike: Callable[[Path], None], expected: str, ledger: Ledger
) -> None:
    """What is missing may be messages, or their acknowledgements."""
    strike(queue)

    reading = _reading(spark, queue, ledger)

    assert reading.unparsed_inputs > 0
    assert any(expected in note for note in reading.notes), reading.notes


def test_a_batch_that_is_being_written_is_read_once_more(
    spark: SparkSession, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running broker leaves the end of the last file torn for a moment."""
    path = queue / "store" / "db-2.log"
    before = path.read_bytes().rstrip(b"\0").removesuffix(END)
    path.write_bytes(before + batch(added(9))[:-2])
    monkeypatch.setattr(
        "tieout.engine.sources.kahadb_folders.time.sleep",
        lambda _: path.write_bytes(before + batch(added(9)) + END) and None,
    )

    reading = _reading(spark, queue, Ledger.LOG)

    assert (reading.unparsed_inputs, reading.rows.count()) == (0, 5)


def test_a_copy_that_a_composite_queue_handed_on_is_no_dead_letter(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It names the queue as a dead letter does, and lies before the message: what was thrown away as poison is lost."""
    records = added(1, "audit", original="orders"), added(1), removed(1, kind=1, consumer=None)
    write(tmp_path / "store", 1, journal(*records), _WRITTEN)

    found = _reading(spark, tmp_path, Ledger.DEAD_LETTERS)

    assert found.rows.count() == 0
    assert "1 messages were taken away as poison, and no dead letter queue has them" in found.notes


@pytest.mark.parametrize(("expires", "state"), [(0, "none"), (4_000_000_000_000, "open")])
def test_a_message_that_was_moved_before_its_time_was_over_did_not_expire_for_certain(
    spark: SparkSession, tmp_path: Path, expires: int, state: str
) -> None:
    """It keeps its time to live in the other queue, which a dead letter has no more."""
    moved = added(1, "parked", original="orders", expires=expires)
    records = added(1, expires=4_000_000_000_000), moved, removed(1, kind=2, consumer=None)
    write(tmp_path / "store", 1, journal(*records), _WRITTEN)

    rows = _reading(spark, tmp_path, Ledger.FILTERED).rows

    assert [row["transaction_state"] for row in rows.collect()] == [state]


def test_a_broker_that_need_not_write_everything_down_covers_nothing(
    spark: SparkSession, queue: Path
) -> None:
    """That is its default, so that the contract has to say otherwise."""
    reading = _reading(spark, queue, Ledger.LOG, concurrent_store_and_dispatch=True)

    assert reading.unparsed_inputs == 1
    assert "concurrentStoreAndDispatchQueues=false" in reading.notes[0]


def test_other_ledgers_and_no_journal_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A ledger of the producers is not the broker's to write; a folder without files is no evidence."""
    with pytest.raises(SourceError, match="evidence for log, committed, dead_letters, filtered only"):
        _reading(spark, tmp_path, Ledger.PRODUCED)
    assert _reading(spark, tmp_path, Ledger.LOG).rows is None


def _kept(folder: Path) -> None:
    assert folder.is_dir()


def _unacknowledged(folder: Path) -> None:
    write(folder / "store", 2, journal(added(2), added(3), removed(3)), _WRITTEN)


def _unprocessed(folder: Path) -> None:
    rows = (folder / "delivered.jsonl").read_text().splitlines()
    (folder / "delivered.jsonl").write_text("\n".join(row for row in rows if '"m3"' not in row))


def _retried_and_lost(folder: Path) -> None:
    """Park a message, put it back, and have it acknowledged without an output."""
    parked = added(3), added(3, "ActiveMQ.DLQ", original="orders"), removed(3, kind=1)
    again = removed(3, "ActiveMQ.DLQ", kind=2, consumer=None), added(3), removed(3)
    write(folder / "store", 2, journal(added(2), removed(2), *parked, *again), _WRITTEN)
    _unprocessed(folder)


def _retried_and_queued(folder: Path) -> None:
    """Park a message and put it back; the broker then copies the acknowledgement by which it was parked."""
    parked = added(3), added(3, "ActiveMQ.DLQ", original="orders"), removed(3, kind=1)
    again = removed(3, "ActiveMQ.DLQ", kind=2, consumer=None), added(3)
    write(folder / "store", 2, journal(added(2), removed(2), *parked), _WRITTEN)
    write(folder / "store", 3, journal(*again), _WRITTEN)
    write(folder / "store", 4, journal(rewritten(2), removed(2), removed(3, kind=1)), _WRITTEN)
    _unprocessed(folder)


def _deleted_with_the_queue(folder: Path) -> None:
    write(folder / "store", 2, journal(added(2), removed(2), added(3), deleted(), deleted()), _WRITTEN)
    _unprocessed(folder)


@pytest.mark.parametrize(
    ("strike", "verdict", "classes"),
    [
        (_retried_and_queued, "PENDING", {"DELIVERED": 3, "LOG_DUPLICATE": 1}),
        (_deleted_with_the_queue, "BROKEN", {"DELIVERED": 3, "LOST": 1}),
        (_kept, "KEPT", {"DELIVERED": 4}),
        (_retried_and_lost, "BROKEN", {"DELIVERED": 3, "LOST": 1}),
        (_unprocessed, "BROKEN", {"DELIVERED": 3, "LOST": 1}),
        (_unacknowledged, "PENDING", {"DELIVERED": 3, "IN_FLIGHT": 1}),
        (_remove_first, "UNKNOWN", {"DELIVERED": 4}),
    ],
)
def test_a_queue_is_judged_by_what_its_broker_wrote(
    spark: SparkSession, tmp_path: Path, strike: Callable[[Path], None], verdict: str, classes: dict[str, int]
) -> None:
    """A message that is queued below an acknowledged one is not lost; without the first file nothing is kept."""
    write(tmp_path / "archive", 1, journal(added(0), removed(0), added(1), removed(1)), _WRITTEN)
    write(tmp_path / "store", 2, journal(added(2), removed(2), added(3), removed(3)), _WRITTEN)
    at = [(_BEGAN + timedelta(seconds=n)).isoformat() for n in range(4)]
    sent = [
        {"message_id": f"m{n}", "topic": "orders", "attempted_at": at[n], "outcome": "acked"}
        for n in range(4)
    ]
    done = [{"message_id": f"m{n}", "processed_at": at[n]} for n in range(4)]
    (tmp_path / "produced.jsonl").write_text("\n".join(map(json.dumps, sent)))
    (tmp_path / "delivered.jsonl").write_text("\n".join(map(json.dumps, done)))
    strike(tmp_path)
    if strike is _unacknowledged:
        (tmp_path / "delivered.jsonl").write_text(
            "\n".join(json.dumps(row) for row in (done[0], done[1], done[3]))
        )

    named = {"source": _kahadb(tmp_path), "columns": {"message_id": "properties['id']"}}
    own = {
        name: {
            "source": {"kind": "files", "format": "jsonl", "path": f"{name}.jsonl"},
            "coverage": "declared",
        }
        for name in ("produced", "delivered")
    }
    contract = Contract.model_validate(
        {
            "version": 1,
            "pipeline": "orders",
            "guarantee": "at_least_once",
            "group": "loader",
            "consumption": "queue",
            "max_latency": "1m",
            "grace": "15m",
            "ledgers": {
                **own,
                "log": named,
                "committed": {"source": _kahadb(tmp_path)},
                "dead_letters": named,
            },
        }
    ).located_in(tmp_path)
    statement = reconcile(
        spark, contract, Window(_BEGAN, _BEGAN + timedelta(hours=1)), run_id="r", now=NOW
    ).statement

    assert (statement["verdict"], statement["classes"]) == (verdict, classes), statement["coverage"]
