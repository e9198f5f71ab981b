"""The text of Kafka's log dumper: what it shows, and what of it does not add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.engine.kafka.dumps import batches, outline_of
from tieout.engine.kafka.records import Batch, Damage

TEXT = Path(__file__).parents[2] / "kafka_files" / "text"
PLACE = ("t", 0)
_BATCH = (
    "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 5 size: 90 magic: 2 compresscodec: none crc: 1 isvalid: true"
)


def _record(sizes: str, rest: str) -> str:
    return f"| offset: 0 CreateTime: 5 {sizes} sequence: -1 headerKeys: [a,b]{rest}"


def _read(*lines: str) -> list[Batch | Damage]:
    return list(batches(lines, PLACE, PLACE))


@pytest.mark.parametrize(
    ("sizes", "rest", "content"),
    [
        ("keySize: 1 valueSize: 1", " key: k payload: v", (b"k", b"v")),
        ("keySize: -1 valueSize: 1", " payload: v", (None, b"v")),
        ("keySize: 1 valueSize: -1", " key: k", (b"k", None)),
        ("keySize: 0 valueSize: 0", " key:  payload: ", (b"", b"")),
        ("keySize: 14 valueSize: 3", " key: a payload: bcd payload: v x", (b"a payload: bcd", b"v x")),
        ("keysize: 2 valuesize: 3", " key: é payload: €", ("é".encode(), "€".encode())),
        ("keySize: 1 valueSize: 1", "", (None, None)),
    ],
)
def test_keys_and_values_are_cut_by_their_sizes(sizes: str, rest: str, content: tuple[bytes, bytes]) -> None:
    """Texts that hold the words of the line, empty ones and letters of several bytes come out as they were."""
    (batch,) = _read(_BATCH, _record(sizes, rest))

    assert isinstance(batch, Batch)
    assert [(record.key, record.value) for record in batch.records()] == [content]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((_BATCH, _record("keySize: 1 valueSize: 9", " key: k payload: cut")), "have not the sizes"),
        ((_BATCH, _record("keySize: 1 valueSize: 1", " key: k payload: \ufffd")), "have not the sizes"),
        ((_BATCH,), "expected 1 records, found 0: let the tool print them with --print-data-log"),
        (
            (_record("keySize: 1 valueSize: 1", " key: k payload: v"),),
            "a record without the line of its batch",
        ),
        ((_BATCH.replace("isvalid: true", "isvalid: false"),), "the batch's checksum fails"),
        ((_BATCH.replace("magic: 2", "magic: 1"),), "expected record format 2, found 1"),
        ((_BATCH[:60],), "the line of a batch lacks"),
        ((_BATCH.replace("count: 1", "count: x"),), "count: expected a number, found x"),
        (("anything else",), "the line is neither a batch nor a record of one"),
    ],
)
def test_a_line_that_does_not_add_up_is_damage_with_its_text(lines: tuple[str, ...], reason: str) -> None:
    """The line is kept, so that its number can be told."""
    damage = [entry for entry in _read(*lines) if isinstance(entry, Damage)]

    assert [reason in entry.reason for entry in damage] == [True]
    assert damage[0].text in lines


def test_parts_about_indexes_and_other_partitions_are_passed_over() -> None:
    """A dump of a whole folder has indexes and snapshots too; another topic's part is not this one's."""
    lines = [
        "Dumping /d/t-0/00000000000000000000.log",
        _BATCH,
        _record("keySize: -1 valueSize: 1", " payload: v"),
    ]
    others = [
        "Dumping /d/t-0/00000000000000000000.index",
        "offset: 5 position: 60",
        "Dumping /d/u-0/0.snapshot",
    ]

    found = list(batches([*lines, *others, "producerId: 1"], PLACE, None))

    assert [type(entry) for entry in found] == [Batch]
    assert outline_of([*lines, *others]).places == {PLACE}


def test_an_outline_tells_what_a_text_lacks() -> None:
    """Lines before any place, and records without content, are told before anything is read."""
    bare = outline_of((TEXT / "payments-1.deep.dump.txt").read_text().splitlines())
    pasted = outline_of([_BATCH, _record("keySize: 1 valueSize: 1", " key: k payload: v")])

    assert (bare.places, bare.has_unplaced, bare.bare) == ({("payments", 1)}, False, 4)
    assert (pasted.places, pasted.has_unplaced, pasted.bare) == (frozenset(), True, 0)
