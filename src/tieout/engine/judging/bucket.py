"""One bucket of evidence, judged: a connection of its own, the rows loaded, the rounds run, their tables handed out.

A connection keeps to the memory and the threads that it is given, and spills into the folder it is given, because
DuckDB would take most of the host by itself. Docs: DuckDB, "Configuration" and "Tuning Workloads".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import duckdb
import pyarrow as pa

from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.lifetimes import without_use
from tieout.engine.judging.skipping import VARIABLES, steps_of, with_tables
from tieout.engine.judging.terms import Terms

PARTS: Final = (
    ("ids", "transactions", "positions", "contents", "messages", "topics"),
    ("places", "fates", "lines", "proof", "counts"),
    ("totals",),
)
"""The rounds in the order in which facts become known; each is a folder of SQL files that run in the order of names.

Between two parts the buckets of a window exchange facts: before the second those of topics and clocks, before the last
the counts.
"""
ROUNDS: Final = tuple(name for part in PARTS for name in part)
MACROS: Final = "macros"
"""The folder of the macros, run before the rounds: conditions, and the forms of keys, digests and ids."""
_FEW: Final = 20_000
"""Rows of a bucket up to which planning costs more than views that are written out."""


Gathered = TypeVar("Gathered", pa.RecordBatch, pa.Table)

Program: TypeAlias = tuple[tuple[str, str], ...]
"""SQL files by name, with their text: read once at the start of a run, so that all its tasks run the same."""


@dataclass(frozen=True)
class Limits:
    """The limits of a bucket: bytes of memory, threads, and the folder it spills into; None for no spilling."""

    memory_bytes: int = 1 << 30
    threads: int = 1
    spill: Path | None = None


@contextmanager
def connected(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to an empty database in memory, which is closed at the end."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{limits.memory_bytes}B",
        "threads": limits.threads,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": "" if limits.spill is None else str(limits.spill),
    }
    connection = duckdb.connect(":memory:", config=settings)
    try:
        yield connection
    finally:
        connection.close()


def prepared(connection: duckdb.DuckDBPyConnection, terms: Terms, deleted_topics: Sequence[str] = ()) -> None:
    """Set the terms' variables, and make the tables of `canonical.TABLES`, empty.

    `deleted_topics` are those that are known to be deleted; see `topic_generations.py`.
    """
    for statement, value in terms.statements():
        connection.execute(statement, [value])
    connection.execute(
        "CREATE TABLE deleted_topics AS SELECT unnest(?::VARCHAR[]) AS topic", [list(deleted_topics)]
    )
    for table, columns in TABLES.items():
        types = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({types})")


def appended(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Append rows to a table by column name: other columns are ignored, missing ones are null."""
    connection.register("given", without_zones(rows))
    names = ", ".join(f'"{name}"' for name in TABLES[table] if name in rows.schema.names)
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM given")  # noqa: S608 - names of this package
    connection.unregister("given")


def gathered(rows: Iterable[Gathered], most_bytes: int) -> Iterator[list[Gathered]]:
    """Yield batches or tables in lists of about `most_bytes`: DuckDB appends many rows at the cost of few."""
    buffered: list[Gathered] = []
    size = 0
    for one in rows:
        buffered.append(one)
        size += one.nbytes
        if size >= most_bytes:
            yield buffered
            buffered, size = [], 0
    if buffered:
        yield buffered


def without_zones(rows: pa.Table) -> pa.Table:
    """Return rows with naive times in UTC: times with a zone need an extension of DuckDB."""
    fields = [
        pa.field(one.name, pa.timestamp("us")) if pa.types.is_timestamp(one.type) else one
        for one in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def program(handed_out: Collection[str], rounds: Sequence[str] = ROUNDS) -> Program:
    """Return the files of macros and rounds in the order in which they run; each drops the tables it was last to use.

    `handed_out` are the tables that are read afterwards.
    """
    sources = [*round_files(MACROS), *(file for name in rounds for file in round_files(name))]
    ends = [
        "".join(f"DROP TABLE {table};\n" for table in tables)
        for tables in without_use([text for _, text in sources], TABLES, handed_out)
    ]
    return tuple((name, text + end) for (name, text), end in zip(sources, ends, strict=True))


def round_files(folder: str) -> list[tuple[str, str]]:
    """Return the SQL files of a round, in their order, by name with their text."""
    root = files("tieout.engine.judging") / "rounds" / folder
    of_round = {one.name: one for one in root.iterdir() if one.name.endswith(".sql")}
    return [(f"{folder}/{file}", of_round[file].read_text(encoding="utf-8")) for file in sorted(of_round)]


def run(connection: duckdb.DuckDBPyConnection, steps: Program) -> None:
    """Run the files of a program, in order, without the statements that would read only empty tables.

    Where the rows are few, views are tables; see `skipping.py`.

    Raises:
        duckdb.Error: with the file's name, where a statement fails.
    """
    sizes = dict(connection.execute("SELECT table_name, estimated_size FROM duckdb_tables()").fetchall())
    filled = {VARIABLES} | {table for table, rows in sizes.items() if rows}
    if sum(sizes.values()) <= _FEW:
        steps = with_tables(steps, frozenset(sizes))
    for step in steps_of(steps, frozenset(sizes)):
        is_idle = step.instead is not None and filled.isdisjoint(step.reads)
        text = step.instead if is_idle else step.text
        try:
            done = connection.execute(text) if text else None
        except duckdb.Error as error:
            error.add_note(f"in {step.file}")
            raise
        if done is not None and step.fills and not is_idle and done.fetchall()[0][0]:
            filled.add(step.fills)
