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
from itertools import chain
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
from tieout.engine.judging.breaks import BREAKS, Breaks, Shape, packed, shape_of
from tieout.engine.judging.bucket import (
    ROUNDS,
    Limits,
    Program,
    appended,
    connected,
    gathered,
    prepared,
    program,
    run,
)
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.cutting import BUCKET, Cut, cut
from tieout.engine.judging.stages import SHARED, Stage, left, stages, take
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
BYTES_OF_ROW: Final = 1600
"""What a row of evidence takes at the widest point, the joined facts of its message: docs/explanation/scale.md."""
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
        steps=program((*handed, BREAKS), ROUNDS if asked is None else (*ROUNDS, "trace")),
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
    """Return what is handed out of what is given, judged once: in one bucket, or in several where one would spill."""
    shape = shape_of(scope)
    spark = next(iter(given.rows.values())).sparkSession
    cut_up = None
    if scope.row_count * BYTES_OF_ROW > _limits(spark).memory_bytes and handed == HANDED_OUT:
        share = _limits(spark, is_alone=False).memory_bytes
        cut_up = cut(scope, given.rows, max(1, share // BYTES_OF_ROW))
    limits = _limits(spark, is_alone=cut_up is None)
    try:
        if cut_up is None:
            kept = _in_one(scope, given, handed, shape, limits)
            told = kept
        else:
            kept, told = _in_several(given, handed, shape, limits, cut_up)
        small = told.filter(F.col("told").isNotNull()).select("rows_of", "told").collect()
    except Exception as error:
        explained = _explained(error, scope, _limits(spark)) if is_of_spark(error) else None
        if explained is None:
            raise
        raise explained from error
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in handed}
    for row in small:
        tables[row["rows_of"]].append(json.loads(row["told"]))
    files = kept.filter(F.col("packed").isNotNull() & F.col("rows_of").isNull())
    buckets = 1 if cut_up is None else cut_up.count
    return Judged(tables, Breaks(files, shape.schema, buckets=buckets), given)


def _in_one(scope: Scope, given: Given, handed: tuple[str, ...], shape: Shape, limits: Limits) -> DataFrame:
    """Return what one task hands out, the breaks with the small tables, kept on disks."""
    task = partial(
        _judged,
        stage=Stage(given.steps, ()),
        terms=given.terms,
        deleted=given.deleted,
        limits=limits,
        shape=shape,
        handed=handed,
    )
    rows = _together(given.rows, is_large=scope.is_large)
    rows = rows.repartition(1) if scope.is_large else rows.coalesce(1)
    return rows.mapInArrow(task, HANDED).persist(StorageLevel.DISK_ONLY)


def _in_several(
    given: Given, handed: tuple[str, ...], shape: Shape, limits: Limits, cut_up: Cut
) -> tuple[DataFrame, DataFrame]:
    """Return what the tasks of all buckets hand out, the breaks kept on disks and the small tables.

    What a bucket leaves to its next stage stays in its partition, so that only what is shared is exchanged.
    """
    first, second, last = stages(handed, BREAKS)
    task = partial(_judged, terms=given.terms, deleted=given.deleted, limits=limits)
    rows = _together(given.rows, is_large=True, cut_up=cut_up).repartitionById(cut_up.count, F.col(BUCKET))
    half = rows.drop(BUCKET).mapInArrow(partial(task, stage=first), HANDED).persist(StorageLevel.DISK_ONLY)
    is_shared = F.col("rows_of").isin(*SHARED)
    shared = tuple(
        (row["rows_of"], bytes(row["packed"]))
        for row in half.filter(is_shared).select("rows_of", "packed").collect()
    )
    judging = partial(task, stage=second, shared=shared, shape=shape)
    kept = half.filter(~is_shared).mapInArrow(judging, HANDED).persist(StorageLevel.DISK_ONLY)
    counted = kept.filter(F.col("rows_of").isNotNull()).repartition(1)
    return kept, counted.mapInArrow(partial(task, stage=last, handed=handed), HANDED)


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


def _limits(spark: SparkSession, *, is_alone: bool = True) -> Limits:
    """Return what a task may take: its cores, and on one machine all of them, or its share where it is not alone."""
    here = _ONE_MACHINE.fullmatch(spark.conf.get("spark.master", None) or "")
    memory = settings.bucket_memory(is_here=here is not None)
    if here is None:
        return Limits(memory, int(spark.conf.get("spark.task.cpus", None) or 1))
    cores = os.cpu_count() or 1 if here["cores"] == "*" else int(here["cores"] or 1)
    return Limits(memory, cores) if is_alone else Limits(memory // cores, 1)


def _given(scope: Scope) -> dict[str, DataFrame]:
    """Return the rows of all ledgers and what is told of clean messages, by the names of their tables."""
    ledgers = {f"evidence_{ledger.value}": found.rows for ledger, found in scope.evidence.items()}
    return ledgers if scope.clean is None else {**ledgers, **scope.clean.tables()}


def _together(given: Mapping[str, DataFrame], *, is_large: bool, cut_up: Cut | None = None) -> DataFrame:
    """Return the rows of all tables as one frame, in which `rows_of` names the table; `bucket` says where they go.

    Of many rows the columns that nobody has stay behind: three of four, each of which costs as much as the others.
    """
    every = []
    for table, rows in given.items():
        columns = readable(table, rows, nulls_in(rows) if is_large else ())
        found = rows if cut_up is None else cut_up.of(table, rows)
        bucket = [] if cut_up is None else [F.col(BUCKET)]
        every.append(found.select(F.lit(table).alias("rows_of"), *columns, *bucket))
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
    stage: Stage,
    terms: Terms,
    deleted: tuple[str, ...],
    limits: Limits,
    shared: tuple[tuple[str, bytes], ...] = (),
    shape: Shape | None = None,
    handed: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Run a stage on the batches of one task, in the worker: rows of the ledgers, or what the stage before has left.

    Yields what it leaves, the breaks if they have a shape, and the small tables that are `handed` out. Spilled bytes
    lie in a folder of their own and go with it.
    """
    spill = Path(tempfile.mkdtemp(prefix="tieout-", dir=settings.spill_folder()))
    schema = to_arrow_schema(HANDED)
    try:
        with connected(replace(limits, spill=spill)) as connection:
            prepared(connection, terms, deleted)
            _load(connection, batches)
            take(connection, shared)
            run(connection, stage.steps)
            for table, piece in left(connection, stage.leaves):
                yield pa.RecordBatch.from_pylist([{"rows_of": table, "packed": piece}], schema=schema)
            rows = [
                {"rows_of": name, "told": json.dumps(row, default=_plain)}
                for name in handed
                for row in connection.table(name).to_arrow_table().to_pylist()
            ]
            yield from pa.Table.from_pylist(rows, schema=schema).to_batches(_ROWS_PER_BATCH)
            for part, file in packed(connection, shape) if shape else ():
                yield pa.RecordBatch.from_pylist([{"packed": file, **vars(part)}], schema=schema)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _load(connection: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch]) -> None:
    """Append batches to their tables: pieces of a stage before as they come, rows of the ledgers many at a time."""
    first = next(iterated := iter(batches), None)
    if first is None:
        return
    if "packed" in first.schema.names:
        pieces = (row for batch in chain([first], iterated) for row in batch.to_pylist())
        take(connection, ((piece["rows_of"], piece["packed"]) for piece in pieces))
        return
    for held in gathered(chain([first], iterated), _BYTES_AT_ONCE):
        rows = pa.Table.from_batches(held)
        for table in pc.unique(rows["rows_of"]).to_pylist():
            appended(connection, table, rows.filter(pc.equal(rows["rows_of"], table)))


def _plain(value: object) -> int | str:
    """Return a number or a time as JSON takes it: a time in UTC, to the millisecond, as Spark writes it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    return int(value)  # type: ignore[call-overload,no-any-return]
