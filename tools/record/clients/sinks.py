"""A consumer's output: a file of JSON lines, or a table in PostgreSQL."""

from __future__ import annotations

from typing import Any, Protocol

import psycopg2
from psycopg2.extras import execute_values

from tools.record.clients.protocol import LedgerFile

_COLUMNS = (
    "message_id",
    "topic",
    "partition",
    "offset",
    "key_hash",
    "payload_hash",
    "consumer_group",
    "consumer_id",
    "delivery_sequence",
    "processed_at",
)

CREATE_TABLE = """
create table order_received (
    order_id text not null,
    source_topic text not null,
    source_partition integer not null,
    source_offset bigint not null,
    key_sha256 text,
    payload_sha256 text not null,
    loader_group text not null,
    loader text not null,
    loader_sequence bigint not null,
    loaded_at timestamptz not null,
    primary key (source_topic, source_partition, source_offset)
)
"""
EXPORT_TABLE = """
copy (
    select order_id, source_topic, source_partition, source_offset, key_sha256, payload_sha256, loader_group,
        loader, loader_sequence,
        to_char(loaded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as loaded_at
    from order_received
    order by loaded_at, source_topic, source_partition, source_offset
) to stdout (format csv, header)
"""
_INSERT = "insert into order_received values %s on conflict do nothing"


class Sink(Protocol):
    """Writes the output's rows."""

    def write(self, rows: list[dict[str, object]]) -> None:
        """Write the rows; they survive this process's death once the call has returned."""


class FileSink:
    """Appends each row to a file, even if it is already there."""

    def __init__(self, path: str) -> None:
        self._file = LedgerFile(path)

    def write(self, rows: list[dict[str, object]]) -> None:
        """Append the rows one by one."""
        for row in rows:
            self._file.write(row)


class TableSink:
    """Inserts rows in one transaction, keyed by position: a record that is read again changes nothing."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg2.connect(url)

    def write(self, rows: list[dict[str, object]]) -> None:
        """Insert the rows and commit."""
        with self._connection, self._connection.cursor() as cursor:
            execute_values(cursor, _INSERT, [tuple(row[column] for column in _COLUMNS) for row in rows])


def sink_of(config: dict[str, Any]) -> Sink:
    """Return the sink that `{"kind": "file", "path": …}` or `{"kind": "table", "url": …}` describes."""
    return FileSink(config["path"]) if config["kind"] == "file" else TableSink(config["url"])
