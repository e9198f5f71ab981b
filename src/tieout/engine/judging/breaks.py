"""The breaks of a run, packed as the bytes of Parquet files by the task that found them.

Spark would decode and encode rows of nested lists at each step, which costs as much as finding the breaks. Packed, they
are a few binary values, which Spark moves and keeps, and which are written to files unchanged.
Docs: Apache Arrow's "Reading and Writing the Apache Parquet Format".
"""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Final, cast

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tieout.engine.scope import Scope
from tieout.engine.session import is_full
from tieout.engine.statement.numbers import Tables
from tieout.engine.statement.proof import PROVING, evidence_type, with_clean_proof
from tieout.model import POSITION_LEDGERS, BreakClass
from tieout.verdicts import severity_of_break

BREAKS: Final = "proven_breaks"
"""The view of all breaks of a bucket with the rows that prove them."""
BREAKS_KEPT: Final = 100_000
"""How many breaks are kept to be read one by one: the first in `ORDER`, in which null sorts first."""
ORDER: Final = ("class", "topic", "partition", "offset", "break_id")
BREAK_COLUMNS: Final = (
    "break_id", "class", "flags", "message_id", "producer_id", "topic", "partition", "offset", "positions", "locus",
    "cause", "admissible", "rule", "severity", "incident_id", "evidence",
)  # fmt: skip
_TYPES: Final = {
    "flags": "array<string>",
    "partition": "int",
    "offset": "bigint",
    "positions": "array<struct<topic:string,partition:int,offset:bigint>>",
    "admissible": "array<string>",
}
"""Spark types of the columns that are not strings; the type of `evidence` depends on the contract."""
_ROWS_AT_ONCE: Final = 20_000
"""A break with its rows takes a few kilobytes of Arrow memory, which DuckDB's memory limit does not count."""
_BYTES_OF_FILE: Final = 32 << 20
_BREAKS_AT_ONCE: Final = 1_000_000
"""How many breaks are joined with their rows at a time: those joins hold all their tables in memory at once."""


@dataclass(frozen=True)
class Shape:
    """How breaks look under a contract: their schema, the ledgers that prove them, and the severity of each class."""

    schema: StructType
    ledgers: tuple[str, ...]
    severities: Mapping[str, str]


def shape_of(scope: Scope) -> Shape:
    """Return the shape of a scope's breaks; their rows are of the ledgers that the contract declares."""
    declared = [ledger for ledger in PROVING if ledger in scope.evidence]
    types = {**dict.fromkeys(BREAK_COLUMNS, "string"), **_TYPES, "evidence": evidence_type(declared)}
    schema = StructType.fromDDL(", ".join(f"`{name}` {types[name]}" for name in BREAK_COLUMNS))
    return Shape(
        cast(StructType, schema),
        tuple(ledger.value for ledger in (*declared, *POSITION_LEDGERS)),
        {name.value: severity_of_break(scope.contract, name, ()) for name in BreakClass},
    )


@dataclass(frozen=True)
class Part:
    """Which breaks a file holds: of messages or not, and the first ones in `ORDER` or the further ones.

    A break that is not of a message is of a commit, a position, a transaction or an order.
    """

    is_non_message: bool
    is_first: bool


def packed(
    connection: duckdb.DuckDBPyConnection, shape: Shape, most: int = BREAKS_KEPT
) -> Iterator[tuple[Part, bytes]]:
    """Yield the breaks of a bucket as Parquet files, each with its part, at least one of each part.

    The first ones are the first `most` rows of `named_breaks` in `ORDER`.
    """
    order = ", ".join(f"{_named(name)}, 'ASC NULLS FIRST'" for name in ORDER)
    place = f"create_sort_key({order})"
    nth = f"SELECT {place} FROM named_breaks ORDER BY 1 LIMIT 1 OFFSET {most - 1}"  # noqa: S608 - names of this package
    connection.execute(f"SET VARIABLE last_of_first = ({nth})")
    known = ", ".join(f"'{name}': '{severity}'" for name, severity in shape.severities.items())
    aborted = BreakClass.PHANTOM_ABORTED.value
    computed = {
        "severity": f"MAP {{{known}}}[CASE WHEN list_contains(flags, '{aborted}') THEN '{aborted}' ELSE class END]",
        "evidence": f"struct_pack({', '.join(f'{name} := evidence.{name}' for name in shape.ledgers)})",
    }
    columns = ", ".join(f"{computed.get(name, _named(name))} AS {_named(name)}" for name in BREAK_COLUMNS)
    query = (
        f"SELECT {columns}, kind <> 'message' AS is_non_message, "  # noqa: S608 - names of this package
        f"coalesce({place} <= getvariable('last_of_first'), true) AS is_first FROM {BREAKS}"
    )
    files = {
        Part(is_non_message, is_first): _File(to_arrow_schema(shape.schema))
        for is_non_message in (False, True)
        for is_first in (False, True)
    }
    for batch in _in_slices(connection, query):
        rows = pa.Table.from_batches([batch])
        for part, file in files.items():
            is_of_part = pc.and_(
                pc.equal(rows["is_non_message"], part.is_non_message),
                pc.equal(rows["is_first"], part.is_first),
            )
            file.add(rows.filter(is_of_part).select(BREAK_COLUMNS))
            if file.size > _BYTES_OF_FILE:
                yield part, file.end()
                files[part] = _File(to_arrow_schema(shape.schema))
    for part, file in files.items():
        yield part, file.end()


def _in_slices(connection: duckdb.DuckDBPyConnection, breaks: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query of `breaks`, slice by slice of their numbers, which count from 1."""
    [(last,)] = connection.execute("SELECT coalesce(max(number), 0) FROM named_breaks").fetchall()
    for start in range(0, last, _BREAKS_AT_ONCE):
        rows = connection.sql(f"{breaks} WHERE number > {start} AND number <= {start + _BREAKS_AT_ONCE}")
        yield from rows.to_arrow_reader(_ROWS_AT_ONCE)


def _named(column: str) -> str:
    return f'"{column}"'


class _File:
    """A Parquet file in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._bytes = schema, BytesIO()
        self._writer = pq.ParquetWriter(self._bytes, schema, store_schema=False)

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._bytes.tell()

    def add(self, rows: pa.Table) -> None:
        """Write rows, in the schema's types."""
        if rows.num_rows:
            self._writer.write_table(rows.cast(self._schema))

    def end(self) -> bytes:
        """Return the whole file."""
        self._writer.close()
        return self._bytes.getvalue()


@dataclass(frozen=True)
class Breaks:
    """Every break of a run: the packed `files` that tasks handed out, with the `is_non_message` and `is_first` of each.

    Where clean rows also prove the breaks that are not of a message, those are rows in `proved` instead: the first ones
    under true, the further ones under false. Each of the `buckets` has first ones of its own.
    """

    files: DataFrame
    schema: StructType
    proved: Mapping[bool, DataFrame] = field(default_factory=dict)
    buckets: int = 1

    def rows(self, columns: Sequence[str] = BREAK_COLUMNS) -> DataFrame:
        """Return the breaks as rows with these columns."""
        return self._joined(self._unpacked(self.files, columns), *self.proved.values())

    def first(self) -> DataFrame:
        """Return the breaks to be read one by one, as rows, and possibly some that follow them in `ORDER`."""
        first = self._first(BREAK_COLUMNS)
        if self.buckets == 1:
            return first
        # Each bucket has as many first ones as are kept of all. Only the columns of `ORDER` are read to find their end.
        ends = (
            self._first(ORDER)
            .orderBy(*ORDER)
            .groupBy(F.spark_partition_id())
            .agg(F.count("*").alias("breaks"), F.max(F.struct(*ORDER)).alias("last"))
            .orderBy("last")
            .collect()
        )
        so_far = accumulate(row["breaks"] for row in ends)
        last = next(
            (row["last"] for row, count in zip(ends, so_far, strict=True) if count >= BREAKS_KEPT), None
        )
        if last is None:
            return first
        end = F.struct(*[F.lit(last[name]).cast(self.schema[name].dataType).alias(name) for name in ORDER])
        return first.filter(F.struct(*ORDER) <= end)

    def _first(self, columns: Sequence[str]) -> DataFrame:
        proved = [rows.select(*columns) for is_first, rows in self.proved.items() if is_first]
        return self._joined(self._unpacked(self.files.filter("is_first"), columns), *proved)

    def non_message(self, *, is_first: bool) -> DataFrame:
        """Return the breaks that are not of a message as the bucket proved them, the first or the further ones."""
        files = self.files.filter(F.col("is_non_message") & (F.col("is_first") == is_first))
        return self._unpacked(files, BREAK_COLUMNS)

    def write(self, folder: Path) -> None:
        """Write the breaks as Parquet files into a new folder, which the executors must reach by the same path.

        Raises:
            OSError: where the folder cannot be made, or its device has no space left.
        """
        folder.mkdir()
        write = partial(_write, folder=str(folder.absolute()))
        try:
            self.files.select("packed").mapInArrow(write, "file string").collect()
            for rows in self.proved.values():
                rows.write.mode("append").parquet(folder.absolute().as_uri())
        except Exception as error:
            if is_full(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
            raise

    def _unpacked(self, files: DataFrame, columns: Sequence[str]) -> DataFrame:
        schema = StructType([self.schema[name] for name in columns])
        return files.select("packed").mapInArrow(partial(_unpacked, schema=to_arrow_schema(schema)), schema)

    @staticmethod
    def _joined(rows: DataFrame, *more: DataFrame) -> DataFrame:
        return reduce(DataFrame.unionByName, (one.select(*rows.columns) for one in more), rows)


def proven(scope: Scope, breaks: Breaks, tables: Tables) -> Breaks:
    """Return the breaks; those that are not of a message are also proved by the clean rows at their positions.

    `tables` are the small tables that the buckets hand out.
    """
    if scope.clean is None or not any(row["is_non_message"] for row in tables["tally"]):
        return breaks
    has_further = sum(row["breaks"] for row in tables["breaks_total"]) > BREAKS_KEPT
    proved = {
        is_first: with_clean_proof(scope, breaks.non_message(is_first=is_first))
        for is_first in (True, False)[: 1 + has_further]
    }
    of_messages = breaks.files.filter(~F.col("is_non_message"))
    return replace(breaks, files=of_messages, proved=proved)


def _unpacked(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of packed files, in the worker."""
    for batch in batches:
        for file in batch["packed"]:
            parquet = pq.ParquetFile(pa.BufferReader(file.as_buffer()))
            for rows in parquet.iter_batches(_ROWS_AT_ONCE, columns=schema.names):
                yield from pa.Table.from_batches([rows]).select(schema.names).cast(schema).to_batches()


def _write(batches: Iterable[pa.RecordBatch], folder: str) -> Iterator[pa.RecordBatch]:
    """Write packed files into a folder, in the worker; a repeated task writes the same bytes to the same names."""
    names = []
    for batch in batches:
        for file in batch["packed"]:
            whole = file.as_buffer()
            name = f"part-{hashlib.sha256(whole).hexdigest()[:32]}.parquet"
            draft = Path(folder) / f".{name}.{uuid.uuid4()}"
            draft.write_bytes(whole)
            draft.replace(Path(folder) / name)
            names.append(name)
    yield pa.RecordBatch.from_pydict({"file": pa.array(names, pa.string())})
