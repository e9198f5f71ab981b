"""A bounded look at evidence that no contract describes yet: column names, and the first values of each.

Spark is started for a topic, and for a table of Delta or Iceberg, alone: JSON lines and CSV are read by the standard
library, Parquet by pyarrow, a table of PostgreSQL by its client. At most `ROWS` rows are read, however
many there are.
"""

from __future__ import annotations

import csv
import glob
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final

from tieout.contracts import OFFSETS_TOPIC, STATE_TOPIC, FilesSource, KafkaSource
from tieout.contracts.guessing import POSITION_COLUMNS, ColumnSample, LedgerSample
from tieout.encodings import opened
from tieout.engine.share_group_samples import cluster_sample, share_group_sample
from tieout.engine.system_samples import (
    checkpoint_sample,
    flink_metadata,
    flink_sample,
    is_journal,
    of_named_files,
    of_sink,
    positions_of_groups,
    positions_of_names,
    positions_sample,
    range_files,
    server_logs,
    sink_files,
    system_of,
    trident_sample,
    worker_sample,
)
from tieout.engine.table_folders import table_format
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, Ledger

ROWS: Final = 1_000
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
_TABLE: Final = "jdbc:"
TOPIC: Final = "kafka:"
PULSAR: Final = "pulsar:"

Row = Mapping[str, Any]

_CONTENT: Final = tuple(ColumnSample(name, "text", ()) for name in ("key", "value", "headers"))
_OF_RECORDS: Final = {
    True: (
        *(ColumnSample(name, "integer", ("0",)) for name in ("partition", "offset")),
        ColumnSample("topic", "text", ("",)),
        ColumnSample("record_timestamp", "time", ("",)),
        *_CONTENT,
    ),
    False: (ColumnSample("source_timestamp", "time", ("",)), *_CONTENT),
}
"""What a record shows beside its value, in the ledger `log` and in any other."""


def sample(text: str, place: str, ledger: Ledger) -> LedgerSample:
    """Return some rows of what the text names: a file, folder, pattern, or one of the forms below.

    A folder may be a Delta or Iceberg table. `jdbc:CONNECTION:TABLE` is a table, `kafka:CONNECTION:TOPIC` a topic,
    of which the newest records are looked at; of `__share_group_state` those of all share groups.
    `pulsar:CONNECTION:TOPIC` is one of Pulsar, and with `:SUBSCRIPTION` behind it a subscription's positions.

    Args:
        text: Where the rows are.
        place: What the user calls it, for errors.
        ledger: What they are to be evidence for.

    Raises:
        SourceError: where nothing is there, its format is not known, or it cannot be read.
        ConnectionNotFoundError: where the connection is not defined.
    """
    if text.startswith(TOPIC):
        return _topic(text, place, ledger)
    if text.startswith(_TABLE):
        return _table(text, place)
    if text.startswith(PULSAR):
        return _pulsar(text, place, ledger)
    if is_journal(Path(text), ledger):
        return _journal(text, place, ledger)
    kind = system_of(Path(text), ledger)
    if kind is not None:
        return _of_system(kind, text, place, ledger)
    form = table_format(Path(text))
    return _files(text, place) if form is None else _lake_table(text, place, form)


def needs_spark(text: str) -> bool:
    """Return whether Spark is started to look at what the text names."""
    is_asked = text.startswith((_TABLE, PULSAR))
    return text.startswith(TOPIC) or (not is_asked and table_format(Path(text)) is not None)


def _files(text: str, place: str) -> LedgerSample:
    files = sorted(file for file in _named(Path(text), text) if not file.name.startswith((".", "_")))
    if not files:
        raise SourceError(f"{place} {text}: expected files, found none; give a file, a folder or a pattern")
    found = _rows_in(files, text, place)
    ending = _ending(files[0])
    return found if not Path(text).is_dir() else replace(found, path=f"{text.rstrip('/')}/*{ending}")


_BY_NAME: Final[Mapping[str, Callable[[str, str], LedgerSample]]] = {
    "spark_checkpoint": checkpoint_sample,
    "connect_offsets": worker_sample,
    "kafka_share_group": share_group_sample,
}


def _of_system(kind: str, text: str, place: str, ledger: Ledger) -> LedgerSample:
    """Return a look at what Spark, Kafka Connect, Flink or Trident keeps."""
    if kind in _BY_NAME:
        return _BY_NAME[kind](text, place)
    if kind == "flink_checkpoints":
        return flink_sample(text, place, flink_metadata(Path(text)))
    if kind == "trident":
        return trident_sample(text, place, server_logs(Path(text)))
    if kind == "spark_files":
        return of_sink(text, _rows_in(sink_files(Path(text)), text, place))
    files = range_files(Path(text))
    if ledger in POSITION_LEDGERS:
        return positions_of_names(text, files)
    return of_named_files(text, _rows_in(files, text, place, unnamed=_form_by_content(files[0])), files)


def _form_by_content(file: Path) -> str | None:
    """Return that a file whose name does not tell holds JSON lines, None where its first line is no object."""
    try:
        with opened(file) as text:
            return "jsonl" if text.read(1) == "{" else None
    except (OSError, EOFError, ValueError):
        return None


def _rows_in(files: Sequence[Path], text: str, place: str, unnamed: str | None = None) -> LedgerSample:
    """Return a look at the first rows of these files, which are all of one format; `unnamed` is that of other names."""
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
        rows = list(islice(chain.from_iterable(read(file) for file in files[:_FILES]), ROWS))
        separator = _separator(files[0]) if form == "csv" else ","
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        raise SourceError(f"{place} {text}: cannot be read as {form}: {error}") from error
    warnings = (_LINE_BREAKS,) if form == "csv" and _has_line_breaks(rows) else ()
    return LedgerSample(form, text, _columns(rows), len(rows), separator, warnings)


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
    """Return how the file's name ends, with its compression.

    >>> _ending(Path("a.2026.jsonl.gz")), _ending(Path("b.csv"))
    ('.jsonl.gz', '.csv')
    """
    packed = file.suffix if file.suffix in _PACKED else ""
    return Path(file.name.removesuffix(packed)).suffix + packed


def _form(ending: str) -> str | None:
    """Return the format of files that end so, or None where it is not known."""
    return _FORMATS.get(ending.lower().removesuffix(".gz").removesuffix(".bz2"))


def _separator(file: Path) -> str:
    """Return what parts the columns of a CSV file: of the usual signs the one that its header has most."""
    with opened(file) as text:
        header = next(_lines(text, file), "")
    return max(_SEPARATORS, key=header.count)


def _json_rows(file: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines; lines that are none are passed over, as the reader counts them."""
    with opened(file) as text:
        for line in islice(_lines(text, file), ROWS):
            if line.lstrip().startswith("["):
                raise ValueError(f"{file.name} holds a JSON array; expected one object a line")
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def _lines(text: IO[str], file: Path) -> Iterator[str]:
    """Yield the file's lines, each held in memory; a longer one than a look takes ends it.

    Raises:
        ValueError: where a line has more than `_LINE_CHARACTERS` characters.
    """
    while line := text.readline(_LINE_CHARACTERS):
        if len(line) == _LINE_CHARACTERS:
            raise ValueError(
                f"{file.name} has a line of more than {_LINE_CHARACTERS:,} characters; expected one row a line"
            )
        yield line


def _csv_rows(file: Path) -> Iterator[Row]:
    with opened(file, newline="") as text:
        for row in islice(csv.DictReader(_lines(text, file), delimiter=_separator(file)), ROWS):
            yield {name: value or None for name, value in row.items() if name is not None}


def _parquet_rows(file: Path) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load, and JSON and CSV do without
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(file) as parquet:
            for batch in islice(parquet.iter_batches(batch_size=ROWS), 1):
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
    return LedgerSample("jdbc", f"{name}:{table}", _columns(rows), len(rows), kind="jdbc")


def _lake_table(text: str, place: str, form: str) -> LedgerSample:
    from tieout.engine.sources import tables  # noqa: PLC0415 - loads PySpark

    spec = FilesSource.model_validate({"format": form, "path": text})
    rows = tables.first_rows(spec, f"{place} {text}", ROWS)
    return LedgerSample(form, text, _columns(rows), len(rows))


def _topic(text: str, place: str, ledger: Ledger) -> LedgerSample:
    from tieout.engine.sources.kafka_newest import newest_records  # noqa: PLC0415 - loads PySpark

    name, _, topic = text.removeprefix(TOPIC).partition(":")
    if not name or not topic:
        raise SourceError(
            f"{place} {text}: expected kafka:CONNECTION:TOPIC, such as kafka:kafka_default:orders"
        )
    if ledger in POSITION_LEDGERS and topic == STATE_TOPIC:
        return cluster_sample(name, place)
    records = newest_records(KafkaSource(connection=name, topic=topic), place, ledger, ROWS)
    if ledger in POSITION_LEDGERS and topic == OFFSETS_TOPIC:
        return positions_of_groups(f"{name}:{topic}", len(records))
    if ledger in POSITION_LEDGERS:
        return positions_sample(f"{name}:{topic}", place, records, form="kafka")
    values = [None if value is None else value.decode(errors="replace") for _, value in records]
    fields = [
        replace(column, kind="text", expression=_field(column.name)) for column in _columns(_objects(values))
    ]
    columns = (*fields, *_OF_RECORDS[ledger is Ledger.LOG])
    return LedgerSample("kafka", f"{name}:{topic}", columns, len(values), kind="kafka")


def _pulsar(text: str, place: str, ledger: Ledger) -> LedgerSample:
    from tieout.engine.pulsar_samples import named_cursor, newest_messages  # noqa: PLC0415 - loads PySpark

    if ledger in POSITION_LEDGERS:
        cursor = named_cursor(text, place)
        options = (("subscription", cursor.subscription),)
        path = f"{cursor.connection}:{cursor.topic}"
        return LedgerSample("kafka", path, (), 1, ",", (), "pulsar_cursor", options, POSITION_COLUMNS)
    spec, messages = newest_messages(text, place, ROWS)
    values = [None if one.value is None else one.value.decode(errors="replace") for one in messages]
    fields = [
        replace(column, kind="text", expression=_field(column.name)) for column in _columns(_objects(values))
    ]
    known = [column for column in _OF_RECORDS[ledger is Ledger.LOG] if column.name != "headers"]
    columns = (*fields, *known)
    return LedgerSample("kafka", f"{spec.connection}:{spec.topic}", columns, len(values), kind="pulsar")


def _journal(text: str, place: str, ledger: Ledger) -> LedgerSample:
    from tieout.engine.kahadb_samples import (  # noqa: PLC0415 - loads PySpark
        journal_messages,
        journal_positions,
        properties_of,
    )

    if ledger in POSITION_LEDGERS:
        return journal_positions(text, place)
    queue, messages, warnings, count = journal_messages(text, place, ROWS)
    properties = [
        ColumnSample(name, "text", values, f"properties[{_literal(name)}]")
        for name, values in properties_of(messages).items()
    ]
    known = {column.name for column in properties}
    bodies = [None if one.body is None else one.body.decode(errors="replace") for one in messages]
    fields = [
        replace(column, kind="text", expression=_field(column.name))
        for column in _columns(_objects(bodies))
        if column.name not in known
    ]
    columns = (*properties, *fields, ColumnSample("value", "text", ()))
    gives = (
        "topic",
        "partition",
        "offset",
        *(("record_timestamp",) if ledger is Ledger.LOG else ("at", "reason")),
    )
    options = (("destination", queue),)
    return LedgerSample("", text, columns, count, ",", warnings, "kahadb", options, gives)


def _objects(values: Iterable[str | None]) -> Iterator[Row]:
    """Yield the plain fields of the values that are JSON objects."""
    for value in values:
        try:
            found = json.loads(value or "null")
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield {k: v for k, v in found.items() if "'" not in k and not isinstance(v, dict | list)}


def _field(name: str) -> str:
    """Return a field of a record's value in Spark SQL.

    >>> print(_field("id"), _field("order id"))
    get_json_object(string(value), '$.id') get_json_object(string(value), "$['order id']")
    """
    path = f"'$.{name}'" if name.isidentifier() else f"\"$['{name}']\""
    return f"get_json_object(string(value), {path})"


def _literal(value: str) -> str:
    """Return a text in Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


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
