"""What Kafka's own tools print: dumps of segments, tables of positions and their export."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, reading_of, rows_of

from tieout.engine.evidence import Evidence
from tieout.engine.sources.source import Reading
from tieout.errors import SourceError

FILES = Path(__file__).parents[2] / "kafka_files"
TEXT = FILES / "text"
COPIED = "2026-11-21T19:17:00Z"
_COPIED_IN_UTC = datetime.fromisoformat(COPIED).replace(tzinfo=None).isoformat()
_SAME = (
    *(
        "topic",
        "partition",
        "offset",
        "leader_epoch",
        "broker_producer_id",
        "producer_epoch",
        "broker_sequence",
    ),
    *("record_timestamp", "timestamp_type", "transaction_state", "is_control", "message_id", "key_hash"),
    *("payload_hash", "end_offset", "last_stable_offset"),
)


def _log(spark: SparkSession, folder: Path, **source: Any) -> Evidence:
    columns = {
        "message_id": "get_json_object(cast(value as string), '$.id')",
        "payload_hash": "sha2(value, 256)",
        "key_hash": "sha2(key, 256)",
    }
    return evidence_of(spark, folder, "log", source=source, columns=columns)


def _positions(spark: SparkSession, folder: Path, **source: Any) -> Reading:
    return reading_of(spark, folder, "committed", {"kind": "kafka_consumer_groups", **source})


def _committed(spark: SparkSession, folder: Path, **source: Any) -> Evidence:
    return evidence_of(spark, folder, "committed", source={"kind": "kafka_consumer_groups", **source})


@pytest.fixture(scope="module")
def whole(spark: SparkSession) -> Evidence:
    """The log, from the segments that the dumps are of."""
    return _log(spark, FILES, kind="kafka_segments", path="log", topic="payments")


def test_a_dump_is_the_log_that_it_is_of(spark: SparkSession, whole: Evidence) -> None:
    """Every row of the dump equals the one that the segments themselves give."""
    dumped = _log(spark, TEXT, kind="kafka_dump_log", path=["payments-0.dump.txt", "payments-1.dump.txt"])

    rows = rows_of(dumped, *_SAME)
    assert len(rows) == 52
    assert set(rows_of(whole, *_SAME)) == {row for row in rows if (row[1], row[2]) not in ((1, 0), (1, 1))}
    assert dumped.coverage.unparsed == 0


@pytest.mark.parametrize("version", ["0.11", "2.0", "2.8"])
def test_a_dump_of_an_old_tool_is_the_log_that_it_is_of(
    spark: SparkSession, whole: Evidence, version: str
) -> None:
    """What those tools printed of these very segments: until 2.2 no leader epoch, and no key of a tombstone."""
    dumped = _log(spark, TEXT, kind="kafka_dump_log", path=f"kafka-{version}.dump.txt")

    columns = [name for name in _SAME if name not in ("leader_epoch", "key_hash")]
    rows = rows_of(dumped, *columns)
    assert len(rows) == 52
    assert set(rows_of(whole, *columns)) == {row for row in rows if (row[1], row[2]) not in ((1, 0), (1, 1))}
    assert dumped.coverage.unparsed == 0
    assert dumped.coverage.is_within_tolerance


def test_malformed_lines_of_a_dump_are_named_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    """A value that is not as long as its line says, a stray line, and a batch that lacks a record."""
    lines = (TEXT / "payments-0.dump.txt").read_text().splitlines()
    lines[3] = lines[3].replace("plain-0", "plain-00")
    lines[4:5] = ["no line of a dump", lines[4]]
    del lines[9]
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")

    found = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt")

    named = [note for note in found.coverage.notes if note.startswith("dump.txt:")]
    assert found.coverage.unparsed == 3
    assert [note.split(": ")[0] for note in named] == ["dump.txt:4", "dump.txt:5", "dump.txt:9"]
    assert "expected 3 records, found 2: " in named[-1]
    assert not found.coverage.is_within_tolerance


def test_a_dump_without_a_segment_in_the_middle_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    """A section that was not pasted leaves a hole, whether the rest is one text or several."""
    text = (TEXT / "payments-0.dump.txt").read_text()
    sections = ["Dumping " + section for section in text.split("Dumping ")[1:]]
    (tmp_path / "one.txt").write_text(sections[0] + sections[2])
    (tmp_path / "a.txt").write_text(sections[2])
    (tmp_path / "b.txt").write_text(sections[0])

    one = _log(spark, tmp_path, kind="kafka_dump_log", path="one.txt")
    two = _log(spark, tmp_path, kind="kafka_dump_log", path=["a.txt", "b.txt"])

    assert (
        "payments-0: one.txt: the dump has nothing of offset 15; a segment is missing" in one.coverage.notes
    )
    assert "payments-0: the segments with offsets 15 to 30 are missing" in two.coverage.notes
    assert not one.coverage.is_within_tolerance
    assert not two.coverage.is_within_tolerance


@pytest.mark.parametrize("files", [("one.txt",), ("a.txt", "b.txt")], ids=["one file", "two files"])
def test_of_two_logs_under_one_name_no_record_is_read(
    spark: SparkSession, tmp_path: Path, files: tuple[str, ...]
) -> None:
    """Dumps of two partitions, made from within their folders: the records of one are no conflict with the other's."""
    dumps = [(TEXT / f"payments-{n}.dump.txt").read_text().splitlines(keepends=True) for n in (1, 0)]
    logs = ["".join(line for line in lines if not line.startswith("Dumping ")) for lines in dumps]
    for file in files:
        (tmp_path / file).write_text("".join(logs) if len(files) == 1 else logs.pop())

    found = _log(spark, tmp_path, kind="kafka_dump_log", path=list(files), topic="payments", partition=0)

    assert rows_of(found, "partition", "offset") == [(0, None)]
    assert any("some of its offsets stand there twice" in note for note in found.coverage.notes)
    assert not found.coverage.is_within_tolerance


def test_lines_without_a_place_need_the_contract_to_name_it(spark: SparkSession, tmp_path: Path) -> None:
    """Pasted records without the line that names their segment are of no partition until the source says which."""
    lines = (TEXT / "payments-1.dump.txt").read_text().splitlines(keepends=True)[2:]
    (tmp_path / "dump.txt").write_text("".join(lines))

    nameless = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt")
    named = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt", topic="payments", partition=0)

    assert "name topic and partition in the source" in nameless.coverage.notes[0]
    assert not nameless.coverage.is_within_tolerance
    assert [row[:2] for row in rows_of(named, "partition", "message_id")] == [
        (0, f"first-{n}") for n in range(4)
    ]


def test_deep_iteration_alone_gives_positions_without_content(spark: SparkSession) -> None:
    """Records that are printed without key and value keep their positions, and the coverage says what is not there."""
    found = _log(spark, TEXT, kind="kafka_dump_log", path="payments-1.deep.dump.txt", topic="payments")

    rows = rows_of(found, "offset", "message_id", "payload_hash", "content")
    assert rows == [(offset, None, None, "unknown") for offset in range(4)]
    assert ("payload_hash", 4) in found.coverage.unknown
    assert any("4 records without key and value" in note for note in found.coverage.notes)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_dump_from_windows_is_read(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    """With its line ends and its byte order mark, and a malformed line is found all the same."""
    lines = (TEXT / "payments-1.dump.txt").read_text().splitlines()
    (tmp_path / "dump.txt").write_text("\r\n".join([*lines, "stray"]) + "\r\n", encoding=encoding, newline="")

    found = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt")

    assert [row[0] for row in rows_of(found, "message_id")] == [f"first-{n}" for n in range(4)]
    (note,) = [note for note in found.coverage.notes if note.startswith("dump.txt:8")]
    assert note.startswith("dump.txt:8: expected a line of kafka-dump-log")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            b"> Dumping /d/t-0/00000000000000000000.log\n> baseOffset: 0\n",
            "expected what kafka-dump-log prints, lines `baseOffset: …` and below each `| offset: …`, found no such "
            "line; paste it whole, and without a sign before each line",
        ),
        (
            b"Dumping 00000000000000000000.log\nbaseOffset: 0\n",
            "batches below no line `Dumping …/<topic>-<partition>/<segment>.log`: "
            "name topic and partition in the source",
        ),
    ],
    ids=["quoted", "no folder"],
)
def test_a_text_that_is_no_dump_says_what_to_do(
    spark: SparkSession, tmp_path: Path, text: bytes, reason: str
) -> None:
    """It costs coverage, and the note says what was expected."""
    (tmp_path / "dump.txt").write_bytes(text)

    found = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt")

    assert f"dump.txt: {reason}" in found.coverage.notes
    assert not found.coverage.is_within_tolerance


@pytest.mark.parametrize(
    "name",
    ["describe.txt", "describe_verbose.txt", "export.csv"],
)
def test_positions_are_read_from_every_form(spark: SparkSession, name: str) -> None:
    """The table, the wider table and the export say the same; none says when a position was committed."""
    found = _committed(spark, TEXT, path=name, taken_at=COPIED, group="payments-loader")

    rows = rows_of(found, "consumer_group", "topic", "partition", "committed_offset")
    assert rows == [("payments-loader", "payments", 0, 6), ("payments-loader", "payments", 1, 4)]
    assert "committed_at" not in found.present
    assert {row["taken_at"].isoformat() for row in found.rows.collect()} == {_COPIED_IN_UTC}
    assert found.coverage.complete_until is not None
    if name == "export.csv":
        assert "taken_at" not in _committed(spark, TEXT, path=name, group="payments-loader").present


def test_a_table_of_several_groups_is_read_by_its_headers(spark: SparkSession, tmp_path: Path) -> None:
    """Each group has its own header; a partition without a position has no row; remarks are passed over."""
    text = (
        "Consumer group 'idle' has no active members.\n\n"
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "idle  orders 0  17  20  3  -  -  -\n"
        "idle  orders 1  -   20  -  -  -  -\n\n"
        "GROUP TOPIC PARTITION LEADER-EPOCH CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "busy  orders 0  4  18  20  2  c-1-aa  /10.0.0.1  c 1\n"
    )
    (tmp_path / "all.txt").write_text(text)

    found = _committed(spark, tmp_path, path="all.txt", group="busy")

    columns = ("consumer_group", "partition", "committed_offset", "leader_epoch")
    assert rows_of(found, *columns) == [("busy", 0, 18, 4), ("idle", 0, 17, None)]
    assert found.coverage.unparsed == 0


def test_a_member_without_partitions_has_no_position(spark: SparkSession, tmp_path: Path) -> None:
    """More consumers than partitions: the tool prints a row of its own for each that has nothing to do."""
    text = (
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "busy  orders 0  18  20  2  c-1-aa  /10.0.0.1  c-1\n"
        "busy  -      -  -   -   -  c-2-bb  /10.0.0.2  c-2\n"
        "busy  orders -  -   -   -  c-3-cc  /10.0.0.3  c-3\n"
    )
    (tmp_path / "members.txt").write_text(text)

    found = _committed(spark, tmp_path, path="members.txt", group="busy")

    assert rows_of(found, "consumer_group", "partition", "committed_offset") == [("busy", 0, 18)]
    assert [note.split(": ")[0] for note in found.coverage.notes[:1]] == ["members.txt:4"]
    assert found.coverage.unparsed == 1


def test_lines_that_concern_the_group_and_are_no_positions_are_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A torn row is an unreadable one with file and line; an error about another group is a note."""
    shutil.copy(TEXT / "describe.txt", tmp_path / "torn.txt")
    with (tmp_path / "torn.txt").open("a") as file:
        file.write("Error: Consumer group 'x' does not exist.\npayments-loader payments")
    (tmp_path / "torn.csv").write_text("g,payments,0,6\npayments,0\n")

    table = _committed(spark, tmp_path, path="torn.txt", group="payments-loader")
    export = _committed(spark, tmp_path, path="torn.csv", group="g")

    assert table.coverage.unparsed == 1
    assert any(note.startswith("torn.txt:6: expected a row of the table") for note in table.coverage.notes)
    assert "torn.txt: 1 lines around the tables say nothing of the group (lines 5)" in table.coverage.notes
    assert export.coverage.notes[0].startswith("torn.csv:2: expected a row of the export")
    assert rows_of(export, "consumer_group", "committed_offset") == [("g", 6)]


_RPK = (
    "GROUP        loader\nCOORDINATOR  2\nSTATE        Stable\nTOTAL-LAG    0\n\n"
    "TOPIC   PARTITION  CURRENT-OFFSET  LOG-START-OFFSET  LOG-END-OFFSET  LAG  MEMBER-ID  CLIENT-ID  HOST\n"
    "orders  0          6               0                 6               0\n"
)
_DESCRIBED = (
    "Picked up JAVA_TOOL_OPTIONS: -Xmx64m\n\nConsumer group 'loader' has no active members.\n\n"
    "TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID\n"
    "orders  0          6               6               0    -            -     -\n"
    "command terminated with exit code 1\n"
)


_REBALANCING = (
    _DESCRIBED.replace("Consumer group", "Warning: Consumer group")
    .replace("has no active members", "is rebalancing")
    .replace("orders  0", "orders  2")
)


@pytest.mark.parametrize(
    "text",
    [_RPK, _DESCRIBED, f"\ufeff{_DESCRIBED}".replace("\n", "\r\n"), _DESCRIBED.replace("  ", "\t")],
    ids=["rpk", "Kafka 1", "Windows", "tabs"],
)
def test_lines_around_a_table_cost_no_coverage(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """A block of names, a warning of Java, a remark of the tool; the contract's group is the one asked for."""
    (tmp_path / "group.txt").write_text(text, newline="")

    found = _positions(spark, tmp_path, path="group.txt", taken_at=COPIED)

    columns = ("consumer_group", "topic", "partition", "committed_offset", "log_end_offset")
    assert rows_of(found, *columns[:4]) == [("loader", "orders", 0, 6)]
    assert found.unparsed_inputs == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_RPK.replace("loader", "audit"), "CURRENT-OFFSET or START-OFFSET or an export, found those of audit"),
        ("Error: Executing consumer group command failed due to TimeoutException\n", "or an export, found none"),
        ("", "or an export, found none"),
        (_RPK.partition("\n\n")[0], "or an export, found none"),
        (_REBALANCING, "the group loader was rebalancing, and its table has no row of orders-0"),
    ],
    ids=["another group", "error", "empty", "summary", "rebalancing"],
)  # fmt: skip
def test_a_text_without_the_group_s_rows_covers_nothing(
    spark: SparkSession, tmp_path: Path, text: str, reason: str
) -> None:
    """Whatever it says of others: what the group's positions are it does not say."""
    (tmp_path / "group.txt").write_text(text)

    found = _positions(spark, tmp_path, path="group.txt", taken_at=COPIED)

    assert any(reason in note for note in found.notes)
    assert found.unparsed_inputs > 0


def test_positions_are_evidence_for_committed_only(spark: SparkSession) -> None:
    """Nothing else is in the table."""
    with pytest.raises(
        SourceError, match="kafka_consumer_groups is evidence for committed and mirrored only"
    ):
        evidence_of(spark, TEXT, "log", source={"kind": "kafka_consumer_groups", "path": "describe.txt"})


@pytest.mark.parametrize(
    ("printed", "is_shown", "positions"),
    [
        (
            "GROUP   TOPIC   PARTITION  START-OFFSET  LAG\nloader  orders  0  17  3\n",
            True,
            [("orders", 0, 17)],
        ),
        ("GROUP   TYPE   PROTOCOL\nloader  Share  share\n", True, []),
        ("\nShare group 'loader' has no active members.\n", True, []),
        ("GROUP   TYPE   PROTOCOL\nother   Share  share\nloader  Consumer  consumer\n", False, []),
    ],
    ids=["its table", "a listing", "a remark", "another group's type"],
)
def test_what_a_tool_prints_of_a_share_group_shows_it(
    spark: SparkSession, tmp_path: Path, printed: str, is_shown: bool, positions: list[tuple[str, int, int]]
) -> None:
    """It is told as one. Before its start offset nothing is given any more; of a set nothing is said beyond."""
    (tmp_path / "group.txt").write_text(printed)

    found = _positions(spark, tmp_path, path="group.txt", group="loader")

    assert found.is_share_group is is_shown
    assert any("loader is a share group" in note for note in found.notes) is is_shown
    assert rows_of(found, "topic", "partition", "committed_offset") == positions


def test_a_dump_of_several_topics_is_no_ledger_of_one(spark: SparkSession, tmp_path: Path) -> None:
    """Records of the input topic would be effects; only `log` says of each record which topic it is in."""
    parts = [(TEXT / f"payments-{number}.dump.txt").read_text() for number in (0, 1)]
    (tmp_path / "dump.txt").write_text(parts[0] + parts[1].replace("/payments-1/", "/answers-0/"))
    source = {"kind": "kafka_dump_log", "path": "dump.txt", "taken_at": COPIED}
    columns = {"message_id": "cast(value as string)", "processed_at": "source_timestamp", "outcome": "'ok'"}

    found = evidence_of(spark, tmp_path, "delivered", source=source, columns=columns)
    named = evidence_of(spark, tmp_path, "delivered", source={**source, "topic": "answers"}, columns=columns)

    assert not found.coverage.is_within_tolerance
    assert found.coverage.rows == 0
    assert (
        "expected dumps of one topic, or topic in the source, found dumps of answers, payments: name the topic that is "
        "delivered" in found.coverage.notes
    )
    assert named.coverage.rows > 0
    assert named.coverage.is_within_tolerance


def _dump_of(*payloads: str) -> str:
    """A dump of records, each in a batch of its own."""
    alone = "baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0"
    kind = "isTransactional: false isControl: false magic: 2 compresscodec: none crc: 1 isvalid: true"
    lines = ["Dumping /data/orders-0/00000000000000000000.log", "Log starting offset: 0"]
    for offset, payload in enumerate(payloads):
        size = len(payload.encode())
        lines += [
            f"baseOffset: {offset} lastOffset: {offset} count: 1 {alone} {kind}",
            f"| offset: {offset} CreateTime: 1795168801000 keySize: 2 valueSize: {size} sequence: -1 headerKeys: [] "
            f"key: k{offset} payload: {payload}",
        ]
    return "\n".join(lines) + "\n"


def test_a_question_mark_may_stand_for_what_the_tool_could_not_print(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In an ASCII locale each byte that is no character is printed as one, so that sizes agree."""
    payloads = ('{"id":"o-1"}', '{"id":"o-2","city":"M?nchen"}')
    (tmp_path / "dump.txt").write_text("➜ kafka-dump-log.sh --files …\n" + _dump_of(*payloads))
    (tmp_path / "utf8.txt").write_text(_dump_of(*payloads, '{"id":"o-3","city":"Nürnberg"}'))

    found = _log(spark, tmp_path, kind="kafka_dump_log", path="dump.txt")
    sure = _log(spark, tmp_path, kind="kafka_dump_log", path="utf8.txt")

    reported = [
        (*row[:2], row[2] is None, row[3] is None)
        for row in rows_of(found, "message_id", "content", "payload_hash", "key_hash")
    ]
    assert reported == [("o-1", None, False, False), ("o-2", "unknown", True, False)]
    assert found.coverage.unparsed == 0
    assert found.coverage.unknown == (("payload_hash", 1),)
    assert any(note.startswith("dump.txt: no character but those of ASCII") for note in found.coverage.notes)
    assert [row[0] is None for row in rows_of(sure, "payload_hash")] == [False] * 3
    assert sure.coverage.unknown == ()
