"""The offset table's decoder against a segment that a real broker wrote, and Kafka's own formatter."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tools.record.offset_table import commit_rows, decode_commit
from tools.record.segments import Batch, SegmentError, batches

SEGMENTS = Path(__file__).parent / "segments"
GROUP = "sample-readers"
KEY = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)


@pytest.fixture(scope="module")
def held() -> tuple[Batch, ...]:
    """Three commits, the last one back, and one inside an aborted transaction."""
    return tuple(batches((SEGMENTS / "consumer_offsets.log").read_bytes()))


def _formatted() -> list[dict[str, Any]]:
    """Return the documents that Kafka's formatter printed without anything between them."""
    text = (SEGMENTS / "consumer_offsets.formatted.txt").read_text()
    decoder, documents, position = json.JSONDecoder(), [], 0
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        documents.append(document)
    return documents


def test_commits_are_those_that_kafka_prints(held: tuple[Batch, ...]) -> None:
    """Group, topic, partition, offset and metadata of every committed commit agree with the formatter's."""
    documents = [(document["key"]["data"], document["value"]["data"]) for document in _formatted()]
    printed = [(*key.values(), value["offset"], value["metadata"]) for key, value in documents]

    found = [
        (row["consumer_group"], row["topic"], row["partition"], row["committed_offset"], row["metadata"])
        for row in commit_rows(held, GROUP)
    ]

    assert [offset for *_, offset, _ in printed] == [2, 5, 3]
    assert found == printed


def test_a_commit_in_an_aborted_transaction_never_happened(held: tuple[Batch, ...]) -> None:
    """The segment holds the commit of offset 99, and no row does."""
    commits = [decode_commit(r.key, r.value) for b in held if not b.is_control for r in b.records if r.key]

    assert 99 in {commit.committed_offset for commit in commits if commit}
    assert 99 not in {row["committed_offset"] for row in commit_rows(held, GROUP)}


def test_other_groups_are_left_out(held: tuple[Batch, ...]) -> None:
    """A ledger is one group's."""
    assert list(commit_rows(held, "another")) == []


def test_an_absent_leader_epoch_is_none(held: tuple[Batch, ...]) -> None:
    """The table writes -1 for it."""
    rows = list(commit_rows(held, GROUP))

    assert rows
    assert {row["leader_epoch"] for row in rows} == {None}


def test_versions_before_leader_epochs_are_read() -> None:
    """Version 1 has neither epoch nor compact strings."""
    value = struct.pack(">hqh4sqq", 1, 41, 4, b"note", 1_700_000_000_123, 0)

    commit = decode_commit(KEY, value)

    assert commit is not None
    assert (commit.partition, commit.committed_offset, commit.metadata) == (3, 41, "note")
    assert commit.committed_at == "2023-11-14T22:13:20.123Z"


def test_versions_before_compact_strings_are_read() -> None:
    """Version 3 has an epoch and a text with a 16-bit length."""
    value = struct.pack(">hqih4sq", 3, 41, 7, 4, b"note", 1_700_000_000_123)

    commit = decode_commit(KEY, value)

    assert commit is not None
    assert (commit.committed_offset, commit.leader_epoch, commit.metadata) == (41, 7, "note")
    assert commit.committed_at == "2023-11-14T22:13:20.123Z"


def test_a_tombstone_is_a_commit_without_an_offset() -> None:
    """Deleting a group's offset is told apart from committing one."""
    commit = decode_commit(KEY, None)

    assert commit is not None
    assert commit.committed_offset is None


def test_membership_is_no_commit() -> None:
    """A key of type 2 describes the group, not its position."""
    assert decode_commit(struct.pack(">hh1s", 2, 1, b"g"), b"") is None


def test_an_unknown_version_is_refused() -> None:
    """A later layout is not guessed at."""
    with pytest.raises(SegmentError, match="found version 9"):
        decode_commit(KEY, struct.pack(">h", 9))
