"""A window that is judged in several buckets: the stages of each bucket, and the tables passed between them.

Buckets exchange facts between the parts of the rounds. Each bucket passes its tables to its next stage as Arrow bytes,
which Spark keeps in their partition. Docs: Arrow's "Streaming, Serialization, and IPC".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

import duckdb
import pyarrow as pa

from tieout.engine.judging.bucket import MACROS, PARTS, Program, appended, gathered, program, round_files
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.lifetimes import left_to

SHARED: Final = ("topic_parts", "clock_parts")
"""Tables that each bucket gets from all buckets, from the second part on."""
_ROWS_PER_BATCH: Final = 20_000
_BYTES_OF_PIECE: Final = 32 << 20
_BYTES_AT_ONCE: Final = 256 << 20


@dataclass(frozen=True)
class Stage:
    """The work of one task on a bucket: SQL, and the tables it leaves to the next stage."""

    steps: Program
    leaves: tuple[str, ...]


def stages(handed_out: Collection[str], breaks: str) -> list[Stage]:
    """Return the parts of the rounds as stages; `breaks` is read at the end of the second, `handed_out` of the last."""
    steps = dict(program((*handed_out, breaks)))
    macros = tuple((name, text) for name, text in steps.items() if name.startswith(f"{MACROS}/"))
    parts = [[file for name in part for file in round_files(name)] for part in PARTS]
    result: list[Stage] = []
    views: list[str] = []
    for number, part in enumerate(parts):
        before, after = (
            [text for one in some for _, text in one] for some in (parts[: number + 1], parts[number + 1 :])
        )
        tables, read_later = left_to(
            before, after, TABLES, (*handed_out, breaks) if number == 0 else handed_out
        )
        own = tuple((name, steps[name]) for name, _ in part)
        result.append(Stage((*macros, ("views", "".join(f"{one};\n" for one in views)), *own), tuple(tables)))
        views = read_later
    return result


def left(connection: duckdb.DuckDBPyConnection, tables: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield tables as Arrow's bytes, each by its name and in as many pieces as it takes, at least one."""
    for table in tables:
        reader = connection.table(table).to_arrow_reader(_ROWS_PER_BATCH)
        yield table, _as_bytes(reader.schema, [])
        for buffered in gathered(reader, _BYTES_OF_PIECE):
            yield table, _as_bytes(reader.schema, buffered)


def take(connection: duckdb.DuckDBPyConnection, pieces: Iterable[tuple[str, bytes]]) -> None:
    """Append pieces that other connections have left to their tables; missing tables are created."""
    for table, of_table in groupby(pieces, key=itemgetter(0)):
        tables = (pa.ipc.open_stream(piece).read_all() for _, piece in of_table)
        for buffered in gathered(tables, _BYTES_AT_ONCE):
            _append(connection, table, pa.concat_tables(buffered))


def _append(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    if table in TABLES:
        appended(connection, table, rows)
        return
    connection.register("given", rows)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} AS FROM given LIMIT 0")
    connection.execute(f"INSERT INTO {table} FROM given")
    connection.unregister("given")


def _as_bytes(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
