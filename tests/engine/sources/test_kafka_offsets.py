"""A group's history of positions: from the offset table that a real broker wrote, and from every version of a value."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.engine.sources.builders import evidence_of, faults_of, rows_of

from tieout.engine.evidence import Evidence
from tieout.engine.session import suited_to
from tieout.engine.sources.kafka_offsets import (
    _commits,
    _decoded,
    _is_share_group,
    partition_of,
)
from tieout.errors import SourceError

FILES = Path(__file__).parents[2] / "kafka_files"
GROUP = "payments-loader"
_PLACE = ("topic", "partition", "committed_offset")
_KNOWN = {"kind": "kafka_offsets", "path": "log", "group": GROUP, "partitions": 1}


def _evidence(spark: SparkSession, folder: Path = FILES, **source: Any) -> Evidence:
    return evidence_of(spark, folder, "committed", source={**_KNOWN, **source})


def _history(evidence: Evidence) -> list[tuple[Any, ...]]:
    rows = evidence.rows.orderBy("partition", "committed_at").collect()
    return [(row["partition"], row["committed_offset"], row["metadata"]) for row in rows]


@pytest.fixture(scope="module")
def commits(spark: SparkSession) -> Evidence:
    """The group's commits, from the segment files."""
    return _evidence(spark, taken_at="2026-11-21T19:17:00Z")


def test_the_history_has_every_commit_in_force_and_none_of_an_aborted_transaction(commits: Evidence) -> None:
    """Forward, back, in a committed transaction; librdkafka's trailing zero byte is no part of the metadata."""
    assert _history(commits) == [
        (0, 2, "first"),
        (0, 5, 'by hand: {"a": 1}'),
        (0, 3, ""),
        (0, 6, ""),
        (1, 4, ""),
    ]
    assert "1 commits in aborted transactions, set aside" in commits.coverage.notes
    assert any(note.endswith("records about memberships, passed over") for note in commits.coverage.notes)
    assert commits.coverage.unparsed == 0


def test_segments_and_formatter_say_the_same(spark: SparkSession, commits: Evidence) -> None:
    """Kafka's own formatter is the witness: group, topic, its id, time and metadata are those of the bytes.

    A commit in a transaction names no id of its topic.
    """
    printed = _evidence(spark, path="text/consumer_offsets.formatted.txt", format="formatter")

    columns = (*_PLACE, "consumer_group", "topic_id", "leader_epoch", "committed_at", "metadata")
    assert rows_of(printed, *columns) == rows_of(commits, *columns)
    assert {row[4] for row in rows_of(commits, *columns)} == {_topic_id(), None}


def _topic_id() -> str:
    return (FILES / "log" / "payments-0" / "partition.metadata").read_text().split("topic_id: ")[1].strip()


def test_another_group_s_deleted_position_is_a_row_without_an_offset(spark: SparkSession) -> None:
    """A group that was deleted leaves its commit and the record that deletes it."""
    found = _evidence(spark, group="abandoned")

    assert _history(found) == [(1, 3, ""), (1, None, None)]
    assert "1 positions were deleted" in found.coverage.notes or any(
        "deleted" in n for n in found.coverage.notes
    )


def test_a_group_without_a_commit_is_said_to_have_none(spark: SparkSession) -> None:
    """No row, and a note, where the table has nothing of the group."""
    found = _evidence(spark, group="nobody")

    assert _history(found) == []
    assert "no commit of the group nobody" in found.coverage.notes


def test_the_partition_is_the_group_s(spark: SparkSession) -> None:
    """With the broker's default of fifty, the group's partition is another one, and it is not there."""
    found = _evidence(spark, partitions=50)

    assert not found.coverage.is_present
    assert any("__consumer_offsets-5" in note for note in found.coverage.notes)
    hint = "the group's positions are in partition 5 of 50 (offsets.topic.num.partitions)"
    assert hint in found.coverage.notes


@pytest.mark.parametrize(("group", "partition"), [("payments-loader", 5), ("grüppe-😀", 34)])
def test_a_group_s_partition_is_the_one_that_java_works_out(group: str, partition: int) -> None:
    """The numbers are those of `String.hashCode`, without the sign, modulo fifty."""
    assert partition_of(group, 50) == partition


def test_a_changed_byte_of_the_table_is_never_a_wrong_position(spark: SparkSession, tmp_path: Path) -> None:
    """The batch is lost, and the ledger proves nothing any more."""
    shutil.copytree(FILES / "log", tmp_path / "log")
    segment = tmp_path / "log" / "__consumer_offsets-0" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[90] ^= 4
    segment.write_bytes(content)

    found = _evidence(spark, tmp_path)

    assert not found.coverage.is_within_tolerance


def test_documents_that_are_none_are_named(spark: SparkSession, tmp_path: Path) -> None:
    """A torn last document is an unreadable row; one with a brace in its metadata is whole."""
    text = (FILES / "text" / "consumer_offsets.formatted.txt").read_text()
    value = {
        "version": 4,
        "data": {"offset": 9, "leaderEpoch": 2, "metadata": '}{"key":', "commitTimestamp": 5},
    }
    key = {"version": 1, "data": {"group": GROUP, "topic": "payments", "partition": 7}}
    whole = json.dumps({"key": key, "value": value}, separators=(",", ":"))
    (tmp_path / "text.txt").write_text(whole + text + whole[:-20])

    found = _evidence(spark, tmp_path, path="text.txt", format="formatter")

    assert found.coverage.unparsed == 1
    assert (7, 9, '}{"key":') in _history(found)


_NEW = (
    "OffsetAndMetadata(offset=17, leaderEpoch=Optional[3], metadata=by hand, commitTimestamp=1700000000000, "
)


_TEXTS_OF_VERSIONS = {
    "2.1": (f"{_NEW}expireTimestamp=None)", 3, "by hand"),
    "expires": (f"{_NEW}expireTimestamp=Some(1700000099000))", 3, "by hand"),
    "empty": (
        _NEW.replace("Optional[3]", "Optional.empty").replace("by hand", "") + "expireTimestamp=None)",
        None,
        None,
    ),
    "Java": (
        _NEW.replace("Optional[3]", "OptionalInt[3]").replace("commitTimestamp", "commitTimestampMs")
        + "expireTimestampMs=OptionalLong.empty, recordOffset=9)",
        3,
        "by hand",
    ),
    "0.10": (
        "[OffsetMetadata[17,NO_METADATA],CommitTime 1700000000000,ExpirationTime 1700086400000]",
        None,
        None,
    ),
    "metadata": (
        "[OffsetMetadata[17,a],[b,CommitTime],CommitTime 1700000000000,ExpirationTime -1]",
        None,
        "a],[b,CommitTime",
    ),
    "0.8": ("OffsetAndMetadata[17,NO_METADATA,1700000000000]", None, None),
    "0.8 metadata": ("OffsetAndMetadata[17,a,b,1700000000000]", None, "a,b"),
}


def test_a_commit_is_read_from_every_version_s_text(spark: SparkSession, tmp_path: Path) -> None:
    """Lines before Kafka 4; the group's name may have a comma, and metadata may look like anything."""
    lines = [
        f"[a,{GROUP},my.topic-1,{place}]::{one[0]}\n" for place, one in enumerate(_TEXTS_OF_VERSIONS.values())
    ]
    (tmp_path / "text.txt").write_text("".join(lines))

    found = _evidence(spark, tmp_path, path="text.txt", format="formatter", group=f"a,{GROUP}")

    names = list(_TEXTS_OF_VERSIONS)
    rows = {names[row["partition"]]: row for row in found.rows.collect()}
    assert {name: (row["leader_epoch"], row["metadata"]) for name, row in rows.items()} == {
        name: (epoch, metadata) for name, (_, epoch, metadata) in _TEXTS_OF_VERSIONS.items()
    }
    for row in rows.values():
        assert (row["topic"], row["committed_offset"], row["consumer_group"]) == (
            "my.topic-1",
            17,
            f"a,{GROUP}",
        )
        assert row["committed_at"].isoformat() == "2023-11-14T22:13:20"
    assert found.coverage.unparsed == 0


_OWN = f"[{GROUP},t,0]::{_NEW}expireTimestamp=None)"
_DOCUMENT = (
    f'{{"key":{{"version":1,"data":{{"group":"{GROUP}","topic":"t","partition":0}}}},'
    '"value":{"version":3,"data":{"offset":17,"leaderEpoch":3,"metadata":"","commitTimestamp":1700000000000}}}'
)


@pytest.mark.parametrize(
    "prefix",
    ["[pod/kafka-0/kafka] ", "[2026-11-20 10:00:00,123] ", "tools-1  | ", "2026-11-20T10:00:00.123456789Z "],
)
def test_a_commit_is_read_behind_what_containers_and_loggers_write(
    spark: SparkSession, tmp_path: Path, prefix: str
) -> None:
    """Such as `kubectl logs --prefix`: a name or a time before each line is no part of a group's name."""
    lines = [_OWN, _OWN.replace(GROUP, "audit"), f"{GROUP}::GroupMetadata(groupId={GROUP})", _DOCUMENT]
    (tmp_path / "text.txt").write_text("".join(f"{prefix}{line}\n" for line in lines))

    found = _evidence(spark, tmp_path, path="text.txt", format="formatter")

    assert rows_of(found, *_PLACE) == [("t", 0, 17), ("t", 0, 17)]
    assert found.coverage.unparsed == 0
    assert "1 commits of other groups, passed over" in found.coverage.notes


@pytest.mark.parametrize("own", [_OWN, _DOCUMENT], ids=["lines", "documents"])
def test_what_is_no_commit_of_the_group_is_passed_over(spark: SparkSession, tmp_path: Path, own: str) -> None:
    """Other groups' commits, whole or not, memberships, deletions, and what Java, a shell and the tool say around."""
    lines = [
        "$ kafka-console-consumer.sh --topic __consumer_offsets --formatter 'kafka.coordinator.group.X'",
        "Picked up JAVA_TOOL_OPTIONS: -Xmx64m",
        "[2026-11-20 10:00:00,123] WARN [Consumer clientId=c, groupId=g] Connection lost (org.apache.kafka.x)",
        own,
        own.replace(GROUP, "audit"),
        f"[audit,t,0]::{_NEW}",
        "[audit,t,0]::NULL",
        f"{GROUP}::GroupMetadata(groupId={GROUP}, generation=1, protocolType=Some(consumer), members=Map())",
        f"{GROUP}::[{GROUP},Some(consumer),Stable,Map(c-1 -> [c-1,c,/10.0.0.1,10000])]",
        f"{GROUP}::NULL",
        f"[{GROUP},t,1]::NULL",
        '{"key":{"version":2,"data":"unknown"},"value":{"version":3,"data":"unknown"}}',
        '{"key":{"type":5,"data":"unknown"},"value":null}',
        _DOCUMENT.replace(GROUP, "audit")[:-9],
        own.replace(",0]", ",2]").replace('"partition":0', '"partition":2')
        + "^CProcessed a total of 12 messages",
        "Processed a total of 12 messages",
        "[2026-11-20 10:00:00,123] ERROR Error processing message, terminating consumer process:  (kafka.tools.X$)",
        "org.apache.kafka.common.errors.TimeoutException",
        "command terminated with exit code 130",
    ]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")

    found = _evidence(spark, tmp_path, path="text.txt", format="formatter")

    assert rows_of(found, *_PLACE) == [("t", 0, 17), ("t", 2, 17)]
    assert found.coverage.unparsed == 0
    assert found.coverage.is_within_tolerance
    assert f"1 positions of {GROUP} were deleted, at times that the text does not say" in found.coverage.notes
    assert "4 commits of other groups, passed over" in found.coverage.notes
    assert "5 records about memberships, passed over" in found.coverage.notes
    assert "6 lines that are no commit, passed over" in found.coverage.notes


def test_what_may_be_part_of_the_group_s_commit_is_an_unreadable_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A line that is cut off, wrapped or behind a prefix, an unknown document, an error that ended the tool."""
    lines = [
        _OWN[:-8],
        f"[{GROUP},t,0]::OffsetAndMetadata(offset=1",
        f"[{GROUP[:4]}",
        "s-loader,t,0]::OffsetAndMetadata(offset=17, leaderEpoch=Optional[3], metadata=, commitTimestamp=5, ",
        "leaderEpoch=Optional[0], metadata=, commitTimestamp=1622442520203,",
        f"[2026-11-20 10:00:00,123] INFO [consumer] {_OWN}",
        f"[audit,a] [b,t,1] x {_OWN}",
        "java.lang.IllegalStateException: Unknown offset message version: 4",
        'Exception in thread "main" java.lang.OutOfMemoryError',
        "$ kafka-console-consumer.sh --topic __consumer_offsets --from-beginning | head -100",
        _DOCUMENT[:-5],
        f"2026-11-20 {_DOCUMENT}",
        _DOCUMENT[40:],
        _DOCUMENT.replace('"partition":0', '"partitions":0'),
        _DOCUMENT.replace('"offset"', '"position"'),
    ]
    for number, line in enumerate(lines):
        (tmp_path / f"{number:02}.txt").write_text(f"{_OWN}\n{line}\n")

    found = _evidence(spark, tmp_path, path="*.txt", format="formatter")
    source = {**_KNOWN, "path": "*.txt", "format": "formatter"}
    faulty = [file for file, _, _ in faults_of(spark, tmp_path, "committed", source=source)]

    assert sorted(faulty, key=str) == [f"{number:02}.txt" for number in range(len(lines))]
    assert found.coverage.unparsed == len(lines)
    assert rows_of(found, *_PLACE) == [("t", 0, 17)] * len(lines)
    named = [note.split(": ")[0] for note in found.coverage.notes if ".txt:" in note]
    assert named == [f"{number:02}.txt:2" for number in range(5)]


def test_a_text_without_a_commit_of_anybody_covers_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """An error of the tool, or a text of something else, says nothing of the group; others' commits do."""
    (tmp_path / "none.txt").write_text("Processed a total of 0 messages\n")
    (tmp_path / "others.txt").write_text("[audit,t,0]::NULL\n")

    none = _evidence(spark, tmp_path, path="none.txt", format="formatter")
    others = _evidence(spark, tmp_path, path="others.txt", format="formatter")

    assert not none.coverage.is_within_tolerance
    assert any("expected what the console consumer prints" in note for note in none.coverage.notes)
    assert others.coverage.is_within_tolerance
    assert f"no commit of the group {GROUP}" in others.coverage.notes


def test_it_is_evidence_for_committed_only(spark: SparkSession) -> None:
    """Nothing else is in the table."""
    with pytest.raises(SourceError, match="kafka_offsets is evidence for committed and mirrored only"):
        evidence_of(spark, FILES, "log", source={"kind": "kafka_offsets", "path": "log", "group": GROUP})


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _key(kind: int = 1, group: str = GROUP) -> bytes:
    return struct.pack(">h", kind) + _string(group) + _string("t") + struct.pack(">i", 3)


def _value(version: int, metadata: str = "m") -> bytes:
    epoch = struct.pack(">i", 7 if version > 3 else -1) if version >= 3 else b""
    size = len(metadata.encode()) + 1
    varint = (
        bytes([size])
        if size < 128
        else bytes([size & 127 | 128, size >> 7])
        if size < 16384
        else (bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]))
    )
    text = varint + metadata.encode() if version >= 4 else _string(metadata)
    expiry = struct.pack(">q", 9) if version == 1 else b""
    return (
        struct.pack(">hq", version, 5_000_000_000)
        + epoch
        + text
        + struct.pack(">q", 1_000)
        + expiry
        + bytes(version >= 4)
    )


_HIDDEN = (
    "_tieout_file string, _tieout_text string, _tieout_block bigint, _tieout_row bigint, _tieout_fault string"
)
_RECORDS = (
    "key binary, value binary, transaction_state string, is_control boolean, record_timestamp timestamp, "
)


def _group_key(kind: int, group: str) -> bytes:
    """Return the key of a record about a group itself, or about one of its members."""
    return struct.pack(">h", kind) + _string(group) + (_string("member") if kind in (10, 13, 14) else b"")


def test_records_of_a_share_group_show_it(spark: SparkSession) -> None:
    """Types 9 to 15 are a share group's alone; of one that was deleted, and committed since, nothing is left."""
    contents: dict[str, tuple[list[tuple[bytes, bytes | None]], bool]] = {
        "epoch": ([(_group_key(11, GROUP), b"epoch")], True),
        "partitions": ([(_group_key(15, GROUP), b"partitions")], True),
        "member": ([(_group_key(10, GROUP), b"member")], True),
        "deleted": ([(_group_key(11, GROUP), None)], True),
        "deleted and committed": ([(_group_key(11, GROUP), None), (_key(), _value(4))], False),
        "epoch and committed": ([(_group_key(11, GROUP), b"epoch"), (_key(), _value(4))], True),
        "another": ([(_group_key(11, "another"), b"epoch"), (_key(), _value(4))], False),
        "of a consumer group": ([(_group_key(3, GROUP), b"epoch")], False),
        "of streams": ([(_group_key(17, GROUP), b"streams")], False),
    }

    with suited_to(spark, is_small=True):
        shown = {}
        for name, (content, _) in contents.items():
            rows = [
                (*pair, "none", False, None, None, None, 0, place, None) for place, pair in enumerate(content)
            ]
            records = spark.createDataFrame(rows, _RECORDS + _HIDDEN)
            shown[name] = _is_share_group(_decoded(records), GROUP)

    assert shown == {name: is_shown for name, (_, is_shown) in contents.items()}


@pytest.mark.parametrize(
    ("group", "is_shown"), [(GROUP, True), ("another", False)], ids=["the group", "another group"]
)
def test_printed_state_of_a_share_group_shows_it(
    spark: SparkSession, tmp_path: Path, group: str, is_shown: bool
) -> None:
    """As the formatter of `__share_group_state` prints it: the evidence says so, and has no position."""
    key = {"type": 0, "data": {"groupId": GROUP, "topicId": "RvIZdrYCQ4WoDqWQyH9RJQ", "partition": 0}}
    value = {
        "version": 0,
        "data": {"snapshotEpoch": 0, "stateEpoch": 1, "startOffset": 3, "stateBatches": []},
    }
    (tmp_path / "state.txt").write_text(
        json.dumps({"key": key, "value": value}, separators=(",", ":")) + "\n"
    )

    found = _evidence(spark, tmp_path, path="state.txt", format="formatter", group=group)

    assert found.coverage.is_share_group is is_shown
    assert any("is a share group" in note for note in found.coverage.notes) is is_shown
    assert _history(found) == []


def test_every_version_of_key_and_value_is_decoded(spark: SparkSession) -> None:
    """Keys of type 0 and 1, values of version 0 to 4, long metadata; what is cut off or newer is a faulty row."""
    long, longer = "é" * 100, "x" * 20_000
    content = [
        *((_key(kind), _value(version)) for kind in (0, 1) for version in range(5)),
        (_key(), _value(4, long)),
        (_key(), _value(4, longer)),
        (_key(group="grüppe"), _value(4)),
        (_key(2), b"membership"),
        (_key(30), b"unknown"),
        (_key(), _value(5)),
        (_key(), _value(3)[:-1]),
        (_key()[:-1], _value(3)),
    ]
    fields = (
        "key binary, value binary, transaction_state string, is_control boolean, record_timestamp timestamp, "
    )
    hidden = "_tieout_file string, _tieout_text string, _tieout_block bigint, _tieout_row bigint, _tieout_fault string"
    rows = [(*pair, "none", False, None, None, None, 0, place, None) for place, pair in enumerate(content)]
    records = spark.createDataFrame(rows, fields + hidden)

    found: dict[int, Row] = {row["_tieout_row"]: row for row in _commits(_decoded(records), GROUP).collect()}

    assert sorted(found) == [*range(12), 15, 16, 17]
    for place in range(12):
        row = found[place]
        assert row["_tieout_fault"] is None
        assert (row["topic"], row["partition"], row["committed_offset"]) == ("t", 3, 5_000_000_000)
        assert row["committed_at"] == 1_000
        assert row["leader_epoch"] == (7 if place % 5 == 4 or place >= 10 else None)
    assert [found[place]["metadata"] for place in (0, 9, 10, 11)] == ["m", "m", long, longer]
    assert [
        "later one" in (found[15]["_tieout_fault"] or ""),
        found[16]["_tieout_fault"],
        found[17]["_tieout_fault"],
    ] == [
        True,
        "the value of a commit is cut off",
        "the key of a commit is cut off",
    ]
