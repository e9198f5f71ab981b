"""Samples files that no contract describes yet: the first rows of JSON lines, CSV or Parquet, read without Spark."""

from __future__ import annotations

import csv
import glob
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Final

from tieout.contracts.guessing import LedgerSample
from tieout.encodings import opened
from tieout.engine.column_samples import Row, columns_of
from tieout.errors import SourceError

_FILES: Final = 20
_LINE_CHARACTERS: Final = 1 << 22
_FORMATS: Final = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet",
}  # fmt: skip
_PACKED: Final = (".gz", ".bz2")
_SEPARATORS: Final = ",;\t|"
_LINE_BREAKS: Final = (
    "some values hold line breaks, which are not read from CSV: write them as JSON lines or Parquet"
)


def files_sample(text: str, place: str, limit: int) -> LedgerSample:
    """Return a sample of the first rows of the files that the text names: a file, a folder or a pattern.

    Raises:
        SourceError: where there are none, they are not of one format that is known, or they cannot be read.
    """
    files = sorted(file for file in _named(Path(text), text) if not file.name.startswith((".", "_")))
    if not files:
        raise SourceError(f"{place} {text}: expected files, found none; give a file, a folder or a pattern")
    found = rows_sample(files, text, place, limit)
    ending = _ending(files[0])
    return found if not Path(text).is_dir() else replace(found, path=f"{text.rstrip('/')}/*{ending}")


def rows_sample(
    files: Sequence[Path], text: str, place: str, limit: int, unnamed: str | None = None
) -> LedgerSample:
    """Return a sample of the first rows of files of one format; `unnamed` is that of those without a known suffix.

    Raises:
        SourceError: where they are of several formats or of none that is known, or cannot be read.
    """
    endings = sorted({_ending(file) for file in files})
    form = (_form(endings[0]) or unnamed) if endings else None
    if len(endings) != 1 or form is None:
        found = ", ".join(ending or "no suffix" for ending in endings)
        raise SourceError(
            f"{place} {text}: expected files of one format, {', '.join(sorted(_FORMATS))}, found {found}; "
            "give a pattern such as 'sent/*.jsonl'"
        )
    read = {"jsonl": _json_rows, "csv": _csv_rows, "parquet": _parquet_rows}[form]
    try:
        rows = list(islice(chain.from_iterable(read(file, limit) for file in files[:_FILES]), limit))
        separator = _separator(files[0]) if form == "csv" else ","
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        raise SourceError(f"{place} {text}: cannot be read as {form}: {error}") from error
    warnings = (_LINE_BREAKS,) if form == "csv" and _has_line_breaks(rows) else ()
    return LedgerSample(form, text, columns_of(rows), len(rows), separator, warnings)


def form_by_content(file: Path) -> str | None:
    """Return the format of a file without a known suffix: JSON lines, or None where its first line is no object."""
    try:
        with opened(file) as text:
            return "jsonl" if text.read(1) == "{" else None
    except (OSError, EOFError, ValueError):
        return None


def _has_line_breaks(rows: Iterable[Row]) -> bool:
    values = chain.from_iterable(row.values() for row in rows)
    return any("\n" in value or "\r" in value for value in values if value)


def _named(path: Path, text: str) -> Iterable[Path]:
    if path.is_dir():
        return (file for file in path.iterdir() if _form(_ending(file)))
    if path.exists():
        return (path,)
    return (Path(found) for found in glob.glob(text))  # noqa: PTH207 - the pattern may be absolute


def _ending(file: Path) -> str:
    """Return the file's suffix, with that of its compression.

    >>> _ending(Path("a.2026.jsonl.gz")), _ending(Path("b.csv"))
    ('.jsonl.gz', '.csv')
    """
    packed = file.suffix if file.suffix in _PACKED else ""
    return Path(file.name.removesuffix(packed)).suffix + packed


def _form(ending: str) -> str | None:
    """Return the format of files with this suffix, or None where it is not known."""
    return _FORMATS.get(ending.lower().removesuffix(".gz").removesuffix(".bz2"))


def _separator(file: Path) -> str:
    """Return the separator of a CSV file: of the usual ones, the one that occurs most often in its header."""
    with opened(file) as text:
        header = next(_lines(text, file), "")
    return max(_SEPARATORS, key=header.count)


def _json_rows(file: Path, limit: int) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines; other lines are skipped here, and counted by the reader."""
    with opened(file) as text:
        for line in islice(_lines(text, file), limit):
            if line.lstrip().startswith("["):
                raise ValueError(f"{file.name} holds a JSON array; expected one object a line")
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def _lines(text: IO[str], file: Path) -> Iterator[str]:
    """Yield the file's lines, each held in memory; one that is too long for a sample is an error.

    Raises:
        ValueError: where a line has more than `_LINE_CHARACTERS` characters.
    """
    while line := text.readline(_LINE_CHARACTERS):
        if len(line) == _LINE_CHARACTERS:
            raise ValueError(
                f"{file.name} has a line of more than {_LINE_CHARACTERS:,} characters; expected one row a line"
            )
        yield line


def _csv_rows(file: Path, limit: int) -> Iterator[Row]:
    with opened(file, newline="") as text:
        for row in islice(csv.DictReader(_lines(text, file), delimiter=_separator(file)), limit):
            yield {name: value or None for name, value in row.items() if name is not None}


def _parquet_rows(file: Path, limit: int) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load, and JSON and CSV do without
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(file) as parquet:
            for batch in islice(parquet.iter_batches(batch_size=limit), 1):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
