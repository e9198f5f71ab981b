"""KahaDB's journal, read: messages, acknowledgements, transactions, what is torn and what is not the format."""

from __future__ import annotations

import zlib

import pytest
from tests.engine.sources.kahadb import END, added, batch, ended, journal, removed, started

from tieout.engine.systems import openwire
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.kahadb_journal import (
    Added,
    Ended,
    Removed,
    Started,
    Torn,
    begins_journal,
    entries_in,
)
from tieout.engine.systems.kahadb_queue import EXPIRED, MAYBE_EXPIRED, REMOVED, QueueHistory


def test_a_journal_says_what_its_broker_did_in_order() -> None:
    """Starts, messages, acknowledgements, and the ends of transactions."""
    content = journal(
        started(), added(0, transaction=7), ended(7, is_committed=True), removed(0), removed(0, kind=1)
    )

    found = list(entries_in(content))

    assert [type(one) for one in found] == [Started, Added, Ended, Removed, Removed]
    assert begins_journal(content)
    assert isinstance(found[1], Added)
    message = found[1].message()
    assert (found[1].queue, found[1].transaction) == ("orders", "local:ID:host-1:1:7")
    assert (message.properties, message.body, message.arrived_at) == ({"id": "m0"}, b"body", 1795170000000)
    assert [one.by.kind for one in found if isinstance(one, Removed)] == ["INDIVIDUAL", "POISON"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"b\xc0\x80y", b"b\0y"), (b"\xed\xa0\xbd\xed\xb8\x80", "😀".encode()), ("ö".encode(), "ö".encode())],
)
def test_texts_as_java_writes_them_become_utf_8(text: bytes, expected: bytes) -> None:
    """Zeros are two bytes there, and characters beyond 2^16 are two halves."""
    (entry,) = entries_in(journal(added(0, text=text)))

    assert isinstance(entry, Added)
    assert entry.message().body == expected


def test_a_compressed_body_is_inflated_and_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What grows beyond the limit is a fault of its message."""
    packed = zlib.compress(b"\0\0\0\x05hello")
    (entry,) = entries_in(journal(added(0, content=packed, is_compressed=True)))
    assert isinstance(entry, Added)

    assert entry.message().body == b"hello"
    monkeypatch.setattr(openwire, "MOST_BODY", 8)
    with pytest.raises(FormatError, match="found more once it is inflated"):
        entry.message()


@pytest.mark.parametrize(
    ("torn", "is_followed"),
    [
        (batch(added(1))[:-3], False),
        (batch(added(1), checksum=1), False),
        (batch(added(1), checksum=1) + batch(added(2)), True),
        (b"\0\0\0\x1c\x07 no batch", False),
    ],
    ids=["cut off", "changed", "changed in the middle", "no batch"],
)
def test_what_an_unclean_end_tore_is_reported(torn: bytes, is_followed: bool) -> None:
    """What lies before it is whole; whether batches follow says whether it is the end."""
    whole = batch(added(0))

    found = list(entries_in(whole + torn))

    assert found[1:] == [Torn(len(whole), is_followed)]


@pytest.mark.parametrize("rest", [b"", bytes(64), b" of what was torn before"])
def test_a_file_ends_with_its_mark(rest: bytes) -> None:
    """What is written beforehand for the records to come, and what an earlier write left there, is not torn."""
    assert len(list(entries_in(batch(added(0)) + END + rest))) == 1


@pytest.mark.parametrize(
    ("rest", "is_followed"),
    [
        (b"", False),
        (bytes(64), False),
        (bytes(7) + batch(added(1)) + END, True),
        (END + batch(added(1)) + END, True),
    ],
    ids=["cut off between batches", "zeros", "a hole", "a mark in the middle"],
)
def test_batches_that_are_gone_behind_a_whole_one_are_missed(rest: bytes, is_followed: bool) -> None:
    """A broker writes the mark of the end with each batch, so that what ends without it is not all that was there."""
    whole = batch(added(0))

    assert list(entries_in(whole + rest))[1:] == [Torn(len(whole), is_followed)]


@pytest.mark.parametrize("kind", [0, 1])
def test_a_record_that_has_its_checksum_and_cannot_be_read_is_a_fault(kind: int) -> None:
    """Nothing is guessed: another format is said to be one."""
    with pytest.raises(FormatError, match="the record at byte 28"):
        list(entries_in(batch(bytes([2 - kind, 3, 0xFF, 0xFF, 0xFF]))))


def _history(*records: bytes, written: int | None = None) -> QueueHistory:
    history = QueueHistory("orders")
    entries = [one for one in entries_in(journal(*records)) if not isinstance(one, Torn)]
    history.add_file("db-1.log", 1, entries, written)
    return history


def test_positions_rise_with_the_journal_and_say_where_a_record_lies() -> None:
    """The file's number and the byte; those of other queues lie in between."""
    history = _history(added(0), added(1, "other"), added(2))

    first, second = (one.position for one in history.arrivals)
    assert first == (1 << 32) + 28
    assert second > first + 1


def test_transactions_that_a_broker_finds_open_when_it_starts_are_rolled_back() -> None:
    """Of a connection that is gone; without a start they are still open."""
    assert _history(added(0, transaction=1)).state_of("local:ID:host-1:1:1") == "open"
    assert _history(added(0, transaction=1), started()).state_of("local:ID:host-1:1:1") == "aborted"
    done = _history(added(0, transaction=1), ended(1, is_committed=True), started())
    assert done.state_of("local:ID:host-1:1:1") == "committed"


def test_an_acknowledgement_was_given_before_the_next_message_arrived() -> None:
    """Or before the file was written last; else nobody knows."""
    between = _history(added(0), removed(0), added(1))
    last, unknown = _history(added(0), removed(0), written=99), _history(added(0), removed(0))

    assert [one.before_millis for one in between.departures] == [1795170001000]
    assert [one.before_millis for one in last.departures] == [99]
    assert [one.before_millis for one in unknown.departures] == [None]


@pytest.mark.parametrize(
    ("expires", "later", "reason"),
    [
        (0, [], REMOVED),
        (1795170000500, [added(1)], EXPIRED),
        (
            1795170000500,
            [added(9, "ActiveMQ.DLQ", original="orders"), added(0, "ActiveMQ.DLQ", original="orders")],
            EXPIRED,
        ),
        (1795170000500, [], MAYBE_EXPIRED),
        (1795179999999, [added(1)], MAYBE_EXPIRED),
    ],
    ids=["purged", "expired by then", "in the dead letter queue", "nobody knows", "perhaps before its time"],
)
def test_what_the_broker_removed_by_itself_had_expired_or_was_taken_away(
    expires: int, later: list[bytes], reason: str
) -> None:
    """Without a consumer's word it is an expiry only where its time is known to have come."""
    history = _history(added(0, expires=expires), *later, removed(0, kind=2, consumer=None))

    assert [one.reason for one in history.departures] == [reason]
