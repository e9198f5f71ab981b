"""The decoder of segment files against what a real broker wrote, and Kafka's own dump of it."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import cramjam
import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.engine.kafka import dumps, segments
from tieout.engine.kafka.compression import decompressed
from tieout.engine.kafka.records import Batch, Damage, Entry, LogError

FILES = Path(__file__).parents[2] / "kafka_files"
PAYMENTS = sorted((FILES / "log" / "payments-0").glob("*.log"))


def _entries(content: bytes) -> list[Entry]:
    return list(segments.batches(io.BytesIO(content), len(content)))


def _batches(content: bytes) -> list[Batch]:
    return [entry for entry in _entries(content) if isinstance(entry, Batch)]


def _changed(content: bytes, place: int, value: bytes) -> bytes:
    return content[:place] + value + content[place + len(value) :]


def test_the_records_are_those_that_kafka_dumps() -> None:
    """Segment and dump of one partition decode to equal batches and records, but for header values."""
    dumped = dumps.batches(
        (FILES / "text" / "payments-0.dump.txt").read_text().splitlines(), ("payments", 0), None
    )
    reported = [entry for entry in dumped if isinstance(entry, Batch)]
    held = [batch for file in PAYMENTS for batch in _batches(file.read_bytes())]

    assert len(held) == len(reported) > 10
    for mine, theirs in zip(held, reported, strict=True):
        fields = (
            "base_offset",
            "last_offset",
            "leader_epoch",
            "producer_id",
            "producer_epoch",
            "is_transactional",
        )
        for name in (*fields, "is_control", "is_log_append_time", "count"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert mine.marker() == theirs.marker()
        for left, right in zip(mine.records(), theirs.records(), strict=True):
            assert (left.offset, left.timestamp_ms, left.key) == (right.offset, right.timestamp_ms, right.key)
            assert mine.is_control or (left.value, left.sequence) == (right.value, right.sequence)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_framings_of_every_codec_are_read(codec: str) -> None:
    """A batch that librdkafka compressed and one that the broker did; headers with and without a value."""
    segment = (FILES / "log" / f"codec-{codec}-0" / "00000000000000000000.log").read_bytes()

    records = [record for batch in _batches(segment) for record in batch.records()]

    assert [record.offset for record in records] == list(range(6))
    assert records[5].value == b"none-2 " * 9
    assert {record.headers for record in records} == {(("codec", codec.encode()), ("empty", None))}


@settings(deadline=None)
@given(cut=st.integers(min_value=0, max_value=len(PAYMENTS[0].read_bytes())))
def test_a_file_that_is_cut_anywhere_gives_whole_batches_and_one_torn_tail(cut: int) -> None:
    """What a killed broker leaves is read up to the last whole batch, wherever the write was cut off."""
    whole = PAYMENTS[0].read_bytes()
    ends = [batch.place for batch in _batches(whole)[1:]] + [len(whole)]

    found = _entries(whole[:cut])

    damage = [entry for entry in found if isinstance(entry, Damage)]
    assert len(found) - len(damage) == sum(end <= cut for end in ends)
    assert [entry.is_torn for entry in damage] == ([] if cut in (0, *ends) else [True])


@settings(deadline=None)
@given(place=st.integers(min_value=21, max_value=172), flipped=st.integers(min_value=1, max_value=255))
def test_any_changed_byte_behind_the_checksum_loses_its_batch_and_no_other(place: int, flipped: int) -> None:
    """The checksum covers all of a batch that follows it."""
    whole = PAYMENTS[0].read_bytes()
    changed = _changed(whole, place, bytes([whole[place] ^ flipped]))

    found = _entries(changed)

    assert isinstance(found[0], Damage)
    assert "expected the checksum" in found[0].reason
    assert len([entry for entry in found if isinstance(entry, Batch)]) == len(_batches(whole)) - 1


@pytest.mark.parametrize("magic", [0, 1])
def test_an_older_format_ends_the_file_and_is_named(magic: int) -> None:
    """Message sets of before Kafka 0.11 are not guessed at."""
    found = _entries(_changed(PAYMENTS[0].read_bytes(), 16, bytes([magic])))

    assert [type(entry) for entry in found] == [Damage]
    assert f"expected record format 2 at offset 0, found format {magic}" in found[0].reason  # type: ignore[union-attr]


def test_what_is_no_batch_ends_the_file() -> None:
    """Text in place of a segment is damage, not a crash and not a torn tail."""
    found = _entries(b"this is no segment at all, but a text that is long enough to look like one " * 3)

    assert [type(entry) for entry in found] == [Damage]


def test_zeros_behind_the_last_batch_are_preallocated_space() -> None:
    """Only zeros to the end are no damage; zeros before anything else are."""
    whole = PAYMENTS[0].read_bytes()

    assert len(_entries(whole + bytes(100_000))) == len(_batches(whole))
    assert isinstance(_entries(whole + bytes(100) + b"x")[-1], Damage)


@pytest.mark.parametrize("written", [1, 5, 8, 10, 12, 16, 17, 30, 61])
def test_a_batch_that_was_half_written_into_preallocated_space_is_torn(written: int) -> None:
    """The broker was stopped meanwhile, and cuts it off when it starts: what is before it is the log."""
    whole = PAYMENTS[0].read_bytes()
    (first, second) = _batches(whole)[:2]
    begun = whole[second.place : second.place + written]

    entries = _entries(whole[: second.place] + begun + bytes(500))

    assert [entry.place for entry in entries if isinstance(entry, Batch)] == [first.place]
    damage = [entry for entry in entries if isinstance(entry, Damage)]
    assert [entry.is_torn for entry in damage] == ([True] if any(begun) else [])


def test_a_whole_batch_that_does_not_read_before_zeros_is_lost() -> None:
    """Its last bytes were written: what is changed in it is damage."""
    whole = PAYMENTS[0].read_bytes()
    (first, second) = _batches(whole)[:2]

    entries = _entries(_changed(whole[: second.place], first.place + 70, b"\xff") + bytes(500))

    assert [(isinstance(entry, Damage) and entry.is_torn) for entry in entries] == [False]
    assert isinstance(entries[0], Damage)


def test_records_that_do_not_fit_their_batch_do_not_decode() -> None:
    """A batch that says more records than it holds is an error that names its offset, though its checksum holds."""
    whole = PAYMENTS[0].read_bytes()
    (length,) = struct.unpack_from(">i", whole, 8)
    body = _changed(whole[: 12 + length], 57, struct.pack(">i", 9))
    forged = _changed(body, 17, struct.pack(">I", google_crc32c.value(body[21:])))

    with pytest.raises(LogError, match="the records of the batch at offset 0 do not decode"):
        _batches(forged)[0].records()


def test_an_unknown_codec_and_broken_data_are_errors() -> None:
    """A number that Kafka does not use, and data that is not the codec's."""
    with pytest.raises(LogError, match="expected a codec from 0 to 4, found 7"):
        decompressed(7, b"")
    for codec in (1, 2, 3, 4):
        with pytest.raises(LogError, match="the records are not"):
            decompressed(codec, b"\x82SNAPPY\x00" + b"\xff" * 20)


def test_snappy_of_java_may_be_several_blocks() -> None:
    """The library writes a block of 32 KB after another, each with its length."""
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (b"first ", b"second")]
    framed = (
        b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    )

    assert decompressed(2, framed) == b"first second"
