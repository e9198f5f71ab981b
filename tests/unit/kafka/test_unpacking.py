"""Packed evidence that unpacks to more than there is memory for is a named fault, of every codec and format."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kafka_batches import batch, record

from tieout.engine.kafka import segments
from tieout.engine.kafka.compression import decompressed
from tieout.engine.kafka.pieces import Piece, rows_of
from tieout.engine.kafka.records import Batch, Damage, LogError
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.parquet_pages import oversized_page
from tieout.errors import UsageError
from tieout.settings import Unpacking, unpacking

_MB = 1 << 20


def _java_snappy(data: bytes) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 32768])) for at in range(0, len(data), 32768)]
    framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed


_CODECS: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "gzip": (1, cramjam.gzip.compress),
    "snappy": (2, cramjam.snappy.compress_raw),
    "snappy of Java": (2, _java_snappy),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
    "two frames": (4, lambda data: bytes(cramjam.zstd.compress(data[: len(data) // 2])) * 2),
}


@pytest.mark.parametrize(("codec", "pack"), _CODECS.values(), ids=_CODECS)
def test_a_batch_is_unpacked_up_to_a_limit(codec: int, pack: Callable[[bytes], Any]) -> None:
    """What is just allowed is read, and a byte more is an error that names the setting."""
    packed = bytes(pack(bytes(4 * _MB)))

    assert decompressed(codec, packed, 4 * _MB) == bytes(4 * _MB)
    with pytest.raises(
        LogError, match="expected records of at most 3 MB unpacked, found more; TIEOUT_UNPACKED_RECORD"
    ):
        decompressed(codec, packed, 4 * _MB - 1)


def test_snappy_that_lies_about_its_size_is_no_snappy() -> None:
    """Neither a block of four gigabytes nor one of negative length takes memory or time."""
    huge = b"\xff\xff\xff\xff\x0f" + b"\x00" * 20
    with pytest.raises(LogError, match="expected records of at most"):
        decompressed(2, huge)
    for length in (-4, 0, 2**31 - 1):
        with pytest.raises(LogError, match="expected a block of at most 5 bytes"):
            decompressed(2, b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, length) + b"\x00" * 5)


def test_a_bomb_is_a_row_that_counts_its_records_and_the_next_batch_is_read(tmp_path: Path) -> None:
    """Its batch says how many they are, and what lies behind it is there."""
    bomb = batch(bytes(cramjam.zstd.compress(bytes(64 * _MB))), count=7, last_delta=6, attributes=4)
    content = bomb + batch([record(b"a")], base_offset=7)
    (tmp_path / "0.log").write_bytes(content)

    rows = list(
        rows_of(Piece(str(tmp_path / "0.log"), "segment", "t", 0, len(content), most_record_bytes=_MB))
    )

    assert [(row.count, row.fault is None) for row in rows] == [(7, False), (1, True)]
    assert "expected records of at most 1 MB unpacked" in str(rows[0].fault)


def test_a_control_batch_that_is_a_bomb_is_one_as_well(tmp_path: Path) -> None:
    """Looking for markers unpacks batches too."""
    content = batch(bytes(cramjam.zstd.compress(bytes(64 * _MB))), attributes=4 | 0x30)
    (entry,) = segments.batches(io.BytesIO(content), len(content), _MB)

    assert isinstance(entry, Batch)
    with pytest.raises(LogError, match="at most 1 MB unpacked"):
        entry.marker()


def test_a_batch_that_is_too_large_as_it_lies_there_is_passed_over() -> None:
    """The next one is read."""
    content = batch([record(bytes(2 * _MB))]) + batch([record(b"a")], base_offset=1)

    first, second = segments.batches(io.BytesIO(content), len(content), _MB)

    assert isinstance(first, Damage)
    assert first.reason.startswith("the batch at byte 0, offsets from 0: expected at most 1 MB, found")
    assert isinstance(second, Batch)


def test_a_segment_is_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    """Many batches may each be small: those beyond the limit are counted."""
    packed = bytes(cramjam.zstd.compress(record(bytes(_MB))))
    content = b"".join(batch(packed, base_offset=offset, attributes=4) for offset in range(5))
    (tmp_path / "0.log").write_bytes(content)

    rows = list(
        rows_of(Piece(str(tmp_path / "0.log"), "segment", "t", 0, len(content), most_file_bytes=2 * _MB))
    )

    assert [row.fault for row in rows] == [
        None,
        None,
        *["the file unpacks to more than TIEOUT_UNPACKED_FILE_MB says"] * 3,
    ]


def test_very_many_records_of_one_batch_are_held_by_nobody(tmp_path: Path) -> None:
    """They are gone through twice instead, so that a batch that ends too early has no records."""
    many = b"".join(record(b"", delta=number) for number in range(100_001))
    whole, cut = (batch(many, count=100_001 + more, last_delta=100_000 + more) for more in (0, 1))
    (tmp_path / "0.log").write_bytes(whole)
    (tmp_path / "1.log").write_bytes(cut)

    found = [list(rows_of(Piece(str(tmp_path / f"{n}.log"), "segment", "t", 0, len(whole)))) for n in (0, 1)]

    assert len(found[0]) == 100_001
    assert [row.count for row in found[1]] == [100_002]


_PACKERS: dict[str, Callable[[bytes], Any]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": cramjam.zstd.compress,
}


def _fault(folder: Path, name: str, file_format: str) -> str | None:
    (file,) = inputs_of(None, [name], folder, file_format).files  # type: ignore[arg-type]
    return file.fault


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "text", "dump"])
@pytest.mark.parametrize(("ending", "pack"), _PACKERS.items())
def test_a_line_without_an_end_is_not_given_to_spark(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_format: str,
    ending: str,
    pack: Callable[[bytes], Any],
) -> None:
    """A file of one line of megabytes is a faulty one, packed or not; as many bytes in short lines are none."""
    monkeypatch.setenv("TIEOUT_UNPACKED_RECORD_MB", "2")
    (tmp_path / f"long{ending}").write_bytes(pack(b"x\n" + b"a" * (2 * _MB + 1) + b"\n"))
    (tmp_path / f"short{ending}").write_bytes(pack((b"a" * 1000 + b"\n") * 4000))

    assert _fault(tmp_path, f"long{ending}", file_format) == (
        "expected lines of at most 2 MB, found a longer one; TIEOUT_UNPACKED_RECORD_MB allows more"
    )
    assert _fault(tmp_path, f"short{ending}", file_format) is None


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_a_packed_file_is_unpacked_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Also in short lines; what lies there unpacked has no limit."""
    monkeypatch.setenv("TIEOUT_UNPACKED_FILE_MB", "3")
    text = (b"a" * 1000 + b"\n") * 4000
    (tmp_path / f"a{ending}").write_bytes(bytes(_PACKERS[ending](text)))
    (tmp_path / "a.jsonl").write_bytes(text)

    expected = "expected at most 3 MB unpacked, found more; TIEOUT_UNPACKED_FILE_MB allows more"
    assert _fault(tmp_path, f"a{ending}", "jsonl") == expected
    assert _fault(tmp_path, "a.jsonl", "jsonl") is None


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_of_parquet_is_not_larger_than_the_limit(
    tmp_path: Path, compression: str, version: str
) -> None:
    """Its header says how large it is, whatever the footer says, and columns of many pages are none."""
    values = {"bomb": ["x" * (3 * _MB)], "many": ["y" * 1000] * 6000}
    for name, texts in values.items():
        pq.write_table(
            pa.table({"id": texts}),
            tmp_path / f"{name}.parquet",
            compression=compression,
            use_dictionary=name == "bomb",
            data_page_version=version,
            write_statistics=True,
        )

    expected = "column id: expected pages of at most 2 MB unpacked, found a larger one; "
    expected += "TIEOUT_UNPACKED_RECORD_MB allows more"
    assert oversized_page(tmp_path / "bomb.parquet", Unpacking(2 * _MB)) == expected
    assert oversized_page(tmp_path / "many.parquet", Unpacking(2 * _MB)) is None
    assert oversized_page(tmp_path / "absent.parquet", Unpacking(2 * _MB)) is None


def test_a_page_behind_pages_with_statistics_is_found(tmp_path: Path) -> None:
    """The least and the largest value of a page stand in its header, before the next page."""
    texts = ["x" * 100] * 10_000 + ["y" * (3 * _MB)]
    pq.write_table(
        pa.table({"id": texts}), tmp_path / "last.parquet", use_dictionary=False, compression="zstd"
    )

    assert str(oversized_page(tmp_path / "last.parquet", Unpacking(2 * _MB))).startswith(
        "column id: expected pages of at most"
    )


@pytest.mark.parametrize("damage", [b"\x19\xff", b"\x15\x00\x15\x81" + b"\xff" * 12, b"\x00"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_page_whose_header_is_none_is_a_fault(tmp_path: Path, damage: bytes, is_first: bool) -> None:
    """What it unpacks to is not known before a reader unpacks it: it is not passed on to Spark."""
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["x" * 100] * 10, "at": list(range(10))}), file, use_dictionary=["id"])
    assert oversized_page(file, Unpacking(_MB)) is None
    column = pq.read_metadata(file).row_group(0).column(0)
    place = column.dictionary_page_offset if is_first else column.data_page_offset
    content = bytearray(file.read_bytes())
    content[place : place + len(damage)] = damage

    file.write_bytes(content)

    expected = "column id: expected a page's header, found what is none, so that what the page unpacks to is not known"
    assert str(oversized_page(file, Unpacking(_MB))).startswith(expected)
    assert str(_fault(tmp_path, "rows.parquet", "parquet")).startswith(expected)


def test_a_footer_that_only_spark_reads_is_a_fault(tmp_path: Path) -> None:
    """Nobody would look at the pages of a file with one column whose type has many levels."""
    deep = pa.array([1])
    for _ in range(120):
        deep = pa.StructArray.from_arrays([deep], names=["a"])
    pq.write_table(pa.table({"id": ["x" * (3 * _MB)], "deep": deep}), tmp_path / "deep.parquet")

    assert str(oversized_page(tmp_path / "deep.parquet", Unpacking(2 * _MB))).startswith(
        "expected a footer that can be read, found none"
    )


def test_more_rows_than_bytes_can_tell_are_not_read(tmp_path: Path) -> None:
    """Kilobytes of nulls would be a run of hours; as many rows as an ordinary file has are read."""
    for name, count in {"bomb": 3_000_000, "many": 1_000_000}.items():
        pq.write_table(pa.table({"id": pa.nulls(count, pa.string())}), tmp_path / f"{name}.parquet")

    assert str(oversized_page(tmp_path / "bomb.parquet", Unpacking())).startswith(
        "expected at most 100 rows a byte, found 3000000 rows in "
    )
    assert oversized_page(tmp_path / "many.parquet", Unpacking()) is None


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_value_that_stands_once_and_is_read_often_counts_each_time(tmp_path: Path, is_nested: bool) -> None:
    """Three kilobytes may be a terabyte, although no page is large; many short values are none."""
    texts = pa.array(["x" * _MB, *(f"{n}" * 10 for n in range(5000))])
    for name, places in {"bomb": [0] * 200, "many": [n + 1 for n in range(5000)] * 20}.items():
        values: pa.Array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), texts)
        if is_nested:
            values = pa.StructArray.from_arrays([values.cast(pa.string())], names=["a"])
        pq.write_table(
            pa.table({"id": values}), tmp_path / f"{name}.parquet", dictionary_pagesize_limit=4 * _MB
        )

    limits = Unpacking(4 * _MB, 100 * _MB)
    expected = f"column id{'.a' if is_nested else ''}: expected values of at most 100 MB in all, found more; "
    assert (
        oversized_page(tmp_path / "bomb.parquet", limits) == f"{expected}TIEOUT_UNPACKED_FILE_MB allows more"
    )
    assert oversized_page(tmp_path / "many.parquet", limits) is None
    assert oversized_page(tmp_path / "bomb.parquet", Unpacking(4 * _MB, 300 * _MB)) is None


def test_limits_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """In megabytes, with defaults; anything else is an error."""
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "16g")
    assert unpacking() == Unpacking(128 * _MB, 16_384 * _MB, 128 * _MB)

    monkeypatch.setenv("TIEOUT_UNPACKED_RECORD_MB", "0")
    with pytest.raises(
        UsageError, match="TIEOUT_UNPACKED_RECORD_MB: expected a whole number of megabytes from 1 on"
    ):
        unpacking()


@pytest.mark.parametrize(("heap", "line"), [("1g", 16), ("2048m", 32), ("900M", 14), ("32m", 1)])
def test_a_line_is_bounded_by_the_heap_that_holds_it(
    monkeypatch: pytest.MonkeyPatch, heap: str, line: int
) -> None:
    """A line of 120 MB ended the Java of a heap of 1 GB, and with it every ledger; a setting allows more."""
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", heap)
    assert (unpacking().line, unpacking().record) == (line * _MB, 128 * _MB)

    monkeypatch.setenv("TIEOUT_UNPACKED_RECORD_MB", "200")
    assert unpacking() == Unpacking(200 * _MB, 16_384 * _MB, 200 * _MB)
