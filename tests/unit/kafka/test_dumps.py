"""The text of Kafka's log dumper: what it shows, and what of it does not add up."""

from __future__ import annotations

from collections.abc import Callable
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

_COMMIT = _BATCH.replace("isTransactional: false isControl: false", "isTransactional: true isControl: true")
_CUT_MARKER = "a control record without what it decides: the line is cut off or wrapped; paste it whole"


def _record(sizes: str, rest: str) -> str:
    return f"| offset: 0 CreateTime: 5 {sizes} sequence: -1 headerKeys: [a,b]{rest}"


def _marker(rest: str) -> str:
    return _record("keySize: 4 valueSize: 6", rest)


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
        (
            (_BATCH, _record("keySize: 1 valueSize: 9", " key: k payload: cut")),
            "key and value: expected 1 and 9 bytes, found fewer: the line was cut off, or a line break in the value "
            "ended it; paste it whole, or read the segment itself with kind: kafka_segments",
        ),
        (
            (_BATCH, _record("keySize: 1 valueSize: 1", " key: k payload: \ufffd")),
            "key and value: expected 1 and 1 bytes, found others: what is no text is not printed as it was; "
            "read the segment itself with kind: kafka_segments",
        ),
        ((_BATCH,), "expected 1 records, found none: let the tool print them with --print-data-log"),
        (
            (
                _BATCH.replace("count: 1", "count: 2"),
                _record("keySize: 1 valueSize: 1", " key: k payload: v"),
            ),
            "expected 2 records, found 1: lines below this one are missing; paste the dump whole",
        ),
        (
            (_record("keySize: 1 valueSize: 1", " key: k payload: v"),),
            "a record without the line of its batch, `baseOffset: …`, above it; paste the dump whole",
        ),
        (
            (_BATCH, "| offset: 0 CreateTime: 5 keySi"),
            "the line of a record is cut off or wrapped; paste it whole",
        ),
        ((_BATCH.replace("isvalid: true", "isvalid: false"),), "the batch's checksum fails"),
        ((_BATCH.replace("magic: 2", "magic: 1"),), "expected record format 2, found 1"),
        (
            (_BATCH.partition(" isControl")[0],),
            "the line of a batch lacks isControl, isvalid, magic: it is cut off or wrapped; paste it whole",
        ),
        ((_BATCH.replace("count: 1", "count: x"),), "count: expected a number, found x"),
        (
            ("offset: 0 position: 0 CreateTime: 5 isvalid: true keysize: 1 valuesize: 1 magic: 2",),
            "a record as an old kafka-dump-log prints it; print it with that of Kafka 3 or newer",
        ),
        (
            (
                _BATCH,
                _record("keySize: -1 valueSize: 1", " payload: v"),
                "Found 23 invalid bytes at the end of 0.log",
            ),
            "Found 23 invalid bytes at the end of 0.log: a batch that is cut off, or a stretch that is none",
        ),
        ((_COMMIT, _marker("")), _CUT_MARKER),
        ((_COMMIT, _marker(" endTxnMarker: COMM")), _CUT_MARKER),
        ((_COMMIT, _marker(" endTxnMarker: COMMIT coordinatorEp")), _CUT_MARKER),
        (
            (_BATCH, _record("keySize: 1 valueSize: 1", ""), " key: k payload: v"),
            "or paste the line whole that it is a part of",
        ),
        (
            ("anything else",),
            "expected a line of kafka-dump-log, `baseOffset: …` or `| offset: …`, found another; remove it, "
            "or paste the line whole that it is a part of",
        ),
    ],
)
def test_a_line_that_does_not_add_up_is_damage_with_its_text(lines: tuple[str, ...], reason: str) -> None:
    """The line is kept, so that its number can be told."""
    damage = [entry for entry in _read(*lines) if isinstance(entry, Damage)]

    assert [reason in entry.reason for entry in damage] == [True]
    assert damage[0].text in lines


def test_a_dump_of_kafka_2_is_read() -> None:
    """It says where a segment starts, how batches are packed and how long keys are in other words."""
    record = _record("keysize: 1 valuesize: 1", " key: k payload: v")
    lines = ["Dumping /d/t-0/00000000000000000000.log", "Starting offset: 0", _BATCH, record]
    old = [line.replace("deleteHorizonMs: OptionalLong.empty ", "").replace("none", "NONE") for line in lines]

    (batch,) = batches(old, PLACE, None)

    assert isinstance(batch, Batch)
    assert [(entry.offset, entry.key, entry.value) for entry in batch.records()] == [(0, b"k", b"v")]


def test_markers_are_read_and_other_control_records_decide_nothing() -> None:
    """A commit, an abort, and a type of control record that no dumper has a word for."""
    told = [" endTxnMarker: COMMIT coordinatorEpoch: 0", " endTxnMarker: ABORT coordinatorEpoch: 7"]
    found = [_read(_COMMIT, _marker(rest)) for rest in (*told, " controlType: UNKNOWN(9)")]

    assert [[type(entry) for entry in entries] for entries in found] == [[Batch]] * 3
    assert [entries[0].marker() for entries in found if isinstance(entries[0], Batch)] == [
        "committed",
        "aborted",
        None,
    ]


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


@pytest.mark.parametrize(
    "pasted",
    [
        lambda line: line.removeprefix("| "),
        lambda line: line.replace("| ", "|", 1) if line.startswith("|") else line,
        lambda line: f"    {line}",
        lambda line: f"{line}  ",
        lambda line: f"{line}\r",
    ],
    ids=["no bar", "no blank", "indented", "trailing blanks", "Windows"],
)
def test_what_pasting_does_to_lines_changes_nothing(pasted: Callable[[str], str]) -> None:
    """A bar or blanks that are lost or added: the sizes say what belongs to keys and values."""
    lines = (TEXT / "payments-0.dump.txt").read_text().splitlines()

    as_printed = list(batches(lines, ("payments", 0), None))
    as_pasted = list(batches(map(pasted, lines), ("payments", 0), None))

    assert len(as_printed) > 10
    assert outline_of(map(pasted, lines)) == outline_of(lines)
    assert [_content(entry) for entry in as_pasted] == [_content(entry) for entry in as_printed]


def _content(entry: Batch | Damage) -> object:
    assert isinstance(entry, Batch)
    return entry.base_offset, entry.producer_id, list(entry.records())


@pytest.mark.parametrize("folder", ["", "./", "/home/me/copy/"])
def test_a_segment_outside_its_folder_is_of_the_place_that_is_named(folder: str) -> None:
    """Who dumps it from within the folder, or from a copy, has a text that does not say of which partition it is."""
    lines = [
        f"Dumping {folder}00000000000000000000.log",
        _BATCH,
        _record("keySize: -1 valueSize: 1", " payload: v"),
    ]

    assert (outline_of(lines).places, outline_of(lines).has_unplaced) == (frozenset(), True)
    assert [type(entry) for entry in batches(lines, PLACE, PLACE)] == [Batch]
    assert list(batches(lines, PLACE, None)) == []
