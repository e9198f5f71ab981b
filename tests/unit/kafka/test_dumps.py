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
        ((_BATCH.replace("count: 1", "count: x"),), "count: expected a number up to 2147483647, found x"),
        (
            (_BATCH.replace("lastOffset: 0", f"lastOffset: {'9' * 5000}"),),
            f"lastOffset: expected a number up to 4611686018427387903, found {'9' * 40}…",
        ),
        (
            (_BATCH.replace("baseOffset: 0", "baseOffset: 9223372036854775807"),),
            "baseOffset: expected a number up to",
        ),
        ((_BATCH.replace("baseOffset: 0", "baseOffset: 7"),), "lastOffset: expected 7 or more, found 0"),
        ((_BATCH.replace("lastOffset: 0", "lastOffset: -1"),), "lastOffset: expected a number up to"),
        ((_BATCH.replace("count: 1", "count: 99999999999"),), "count: expected a number up to 2147483647"),
        (
            (_BATCH.replace("producerId: -1", f"producerId: {'9' * 20}"),),
            "producerId: expected a number up to",
        ),
        (
            (_BATCH.replace("producerEpoch: -1", "producerEpoch: 99999999999"),),
            "producerEpoch: expected a number up to 2147483647, found 99999999999",
        ),
        (
            (_BATCH.replace("partitionLeaderEpoch: 3", "partitionLeaderEpoch: 99999999999"),),
            "partitionLeaderEpoch: expected a number up to 2147483647, found 99999999999",
        ),
        (
            (
                _BATCH,
                _record("keySize: -1 valueSize: 1", " payload: v").replace(
                    "CreateTime: 5", f"CreateTime: {10**17}"
                ),
            ),
            f"record_timestamp: expected a time of the years 1 to 9999, found {10**17} milliseconds since 1970",
        ),
        (
            (
                _BATCH,
                _record("keySize: -1 valueSize: 1", " payload: v").replace("offset: 0", f"offset: {10**19}"),
            ),
            "the line of a record is cut off or wrapped",
        ),
        ((_COMMIT, _marker(f" endTxnMarker: COMMIT coordinatorEpoch: {'9' * 20}")), _CUT_MARKER),
        (
            ("offset: 0 position: 0 CreateTime: 5 isvalid: true keysize: 1 valuesize: 1 magic: 2",),
            "the line of a record is cut off or wrapped; paste it whole",
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


_V2 = (
    "offset: 7 position: 0 CreateTime: 5 isvalid: true keysize: 1 valuesize: 2 magic: 2 compresscodec: GZIP "
    "producerId: 9 producerEpoch: 1 sequence: 4 isTransactional: true headerKeys: [a] key: k payload: vv"
)
_V1 = (
    "offset: 7 position: 0 CreateTime: 5 isvalid: true keysize: 1 valuesize: 2 magic: 1 compresscodec: NONE crc: 1 "
    "key: k payload: vv"
)
_PAYLOAD = (
    "offset: 7 position: 0 CreateTime: 5 isvalid: true payloadsize: 2 magic: 1 compresscodec: NoCompressionCodec "
    "crc: 1 keysize: 1 key: k payload: vv"
)
_SET = "offset: 7 position: 0 CreateTime: 5 size: 90 magic: 1 compresscodec: NONE crc: 1 isvalid: true"
_IN_SET = "| offset: 7 CreateTime: 5 keysize: 1 valuesize: 2 crc: 1 isvalid: true key: k payload: vv"
_OF_2_8 = (
    "| offset: 7 isValid: true crc: null keySize: 1 valueSize: 2 CreateTime: 5 baseOffset: 7 lastOffset: 7 "
    "baseSequence: 4 lastSequence: 4 producerEpoch: 1 partitionLeaderEpoch: 3 batchSize: 76 magic: 2 compressType: "
    "NONE position: 0 sequence: 4 headerKeys: [] key: k payload: vv"
)


@pytest.mark.parametrize(
    ("lines", "producer", "sequence", "time"),
    [
        ((_V2,), 9, 4, 5),
        ((_V2.replace("CreateTime", "LogAppendTime"),), 9, 4, 5),
        ((_V1,), -1, -1, 5),
        ((_V1.replace("CreateTime: 5", "NoTimestampType: -1").replace("magic: 1", "magic: 0"),), -1, -1, None),
        ((_PAYLOAD,), -1, -1, 5),
        ((_PAYLOAD.replace(" magic", "  magic"),), -1, -1, 5),
        ((_PAYLOAD.replace("CreateTime: 5 ", "").replace("magic: 1", "magic: 0"),), -1, -1, None),
        ((_SET, _IN_SET), -1, -1, 5),
        ((_SET, _IN_SET.replace("size", "Size").replace("crc: 1 isvalid: true", "isValid: true crc: 1}")), -1, -1, 5),
        ((_BATCH.replace("Offset: 0", "Offset: 7"), _OF_2_8), -1, 4, 5),
    ],
    ids=["2.0", "append", "1.0", "0.11", "0.10.2", "blanks", "0.9", "2.7 set", "3.9 set", "2.8"],
)  # fmt: skip
def test_a_record_of_every_version_is_read(
    lines: tuple[str, ...], producer: int, sequence: int, time: int | None
) -> None:
    """Until Kafka 2.2 a record's line tells of its batch; what it does not print is not known."""
    (batch,) = _read(*lines)

    assert isinstance(batch, Batch)
    (record,) = batch.records()
    assert (record.offset, record.key, record.value) == (7, b"k", b"vv")
    assert (record.timestamp_ms, record.sequence, batch.producer_id) == (time, sequence, producer)
    assert (batch.base_offset, batch.last_offset, batch.count) == (7, 7, 1)
    assert batch.is_transactional == (producer == 9)
    assert batch.is_log_append_time == ("LogAppendTime" in lines[0])


def test_old_keys_and_values_that_are_not_there_are_null() -> None:
    """Kafka 0.8 prints a null value as a word, later versions not even the key beside it."""
    line = _PAYLOAD.replace("payloadsize: 2", "payloadsize: -1").replace("payload: vv", "payload: null")
    keyless = _PAYLOAD.replace("keysize: 1 key: k ", "")
    lines = [line, line.removesuffix(" key: k payload: null"), keyless, keyless.removesuffix(" payload: vv")]

    found = [entry for one in lines for entry in _read(one)]

    assert [entry.records()[0].key for entry in found if isinstance(entry, Batch)] == [b"k", None, None, None]
    assert [entry.records()[0].value for entry in found if isinstance(entry, Batch)] == [
        None,
        None,
        b"vv",
        None,
    ]
    assert [entry.records()[0].is_unprinted for entry in found if isinstance(entry, Batch)] == [
        False,
        True,
        False,
        True,
    ]
    assert (outline_of(lines).bare, outline_of(lines).has_unplaced) == (1, True)


def test_old_markers_decide_and_one_that_is_cut_off_is_damage() -> None:
    """A line of its own as well, told by what it decides or by having no sequence in a transaction."""
    marker = _V2.replace("keysize: 1 valuesize: 2", "keysize: 4 valuesize: 6").replace(
        "sequence: 4", "sequence: -1"
    )
    marker = marker.removesuffix(" key: k payload: vv")
    found = [_read(f"{marker} endTxnMarker: {kind} coordinatorEpoch: 0")[0] for kind in ("COMMIT", "ABORT")]
    cut = _read(marker)[0]

    assert [entry.marker() for entry in found if isinstance(entry, Batch)] == ["committed", "aborted"]
    assert isinstance(cut, Damage)
    assert cut.reason == _CUT_MARKER


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (_V2[:-1], "key and value: expected 1 and 2 bytes, found fewer"),
        (_PAYLOAD.replace("isvalid: true", "isvalid: false"), "the record's checksum fails"),
        (_PAYLOAD.replace("NoCompressionCodec", "GZIPCompressionCodec"), "print them with --deep-iteration"),
        (_V1.partition(" crc")[0], "the line of a record is cut off or wrapped"),
        (_V2.partition(" headerKeys")[0], "the line of a record is cut off or wrapped"),
        (_SET, "expected the messages of this set below its line, found none"),
        (
            "baseOffset: 0 lastOffset: 3 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
            "partitionLeaderEpoch: 0 isTransactional: false position: 0 CreateTime: 5 isvalid: true size: 90 magic: 2 "
            "compresscodec: NONE crc: 1",
            "the line of a batch as Kafka 1 prints it without records",
        ),
    ],
)  # fmt: skip
def test_an_old_line_that_does_not_add_up_is_damage(line: str, reason: str) -> None:
    """What is cut off, compressed or without its records."""
    damage = [entry for entry in _read(line) if isinstance(entry, Damage)]

    assert [reason in entry.reason for entry in damage] == [True]
    assert damage[0].text == line


def test_a_set_whose_last_message_is_missing_is_damage() -> None:
    """Its line says which offset its last message has."""
    record = _IN_SET.replace("offset: 7", "offset: 6")

    damage = [entry for entry in _read(_SET, record) if isinstance(entry, Damage)]

    assert "found the last at offset 6" in damage[0].reason


@pytest.mark.parametrize(
    "noise",
    [
        "SLF4J: Class path contains multiple SLF4J bindings.",
        "log4j:WARN Please initialize the log4j system properly.",
        "Picked up JAVA_TOOL_OPTIONS: -Xmx64m",
        "OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated in version 9.0",
        "WARNING: The 'kafka.tools.DumpLogSegments' package is deprecated",
        "[2026-11-20 10:00:00,123] WARN Unsupported option (kafka.tools.DumpLogSegments$)",
        "2026-11-20 10:00:00 INFO starting",
        'Defaulted container "kafka" out of: kafka, metrics',
        "me@host:~$ kafka-dump-log.sh --print-data-log --files 0.log",
        "[root@broker-1 kafka]# bin/kafka-run-class.sh kafka.tools.DumpLogSegments --files 0.log",
        "$ kubectl exec kafka-0 -- kafka-dump-log --files 0.log",
        *(
            "me@host:~$",
            "root@broker:/# ",
            "sh-4.4$ ",
            "/ # ",
            "[appuser@broker ~]$ ",
            "me@mac kafka % ",
            "exit",
        ),
        "sh-4.4$ kafka-dump-log --files 0.log",
        "C:\\kafka> bin\\windows\\kafka-run-class.bat kafka.tools.DumpLogSegments --files 0.log",
        "PS C:\\kafka>",
        "WARN[0000] the attribute `version` is obsolete",
        "Connection to broker-1 closed.",
        "```text",
        "Mismatches in :/d/t-0/00000000000000000000.index",
        "  Index offset: 5, log offset: 7",
        "Non-secutive offsets in :/d/t-0/00000000000000000000.log",
        "The following indexed offsets are not found in the log.",
        "/d/t-0/00000000000000000000.index passed sanity check.",
    ],
)
def test_what_shells_and_loggers_write_between_the_lines_is_no_damage(noise: str) -> None:
    """Before a batch, between it and its record, and behind."""
    record = _record("keySize: -1 valueSize: 1", " payload: v")

    found = _read(noise, _BATCH, noise, record, noise, _V2, noise)

    assert [type(entry) for entry in found] == [Batch, Batch]


@pytest.mark.parametrize(
    "line",
    [
        'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Record size 0',
        "[2026-11-20 10:00:00,123] ERROR Exiting (kafka.tools.DumpLogSegments$)",
        "command terminated with exit code 1",
        "Killed",
        "$ kafka-dump-log --print-data-log --files 0.log | head -100",
        "$ kafka-dump-log --print-data-log --max-bytes 1000 --files 0.log",
    ],
)
def test_what_may_have_ended_the_tool_is_damage(line: str) -> None:
    """What it would have printed behind is not known."""
    record = _record("keySize: -1 valueSize: 1", " payload: v")

    assert [type(entry) for entry in _read(_V2, line)] == [Batch, Damage]
    assert [type(entry) for entry in _read(_BATCH, record, line)] == [Damage, Batch]


def test_markers_are_read_and_other_control_records_decide_nothing() -> None:
    """A commit, an abort, and a type of control record that no dumper has a word for."""
    reported = [" endTxnMarker: COMMIT coordinatorEpoch: 0", " endTxnMarker: ABORT coordinatorEpoch: 7"]
    found = [_read(_COMMIT, _marker(rest)) for rest in (*reported, " controlType: UNKNOWN(9)")]

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

    assert (bare.places, bare.has_unplaced, bare.bare) == (frozenset({("payments", 1)}), False, 4)
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


@pytest.mark.parametrize("lines", [("| payload: v",), ("| key: k payload: v", "payload: w")])
def test_records_without_metadata_name_the_option(lines: tuple[str, ...]) -> None:
    """Each is one unreadable row, and its batch none: nothing was cut off that pasting would bring back."""
    *found, batch = _read(_BATCH.replace("count: 1", f"count: {len(lines)}"), *lines)

    assert [entry.text for entry in found if isinstance(entry, Damage)] == list(lines)
    assert all(isinstance(entry, Damage) and "--skip-record-metadata" in entry.reason for entry in found)
    assert isinstance(batch, Batch)
    assert batch.count == 0


def test_a_line_of_content_below_a_record_is_a_wrapped_one() -> None:
    """The record's own line lacks what stands there."""
    found = _read(_BATCH, _record("keySize: -1 valueSize: 1", ""), "payload: v")

    assert not any("--skip" in entry.reason for entry in found if isinstance(entry, Damage))
