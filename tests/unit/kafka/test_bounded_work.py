"""Numbers in evidence are no sizes of work: each byte of it costs bounded time and memory, whatever it says."""

from __future__ import annotations

import io
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kafka_batches import batch, record, varint

from tieout.engine.kafka import segments
from tieout.engine.kafka.dumps import batches, outline_of
from tieout.engine.kafka.group_tables import tables_of
from tieout.engine.kafka.noise import is_noise
from tieout.engine.kafka.pieces import Piece, Row, rows_of, surveyed
from tieout.engine.kafka.records import Batch, LogError
from tieout.model import missing_ranges

MOST = 2**31 - 1
_SECONDS = 5.0
_BYTES = 64 << 20


@pytest.fixture(autouse=True)
def _bounds() -> Iterator[None]:
    """No test here takes long or much, and a test that would is ended by what it looks at."""
    tracemalloc.start()
    began = time.process_time()
    yield
    taken, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < _SECONDS
    assert peak < _BYTES


def _piece(folder: Path, content: bytes) -> Piece:
    path = folder / "00000000000000000000.log"
    path.write_bytes(content)
    return Piece(str(path), "segment", "t", 0, len(content))


def test_a_batch_that_says_more_records_than_it_has_is_one_row_that_counts_them(tmp_path: Path) -> None:
    """Its records are unreadable, each of them, and one row says so."""
    piece = _piece(
        tmp_path,
        batch([record(b"a")], count=MOST, last_delta=MOST) + batch([record(b"b")], base_offset=2**32),
    )

    rows = list(rows_of(piece))

    assert [row.count for row in rows] == [MOST, 1]
    assert [row.fault is None for row in rows] == [False, True]


def test_a_segment_that_is_gone_is_one_row_that_counts_its_records(tmp_path: Path) -> None:
    """So many records as it had when it was looked through."""
    piece = Piece(str(tmp_path / "gone.log"), "segment", "t", 0, 100, records=10**15)

    assert [(row.count, row.fault) for row in rows_of(piece)] == [
        (10**15, "cannot be read any more: No such file or directory")
    ]


@pytest.mark.parametrize(
    "packed",
    [
        b"\xff" * 1_000_000,
        varint(20) + b"\x00" + b"\xff" * 1_000_000,
        varint(100) + b"\x00" + varint(0) * 2 + varint(-1) + varint(MOST) + b"x" * 80,
        record(b"a", headers=varint(MOST) + b"\x00" * 1000),
        record(b"a", headers=varint(-1)),
        varint(-5) + b"\x00" * 20,
    ],
    ids=[
        "endless length",
        "endless time",
        "long value",
        "many headers",
        "negative headers",
        "negative length",
    ],
)
def test_numbers_within_records_are_not_believed(packed: bytes) -> None:
    """A record that says of itself what cannot be does not decode, at once."""
    content = batch(packed, count=1)
    (found,) = segments.batches(io.BytesIO(content), len(content))

    assert isinstance(found, Batch)
    with pytest.raises(LogError, match="do not decode"):
        found.records()


@pytest.mark.parametrize("length", [MOST, -1, 0, -(2**31)])
def test_the_length_of_a_batch_is_no_size_of_a_buffer(length: int) -> None:
    """What it says is held against the file before any of it is read."""
    content = (0).to_bytes(8, "big") + length.to_bytes(4, "big", signed=True) + b"\x01" * 200

    assert len(list(segments.batches(io.BytesIO(content), len(content)))) == 1


@pytest.mark.parametrize(
    ("there", "count"), [({999_999_999}, 0), ({0}, 10**12), ({5, 7}, 10**12), (set(), 10**15)]
)
def test_missing_numbers_are_reported_in_ranges(there: set[int], count: int) -> None:
    """As many as there are numbers, and one more."""
    found = list(missing_ranges(there, max(count, max(there, default=-1) + 1)))

    assert len(found) <= len(there) + 1
    assert sum(last - first + 1 for first, last in found) + len(there) == max(
        count, max(there, default=-1) + 1
    )


def test_a_group_at_the_highest_partition_misses_those_below_in_one_stretch() -> None:
    """A table may name any partition."""
    lines = ["GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG", "loader orders 999999999 17 20 3"]

    assert tables_of(lines, "loader").positions[0][1].partition == 999_999_999


_LONG = 200_000
_RECORD = "| offset: 0 CreateTime: 5 keySize: -1 valueSize: 1 sequence: -1"
_LINES: dict[str, Callable[[], str]] = {
    "blanks": lambda: " " * _LONG,
    "blanks behind a bar": lambda: " " * (_LONG // 2) + "|" + " " * (_LONG // 2) + "x",
    "section": lambda: "Dumping " + " " * _LONG + "x",
    "invalid": lambda: "Found 1 invalid bytes at the end of " + " " * _LONG + "x",
    "batch": lambda: "baseOffset:  " + "a" * _LONG,
    "set": lambda: "offset: 1 position: 1 " + "size: 1 " * (_LONG // 8),
    "record": lambda: (
        "| offset: 0 CreateTime: 5 keySize: -1 valueSize: 1 sequence: -1 headerKeys: [" + "]x" * (_LONG // 2)
    ),
    "digits": lambda: "baseOffset: " + "9" * _LONG,
    "prompt": lambda: "a@" + "b" * _LONG,
    "prompts": lambda: "a@b " * (_LONG // 4),
    "tools": lambda: "kafka-dump-log" * (_LONG // 14),
    "commands": lambda: "rpk " * (_LONG // 4),
    "options": lambda: "--group=" * (_LONG // 8),
    "commas": lambda: "a," * (_LONG // 2),
    "quote": lambda: '"' + "a" * _LONG,
    "group": lambda: "loader " * (_LONG // 7),
}


@pytest.mark.parametrize("line", _LINES.values(), ids=_LINES)
def test_a_long_line_costs_what_it_is_long(line: Callable[[], str]) -> None:
    """No pattern goes through a line again and again."""
    text = line()

    is_noise(text)
    outline_of([text])
    list(batches(["Dumping /data/t-0/00000000000000000000.log", text], ("t", 0), ("t", 0)))
    tables_of(["GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG", text], "loader")
    tables_of([text], "loader")


def test_a_line_that_is_too_long_for_a_table_concerns_the_group() -> None:
    """Nobody knows what it says."""
    found = tables_of(["x" * 100_000], "loader")

    assert found.faults == (
        (0, "expected a line of at most 4096 characters, found 100000; print the table again"),
    )


def test_a_survey_keeps_few_of_many_faults(tmp_path: Path) -> None:
    """A file of nothing but damage is told in a few lines."""
    bad = bytearray(batch([record(b"a")]))
    bad[-1] ^= 1

    survey = surveyed(_piece(tmp_path, bytes(bad) * 5_000))

    assert len(survey.faults) == 4
    assert isinstance(next(rows_of(_piece(tmp_path, batch([record(b"a")])))), Row)
