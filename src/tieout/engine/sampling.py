"""A bounded look at evidence that no contract describes yet: column names, and the first values of each.

Spark is not started: JSON lines and CSV are read by the standard library, Parquet by pyarrow, a table by PostgreSQL's
client. At most `ROWS` rows are read, whatever the source's size.
"""

from __future__ import annotations

import csv
import glob
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from tieout.contracts.guessing import ColumnSample, LedgerSample
from tieout.errors import SourceError

ROWS: Final = 1_000
_FILES: Final = 20
_FORMATS: Final = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet",
}  # fmt: skip
_TABLE: Final = "jdbc:"

Row = Mapping[str, Any]


def sample(text: str, place: str) -> LedgerSample:
    """Return the first rows of what the text names: `jdbc:CONNECTION:TABLE`, or a file, folder or pattern.

    Args:
        text: Where the rows are.
        place: What the user calls it, for errors.

    Raises:
        SourceError: where nothing is there, its format is not known, or it cannot be read.
        ConnectionNotFoundError: where the connection is not defined.
    """
    return _table(text, place) if text.startswith(_TABLE) else _files(text, place)


def _files(text: str, place: str) -> LedgerSample:
    files = sorted(file for file in _named(Path(text), text) if not file.name.startswith((".", "_")))
    if not files:
        raise SourceError(f"{place} {text}: expected files, found none; give a file, a folder or a pattern")
    formats = {_FORMATS.get(file.suffix.lower()) for file in files}
    known = formats - {None}
    if len(formats) != 1 or not known:
        found = ", ".join(sorted({file.suffix or "no suffix" for file in files}))
        raise SourceError(
            f"{place} {text}: expected files of one format, {', '.join(sorted(_FORMATS))}, found {found}; "
            "give a pattern such as 'sent/*.jsonl'"
        )
    (form,) = known
    read = {"jsonl": _json_rows, "csv": _csv_rows, "parquet": _parquet_rows}[str(form)]
    try:
        rows = list(islice(chain.from_iterable(read(file) for file in files[:_FILES]), ROWS))
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(f"{place} {text}: cannot be read as {form}: {error}") from error
    path = text if not Path(text).is_dir() else f"{text.rstrip('/')}/*{files[0].suffix}"
    return LedgerSample(str(form), path, _columns(rows), len(rows))


def _named(path: Path, text: str) -> Iterable[Path]:
    if path.is_dir():
        return (file for file in path.iterdir() if file.suffix.lower() in _FORMATS)
    return (Path(found) for found in glob.glob(text))  # noqa: PTH207 - the pattern may be absolute


def _json_rows(file: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines; lines that are none are passed over, as the reader counts them."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in islice(lines, ROWS):
            if line.lstrip().startswith("["):
                raise ValueError(f"{file.name} holds a JSON array; expected one object a line")
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def _csv_rows(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        for row in islice(csv.DictReader(lines), ROWS):
            yield {name: value or None for name, value in row.items() if name is not None}


def _parquet_rows(file: Path) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load, and JSON and CSV do without
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(file) as opened:
            for batch in islice(opened.iter_batches(batch_size=ROWS), 1):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _table(text: str, place: str) -> LedgerSample:
    from tieout.contracts import JdbcSource  # noqa: PLC0415
    from tieout.engine.sources.jdbc import first_rows  # noqa: PLC0415 - loads PySpark beside the client

    name, _, table = text.removeprefix(_TABLE).partition(":")
    if not name or not table:
        raise SourceError(
            f"{place} {text}: expected jdbc:CONNECTION:TABLE, such as jdbc:warehouse:analytics.orders"
        )
    rows = first_rows(JdbcSource(connection=name, table=table), place, ROWS)
    return LedgerSample("jdbc", f"{name}:{table}", _columns(rows), len(rows))


def _columns(rows: Iterable[Row]) -> tuple[ColumnSample, ...]:
    """Return every column that a row has, in the order in which they are first seen, with its values as text."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, [])
            if value is not None:
                values[name].append(value)
    return tuple(ColumnSample(name, _kind(found), tuple(map(_text, found))) for name, found in values.items())


def _kind(values: Iterable[Any]) -> str:
    """Return what the source holds: text, integer, number, flag, time, or other where it is nested or mixed."""
    kinds = {_kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else "text" if not kinds else "other"


def _kind_of(value: Any) -> str:
    for kind, name in (
        (bool, "flag"),
        (int, "integer"),
        (float, "number"),
        (datetime, "time"),
        (str, "text"),
    ):
        if isinstance(value, kind):
            return name
    return "other"


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
