"""Parsers of evidence against what nobody wrote on purpose: each ends soon, in a result or in a named error.

Each case has a seed of its own, so the number that a failure shows is what runs it again. `TIEOUT_FUZZ_CASES` says how
many cases each parser gets.
"""

from __future__ import annotations

import io
import random
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest
from tests.fuzz.changing import CASES, EXTREMES, SECONDS, changed_bytes
from tests.kafka_batches import HEADER_BYTES, batch, record, varint

from tieout.engine.kafka import dumps, segments
from tieout.engine.kafka.folders import folders_of
from tieout.engine.kafka.group_tables import tables_of
from tieout.engine.kafka.log_source import _RECORD_SCHEMA, _arrow_batches, _record_rows, _survey_row
from tieout.engine.kafka.noise import is_noise
from tieout.engine.kafka.pieces import Piece, surveyed
from tieout.engine.kafka.records import Batch
from tieout.engine.kafka.share_groups import shows_share_group
from tieout.engine.kafka.transactions import first_open_offset
from tieout.errors import TieoutError

_FILES = Path(__file__).parents[1] / "kafka_files"
_SEGMENTS = [path.read_bytes() for path in sorted((_FILES / "log").glob("*/*.log"))]
_TEXTS = [path.read_text() for path in sorted((_FILES / "text").iterdir())]
_WORDS = [
    "|",
    "[",
    "]",
    '"',
    ",",
    "\t",
    " " * 300,
    "\x00",
    "\ud7ff",
    "٣",
    "-",
    "9" * 400,
    "kafka-dump-log --x",
    "a@b",
]


_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_KINDS = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_ARROW = pa.schema(
    [
        (column.split(" ")[0], _KINDS.get(column.split(" ")[1], pa.list_(_HEADER)))
        for column in re.split(r", (?![^<]*>)", _RECORD_SCHEMA)
    ]
)
"""The columns of records as Spark's workers have them; Spark itself would have to run to say so."""


def _with_checksums(content: bytes) -> bytes:
    """The content with the checksum of each batch set right, so that what is behind it is looked at."""
    fixed, place = bytearray(content), 0
    while place + HEADER_BYTES <= len(fixed):
        length = int.from_bytes(fixed[place + 8 : place + 12], "big", signed=True)
        if length < HEADER_BYTES - 12 or place + 12 + length > len(fixed):
            break
        checked = bytes(fixed[place + 21 : place + 12 + length])
        fixed[place + 17 : place + 21] = google_crc32c.value(checked).to_bytes(4, "big")
        place += 12 + length
    return bytes(fixed)


def _made_up_batch(chance: random.Random) -> bytes:
    """A batch whose checksum holds and whose numbers need not."""

    def number() -> int:
        return chance.choice(EXTREMES) if chance.random() < 0.3 else chance.randrange(-3, 50)

    def within(bits: int) -> int:
        limit = int(2 ** (bits - 1))
        return max(-limit, min(limit - 1, number()))

    records = [
        record(b"v" * chance.randrange(9), delta=number(), delta_ms=number(), headers=varint(number()))
        if chance.random() < 0.4
        else record(b"v", delta=place, delta_ms=number())
        for place in range(chance.randrange(5))
    ]
    return batch(
        records,
        base_offset=within(64),
        last_delta=within(32) if chance.random() < 0.5 else len(records),
        count=within(32) if chance.random() < 0.3 else len(records),
        first_ms=within(64),
        latest_ms=within(64),
        attributes=chance.choice((0, 0, 1, 2, 3, 4, 7, 0x08, 0x10, 0x20, 0x30)),
    )


def _changed_text(text: str, chance: random.Random) -> str:
    """The text with some of its lines cut, doubled, joined, or with other numbers and words in them."""
    lines = text.splitlines()
    start = chance.randrange(len(lines))
    lines = lines[start : start + chance.randrange(1, 40)]
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(lines))
        line = lines[place]
        at = chance.randrange(len(line) + 1)
        words = line.split(" ")
        match chance.randrange(5):
            case 0:
                line = line[:at]
            case 1:
                words[chance.randrange(len(words))] = str(chance.choice(EXTREMES))
                line = " ".join(words)
            case 2:
                line = line[:at] + chance.choice(_WORDS) + line[at:]
            case 3:
                lines.insert(chance.randrange(len(lines) + 1), line)
            case _:
                line += lines[chance.randrange(len(lines))]
        lines[place] = line
    return "\n".join(lines)


def _segment(chance: random.Random) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(400))
    if kind == 1:
        return b"".join(_made_up_batch(chance) for _ in range(chance.randrange(1, 6)))
    changed = changed_bytes(chance.choice(_SEGMENTS)[: chance.randrange(60, 3000)], chance)
    return changed if kind == 2 else _with_checksums(changed)


def _text(chance: random.Random) -> str:
    if chance.randrange(6) == 0:
        return "".join(
            chance.choice([*_WORDS, "\n", "offset: ", "baseOffset: ", "Dumping "]) for _ in range(60)
        )
    return _changed_text(chance.choice(_TEXTS), chance)


def _read_piece(folder: Path, form: str, name: str, content: bytes) -> None:
    """Survey and read a piece as a run does, to the arrays that Spark is given."""
    (folder / name).write_bytes(content)
    piece = Piece(str(folder / name), form, "payments", 0, len(content), is_placed=False)  # type: ignore[arg-type]
    survey = surveyed(piece)
    _survey_row(survey)
    first_open_offset([survey.transactions])
    list(_arrow_batches(_record_rows(piece), _ARROW))


def _read_segment(chance: random.Random, folder: Path) -> None:
    content = _segment(chance)
    for entry in segments.batches(io.BytesIO(content), len(content)):
        if isinstance(entry, Batch):
            _ignoring(entry.records)
            _ignoring(entry.marker)
    _read_piece(folder, "segment", "00000000000000000000.log", content)


def _read_dump(chance: random.Random, folder: Path) -> None:
    text = _text(chance)
    outline = dumps.outline_of(text.splitlines())
    for place in sorted(outline.places)[:3]:
        list(dumps.batches(text.splitlines(), place, None))
    _read_piece(folder, "dump", "dump.txt", text.encode())


def _read_tables(chance: random.Random, folder: Path) -> None:
    lines = _text(chance).splitlines()
    tables_of(lines, "payments-loader")
    shows_share_group(lines, "payments-loader")
    for line in lines:
        is_noise(line)


def _read_folder(chance: random.Random, folder: Path) -> None:
    names = ["t-0", "t-00", "t--1", f"t-{chance.choice(EXTREMES)}", "t-٣", "t-", "t"]
    for name in chance.sample(names, 3):
        (folder / name).mkdir(exist_ok=True)
        for number in (0, chance.choice(EXTREMES)):
            (folder / name / f"{abs(number):020}.log").touch()
        (folder / name / "leader-epoch-checkpoint").write_bytes(_checkpoint(chance, 2))
        (folder / name / "partition.metadata").write_bytes(chance.randbytes(9))
    (folder / "log-start-offset-checkpoint").write_bytes(_checkpoint(chance, 3))
    folders_of(["."], folder, "t")


def _checkpoint(chance: random.Random, words: int) -> bytes:
    lines = [
        " ".join(["t"] * (words - 2) + [str(chance.choice(EXTREMES)) for _ in range(2)])
        for _ in range(chance.randrange(4))
    ]
    whole = "\n".join(["0", str(len(lines)), *lines]).encode()
    return whole if chance.random() < 0.5 else changed_bytes(whole, chance)


def _ignoring(call: Callable[[], object]) -> None:
    try:
        found = call()
        if isinstance(found, Iterable):
            list(found)
    except TieoutError:
        pass


@pytest.mark.parametrize("parser", [_read_segment, _read_dump, _read_tables, _read_folder])
def test_a_parser_takes_anything(parser: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    """Each case ends soon, in a result or in a named error."""
    assert CASES > 0

    for seed in range(CASES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        began = time.process_time()
        try:
            parser(random.Random(seed), folder)  # noqa: S311 - to be the same again
        except TieoutError:
            pass
        except Exception as error:
            error.add_note(f"seed {seed} of {parser.__name__}")
            raise
        assert time.process_time() - began < SECONDS, f"seed {seed} of {parser.__name__} takes too long"
