"""ZooKeeper's transaction log and snapshots, byte for byte; what is torn, changed or of another version is told."""

from __future__ import annotations

import struct
import time

import pytest
from tests.engine.sources.zookeeper import MILLIS, ROOT, current, entry, log, ranged, snapshot

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.zookeeper_log import Change, TornLog, Transaction, transactions_in
from tieout.engine.systems.zookeeper_snapshot import Node, nodes_in

_ENTRIES = (
    entry(1, ("/storm/leader", b"x")),
    entry(2, ranged(1, 0, 4)),
    entry(3, current(2), (f"{ROOT}/user/orders@0/1", None)),
    entry(4),
)


def test_each_change_below_the_node_is_returned_with_its_time() -> None:
    """Those of other nodes, errors and the digest behind a record are passed over; so is a sibling with the prefix."""
    sibling = entry(5, ("/transactional-old/a/b", b"1"))

    found = list(transactions_in(log((*_ENTRIES, sibling)), "/transactional"))

    assert [one.zxid for one in found if isinstance(one, Transaction)] == [1, 2, 3, 4, 5]
    changes = [one.changes for one in found if isinstance(one, Transaction)]
    assert changes[0] == changes[3] == changes[4] == ()
    assert changes[1] == (Change(*ranged(1, 0, 4)),)
    assert changes[2] == (Change(*current(2)), Change(f"{ROOT}/user/orders@0/1", None))
    assert isinstance(found[2], Transaction)
    assert found[2].millis == MILLIS + 3000


@pytest.mark.parametrize("cut", [1, 5, 13, 40])
def test_a_torn_end_is_reported(cut: int) -> None:
    """Wherever in the entry the server died; what comes before it stands."""
    whole = log(_ENTRIES, padding=0)

    found = list(transactions_in(whole[:-cut] + bytes(200), "/transactional"))

    assert found[-1] == TornLog(len(log(_ENTRIES[:3], padding=0)), is_followed=False)
    assert len(found) == 4


def test_a_changed_entry_in_the_middle_is_no_torn_end() -> None:
    """A whole entry comes behind it."""
    content = bytearray(log(_ENTRIES))
    content[len(log(_ENTRIES[:1], padding=0)) + 60] ^= 1

    found = list(transactions_in(bytes(content), "/transactional"))

    assert found[-1] == TornLog(len(log(_ENTRIES[:1], padding=0)), is_followed=True)


def test_a_torn_file_is_searched_no_longer_than_a_few_readings_take() -> None:
    """Each of 60,000 places looks as if an entry of two megabytes began there, whose checksum does not hold."""
    heads = (b"B" + bytes(8) + struct.pack(">i", 2_000_000)) * 60_000
    began = time.process_time()

    found = list(transactions_in(log((), padding=0) + b"torn" + heads + b"B" * 4_000_000, "/transactional"))

    assert found == [TornLog(16, is_followed=True)]
    assert time.process_time() - began < 5


def test_transactions_do_not_lie_within_each_other() -> None:
    """A server writes none like it; a parser that calls itself for each would end there."""
    record = b""
    for _ in range(5000):
        record = struct.pack(">iii", 1, 14, len(record)) + record

    with pytest.raises(FormatError, match="a transaction within a transaction"):
        list(transactions_in(log((entry(1, kind=14, record=record),)), "/transactional"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected a transaction log of ZooKeeper"),
        (snapshot({}), "expected a transaction log of ZooKeeper"),
        (log((), version=3), "expected version 2 of a transaction log, found version 3"),
        (log((), version=3)[:6], "cut off"),
        (log((entry(1, kind=14),)), "the entry at byte 16"),
    ],
)
def test_another_file_is_refused(content: bytes, expected: str) -> None:
    """With what was expected and found."""
    with pytest.raises(FormatError, match=expected):
        list(transactions_in(content, "/transactional"))


def test_a_snapshot_has_nodes_with_their_times() -> None:
    """Those below the node alone."""
    path, data = current(3)
    content = snapshot({"/storm": (b"", 1), path: (data or b"", MILLIS)})

    assert nodes_in(content, "/transactional") == (Node(path, b"3", MILLIS),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (log(()), "expected a snapshot of ZooKeeper"),
        (snapshot({"/a": (b"1", 1)})[:-20], "cut off"),
        (snapshot({"/a": (b"1", 1)}, checksum=1), "checksum does not hold"),
    ],
)
def test_a_snapshot_that_is_not_whole_is_refused(content: bytes, expected: str) -> None:
    """A server that is killed while it writes one leaves it."""
    with pytest.raises(FormatError, match=expected):
        nodes_in(content, "/transactional")
