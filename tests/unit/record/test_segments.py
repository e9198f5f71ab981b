"""The segment decoder against a segment that a real broker wrote, and Kafka's own dump of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.record.crc32c import crc32c
from tools.record.log_ledger import Bounds, log_rows, transaction_states
from tools.record.segments import Batch, Marker, SegmentError, batches

SEGMENTS = Path(__file__).parent / "segments"
BOUNDS = Bounds(0, 12, 13, "2026-11-21T12:00:00.000000Z", "delete")


@pytest.fixture(scope="module")
def segment() -> bytes:
    """One partition: plain, idempotent, committed, aborted and undecided records."""
    return (SEGMENTS / "sample.log").read_bytes()


@pytest.fixture(scope="module")
def decoded(segment: bytes) -> tuple[Batch, ...]:
    """The segment's batches."""
    return tuple(batches(segment))


def _dumped_records() -> list[dict[str, str]]:
    text = (SEGMENTS / "sample.dump.txt").read_text()
    found = re.findall(
        r"^\| offset: (\d+) CreateTime: (\d+) "
        r"keySize: (-?\d+) valueSize: (-?\d+) sequence: (-?\d+)",
        text,
        re.MULTILINE,
    )
    return [
        dict(zip(("offset", "time", "key", "value", "sequence"), record, strict=True)) for record in found
    ]


def test_the_checksum_is_that_of_the_standard() -> None:
    """RFC 3720's test vectors come out."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


def test_records_are_those_that_kafka_dumps(decoded: tuple[Batch, ...]) -> None:
    """Offset, time, sizes and sequence of every record agree with Kafka's dump."""
    dumped = _dumped_records()

    records = [
        {
            "offset": str(record.offset),
            "time": str(record.timestamp_ms),
            "key": str(-1 if record.key is None else len(record.key)),
            "value": str(-1 if record.value is None else len(record.value)),
            "sequence": str(-1 if batch.is_control else record.sequence),
        }
        for batch in decoded
        for record in batch.records
    ]

    assert len(dumped) == 13
    assert records == dumped


def test_batches_are_those_that_kafka_dumps(decoded: tuple[Batch, ...]) -> None:
    """Producer, epochs and kind of every batch agree with Kafka's dump."""
    dumped = re.findall(
        r"^baseOffset: (\d+) .*producerId: (\S+) producerEpoch: (\S+) partitionLeaderEpoch: (\S+) "
        r"isTransactional: (\S+) isControl: (\S+) ",
        (SEGMENTS / "sample.dump.txt").read_text(),
        re.MULTILINE,
    )

    found = [
        (
            str(batch.base_offset),
            str(batch.producer_id),
            str(batch.producer_epoch),
            str(batch.leader_epoch),
            str(batch.is_transactional).lower(),
            str(batch.is_control).lower(),
        )
        for batch in decoded
    ]

    assert len(dumped) == 7
    assert found == dumped


def test_keys_and_values_are_the_bytes_that_were_sent(decoded: tuple[Batch, ...]) -> None:
    """A null key and a tombstone stay null; headers are stepped over."""
    keyed, unkeyed, tombstone = decoded[0].records

    assert (keyed.key, keyed.value) == (b"customer-1", b'{"order_id":"keyed"}')
    assert unkeyed.key is None
    assert tombstone.value is None


def test_a_marker_decides_its_producers_records(decoded: tuple[Batch, ...]) -> None:
    """Committed, aborted and undecided transactions are told apart; the rest is in none."""
    states = transaction_states(decoded)

    assert [batch.marker for batch in decoded if batch.is_control] == [Marker.COMMIT, Marker.ABORT]
    assert {offset for offset, state in states.items() if state == "none"} == set(range(6))
    assert {offset for offset, state in states.items() if state == "committed"} == {6, 7, 8}
    assert {offset for offset, state in states.items() if state == "aborted"} == {9, 10, 11}
    assert states[12] == "open"


def test_log_rows_carry_identity_and_bounds(decoded: tuple[Batch, ...]) -> None:
    """Data rows name their message, markers and tombstones none; every row has the partition's bounds."""
    rows = list(log_rows("sample", 0, decoded, BOUNDS))

    assert [row["message_id"] for row in rows[:3]] == ["keyed", "unkeyed", None]
    assert rows[7]["message_id"] == "1.17"
    assert [row["offset"] for row in rows if row["is_control"]] == [8, 11]
    assert rows[1]["key_hash"] is None
    assert rows[0]["payload_hash"] == rows[3]["payload_hash"]
    assert {row["last_stable_offset"] for row in rows} == {12}


def test_a_torn_tail_ends_the_segment(segment: bytes, decoded: tuple[Batch, ...]) -> None:
    """A batch that a killed broker did not finish is not there; all before it are."""
    assert tuple(batches(segment[:-1])) == decoded[:-1]
    assert tuple(batches(b"")) == ()


def test_preallocated_zeros_end_the_segment(segment: bytes, decoded: tuple[Batch, ...]) -> None:
    """Zeros behind the last batch are no batch."""
    assert tuple(batches(segment + bytes(200))) == decoded


def test_a_damaged_batch_is_refused(segment: bytes) -> None:
    """One flipped bit in a value fails the checksum, and the offset is named."""
    damaged = bytearray(segment)
    damaged[100] ^= 1

    with pytest.raises(SegmentError, match="offset 0 fails its checksum"):
        list(batches(bytes(damaged)))


def test_an_older_format_is_refused(segment: bytes) -> None:
    """Formats before 2 have another layout: the reader says so and reads nothing into them."""
    older = bytearray(segment)
    older[16] = 1

    with pytest.raises(SegmentError, match="expected record format 2 at offset 0, found 1"):
        list(batches(bytes(older)))


def test_a_compressed_batch_is_refused(segment: bytes) -> None:
    """Compression is named, instead of garbage being read as records."""
    compressed = bytearray(segment)
    compressed[22] |= 4
    length = int.from_bytes(compressed[8:12], "big")
    compressed[17:21] = crc32c(bytes(compressed[21 : 12 + length])).to_bytes(4, "big")

    with pytest.raises(SegmentError, match="compressed"):
        list(batches(bytes(compressed)))
