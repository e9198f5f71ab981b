"""Samples evidence that no contract describes yet: column names, and the first values of each.

Spark is started only for a topic and for a table of Delta or Iceberg. JSON lines and CSV are read by the standard
library, Parquet by pyarrow, a table of PostgreSQL by its client. At most `ROWS` rows are read, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tieout.contracts import OFFSETS_TOPIC, STATE_TOPIC, FilesSource, KafkaSource
from tieout.contracts.guessing import POSITION_COLUMNS, ColumnSample, LedgerSample
from tieout.engine.column_samples import columns_of, fields_of
from tieout.engine.file_samples import files_sample, form_by_content, rows_sample
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
_TABLE: Final = "jdbc:"
TOPIC: Final = "kafka:"
PULSAR: Final = "pulsar:"

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
"""The columns that a record has besides the fields of its value, in the ledger `log` and in any other."""


def sample(text: str, place: str, ledger: Ledger) -> LedgerSample:
    """Return some rows of what the text names: a file, folder, pattern, or one of the forms below.

    A folder may be a Delta or Iceberg table. `jdbc:CONNECTION:TABLE` is a table, `kafka:CONNECTION:TOPIC` a topic,
    of which the newest records are sampled; of `__share_group_state` those of all share groups.
    `pulsar:CONNECTION:TOPIC` is a topic of Pulsar, and with `:SUBSCRIPTION` appended a subscription's positions.

    Args:
        text: Where the rows are.
        place: The user's name for it, for errors.
        ledger: What they are to be evidence for.

    Raises:
        SourceError: where nothing is found, its format is not known, or it cannot be read.
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
    return files_sample(text, place, ROWS) if form is None else _lake_table(text, place, form)


def needs_spark(text: str) -> bool:
    """Return whether Spark is started to sample what the text names."""
    is_remote = text.startswith((_TABLE, PULSAR))
    return text.startswith(TOPIC) or (not is_remote and table_format(Path(text)) is not None)


_BY_NAME: Final[Mapping[str, Callable[[str, str], LedgerSample]]] = {
    "spark_checkpoint": checkpoint_sample,
    "connect_offsets": worker_sample,
    "kafka_share_group": share_group_sample,
}


def _of_system(kind: str, text: str, place: str, ledger: Ledger) -> LedgerSample:
    """Return a sample of the files that Spark, Kafka Connect, Flink or Trident keeps."""
    if kind in _BY_NAME:
        return _BY_NAME[kind](text, place)
    if kind == "flink_checkpoints":
        return flink_sample(text, place, flink_metadata(Path(text)))
    if kind == "trident":
        return trident_sample(text, place, server_logs(Path(text)))
    if kind == "spark_files":
        return of_sink(text, rows_sample(sink_files(Path(text)), text, place, ROWS))
    files = range_files(Path(text))
    if ledger in POSITION_LEDGERS:
        return positions_of_names(text, files)
    return of_named_files(
        text, rows_sample(files, text, place, ROWS, unnamed=form_by_content(files[0])), files
    )


def _table(text: str, place: str) -> LedgerSample:
    from tieout.contracts import JdbcSource  # noqa: PLC0415
    from tieout.engine.sources.jdbc import first_rows  # noqa: PLC0415 - loads PySpark beside the client

    name, _, table = text.removeprefix(_TABLE).partition(":")
    if not name or not table:
        raise SourceError(
            f"{place} {text}: expected jdbc:CONNECTION:TABLE, such as jdbc:warehouse:analytics.orders"
        )
    rows = first_rows(JdbcSource(connection=name, table=table), place, ROWS)
    return LedgerSample("jdbc", f"{name}:{table}", columns_of(rows), len(rows), kind="jdbc")


def _lake_table(text: str, place: str, form: str) -> LedgerSample:
    from tieout.engine.sources import tables  # noqa: PLC0415 - loads PySpark

    spec = FilesSource.model_validate({"format": form, "path": text})
    rows = tables.first_rows(spec, f"{place} {text}", ROWS)
    return LedgerSample(form, text, columns_of(rows), len(rows))


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
    columns = (*fields_of(values), *_OF_RECORDS[ledger is Ledger.LOG])
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
    known = [column for column in _OF_RECORDS[ledger is Ledger.LOG] if column.name != "headers"]
    columns = (*fields_of(values), *known)
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
    fields = [column for column in fields_of(bodies) if column.name not in known]
    columns = (*properties, *fields, ColumnSample("value", "text", ()))
    reader_columns = (
        "topic",
        "partition",
        "offset",
        *(("record_timestamp",) if ledger is Ledger.LOG else ("at", "reason")),
    )
    options = (("destination", queue),)
    return LedgerSample("", text, columns, count, ",", warnings, "kahadb", options, reader_columns)


def _literal(value: str) -> str:
    """Return a text in Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
