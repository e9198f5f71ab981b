"""The Spark side of a bucket: rows of all ledgers go into one task, and come out as breaks and counts.

The kernel runs in an executor's Python worker, never on the driver, and is a pure function of its rows; Spark reads,
moves, repeats and writes. Rows of all ledgers are one frame, in which `rows_of` names the ledger, and every canonical
column stands once. Docs: `DataFrame.mapInArrow` in PySpark's reference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, BooleanType, StringType, StructField, StructType

from tieout import settings
from tieout.engine.judging.breaks import Breaks, Shape, packed, shape_of
from tieout.engine.judging.bucket import (
    ROUNDS,
    Limits,
    Program,
    appended,
    connected,
    prepared,
    program,
    run,
)
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.terms import Terms, terms_of
from tieout.engine.materialising import nulls_in
from tieout.engine.prematch.clean_facts import furthest_before_stamp
from tieout.engine.scope import Scope
from tieout.engine.sources.source import is_of_spark
from tieout.engine.statement.numbers import HANDED_OUT, TRACED, Tables
from tieout.errors import JudgingError

_ROWS_PER_BATCH: Final = 10_000
_BYTES_AT_ONCE: Final = 64 << 20
"""Of Arrow's memory, which no limit of DuckDB's counts."""
_ONE_MACHINE: Final = re.compile(r"local(\[(?P<cores>\*|\d+)(,\d+)?\])?")
"""Masters whose tasks all run in the driver. Source: "Master URLs" of Spark's guide."""
HANDED: Final = StructType(
    [
        StructField("rows_of", StringType()),
        StructField("told", StringType()),
        StructField("packed", BinaryType()),
        StructField("is_standing", BooleanType()),
        StructField("is_first", BooleanType()),
    ]
)
"""What a bucket hands out: rows of small tables as JSON in `told`, or a file of breaks and which part they are."""


@dataclass(frozen=True)
class Given:
    """What the task that judges is given: the rows of each table, the variables, topics that are gone, and the SQL.

    The breaks and counts are a function of these alone.
    """

    rows: Mapping[str, DataFrame]
    terms: Terms
    deleted: tuple[str, ...]
    steps: Program


@dataclass(frozen=True)
class Judged:
    """What a task hands out, the small tables and the breaks, and what it was given."""

    tables: Tables
    breaks: Breaks
    given: Given


def judged_by(scope: Scope, asked: Mapping[str, Any] | None = None) -> Judged:
    """Return the small tables and the breaks of a scope's evidence, computed once and kept on disks.

    `asked` are the variables of a trace: the tables of `TRACED` are then handed out as well.
    """
    handed = HANDED_OUT if asked is None else (*HANDED_OUT, *TRACED)
    given = Given(
        rows=_given(scope),
        terms=terms_of(scope, asked),
        deleted=() if scope.deleted is None else tuple(row["topic"] for row in scope.deleted.collect()),
        steps=program((*handed, "breaks"), ROUNDS if asked is None else (*ROUNDS, "trace")),
    )
    found = _judged_once(scope, given, handed)
    # Only where a cause rests on two clocks the clean messages are asked about theirs, which takes a pass over all.
    apart = furthest_before_stamp(scope) if found.tables["comparing"] else None
    if apart is None:
        return found
    spark = found.breaks.files.sparkSession
    told = spark.range(1).select(F.lit(apart).cast("bigint").alias("micros"))
    return _judged_once(scope, replace(given, rows={**given.rows, "clean_clocks": told}), handed)


def _judged_once(scope: Scope, given: Given, handed: tuple[str, ...]) -> Judged:
    """Return what is handed out of what is given, judged once."""
    shape = shape_of(scope)
    spark = next(iter(given.rows.values())).sparkSession
    judge = partial(
        _judged,
        terms=given.terms,
        steps=given.steps,
        handed=handed,
        deleted=given.deleted,
        limits=_limits(spark),
        shape=shape,
    )
    rows = _together(given.rows, is_large=scope.is_large)
    rows = rows.repartition(1) if scope.is_large else rows.coalesce(1)
    kept = rows.mapInArrow(judge, HANDED).persist(StorageLevel.DISK_ONLY)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in handed}
    try:
        told = kept.filter(F.col("told").isNotNull()).select("rows_of", "told").collect()
    except Exception as error:
        explained = _explained(error, scope, _limits(spark)) if is_of_spark(error) else None
        if explained is None:
            raise
        raise explained from error
    for row in told:
        tables[row["rows_of"]].append(json.loads(row["told"]))
    breaks = Breaks(kept.filter(F.col("packed").isNotNull()), shape.schema)
    return Judged(tables, breaks, given)


def _explained(error: Exception, scope: Scope, limits: Limits) -> JudgingError | None:
    """Return what to do about a task that failed for want of memory or of a package, None where it failed otherwise."""
    text = str(error)
    if "No module named 'duckdb'" in text or "No module named 'tieout'" in text:
        return JudgingError(
            "the executors' Python lacks DuckDB or Tieout itself: expected the packages of requirements/runtime.txt "
            "beside Spark's workers, found none; install them there, or send them along: docs/how-to/deploy.md"
        )
    if "OutOfMemoryException" in text:
        limit = f"{settings.BUCKET_MB} = {limits.memory_bytes >> 20}"
        return JudgingError(
            f"the task that judges {scope.row_count} rows ran out of memory: expected {limit} megabytes to be enough, "
            f"and room to spill in {settings.spill_folder()}; raise {settings.BUCKET_MB}, with the executors' memory "
            "beside the heap (spark.executor.memoryOverhead), or judge shorter windows"
        )
    return None


def _limits(spark: SparkSession) -> Limits:
    """Return what a task may take: its cores, and on one machine all of them, for there it is alone."""
    here = _ONE_MACHINE.fullmatch(spark.conf.get("spark.master", None) or "")
    memory = settings.bucket_memory(is_here=here is not None)
    if here is None:
        return Limits(memory, int(spark.conf.get("spark.task.cpus", None) or 1))
    cores = os.cpu_count() or 1 if here["cores"] == "*" else int(here["cores"] or 1)
    return Limits(memory, cores)


def _given(scope: Scope) -> dict[str, DataFrame]:
    """Return the rows of all ledgers and what is told of clean messages, by the names of their tables."""
    ledgers = {f"evidence_{ledger.value}": found.rows for ledger, found in scope.evidence.items()}
    return ledgers if scope.clean is None else {**ledgers, **scope.clean.tables()}


def _together(given: Mapping[str, DataFrame], *, is_large: bool) -> DataFrame:
    """Return the rows of all tables as one frame, in which `rows_of` names the table.

    Of many rows the columns that nobody has stay behind: three of four, each of which costs as much as the others.
    """
    every = [
        rows.select(F.lit(table).alias("rows_of"), *readable(table, rows, nulls_in(rows) if is_large else ()))
        for table, rows in given.items()
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), every)


def readable(table: str, rows: DataFrame, left_out: Collection[str] = ()) -> list[Column]:
    """Return a table's columns with texts that DuckDB takes: of what is no UTF-8 its bytes, in hexadecimal.

    Spark's texts may hold any bytes, as those of a Parquet file do; DuckDB refuses every row beside such a one.
    """
    columns = []
    for name, kind in TABLES[table].items():
        if name not in rows.columns or name in left_out:
            continue
        column = F.col(name)
        if kind == "VARCHAR":
            column = F.when(F.is_valid_utf8(name), column).otherwise(F.concat(F.lit("\ufffd"), F.hex(name)))
        columns.append(column.alias(name))
    return columns


def _judged(
    batches: Iterable[pa.RecordBatch],
    *,
    terms: Terms,
    steps: Program,
    deleted: tuple[str, ...],
    limits: Limits,
    handed: tuple[str, ...],
    shape: Shape,
) -> Iterator[pa.RecordBatch]:
    """Judge the batches of one task, in the worker; spilled bytes lie in a folder of their own and go with it."""
    spill = Path(tempfile.mkdtemp(prefix="tieout-", dir=settings.spill_folder()))
    try:
        with connected(replace(limits, spill=spill)) as connection:
            prepared(connection, terms, deleted)
            for rows in _gathered(batches):
                for table in pc.unique(rows["rows_of"]).to_pylist():
                    appended(connection, table, rows.filter(pc.equal(rows["rows_of"], table)))
            run(connection, steps)
            yield from _handed_out(connection, handed, shape)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches together: to append few rows to a table costs DuckDB as much as to append very many."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _handed_out(
    connection: duckdb.DuckDBPyConnection, handed: tuple[str, ...], shape: Shape
) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(HANDED)
    rows = [
        {"rows_of": name, "told": json.dumps(row, default=_plain)}
        for name in handed
        for row in connection.table(name).to_arrow_table().to_pylist()
    ]
    yield from pa.Table.from_pylist(rows, schema=schema).to_batches(_ROWS_PER_BATCH)
    for part, file in packed(connection, shape):
        yield pa.RecordBatch.from_pylist([{"packed": file, **vars(part)}], schema=schema)


def _plain(value: object) -> int | str:
    """Return a number or a time as JSON takes it: a time in UTC, to the millisecond, as Spark writes it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    return int(value)  # type: ignore[call-overload,no-any-return]
