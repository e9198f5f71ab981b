"""The Spark side of a bucket: one task takes the rows of all ledgers and returns breaks and counts.

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
"""Of Arrow memory, which DuckDB's memory limit does not count."""
BYTES_OF_ROW: Final = 1600
"""Memory of a row of evidence at its peak, the joined facts of its message: docs/explanation/scale.md."""
_ONE_MACHINE: Final = re.compile(r"local(\[(?P<cores>\*|\d+)(,\d+)?\])?")
"""Masters whose tasks all run in the driver. Source: "Master URLs" of Spark's guide."""
HANDED: Final = StructType(
    [
        StructField("rows_of", StringType()),
        StructField("row_json", StringType()),
        StructField("packed", BinaryType()),
        StructField("is_non_message", BooleanType()),
        StructField("is_first", BooleanType()),
    ]
)
"""What a bucket hands out: rows of small tables as JSON in `row_json`, or a file of breaks and its part."""


@dataclass(frozen=True)
class JudgingInput:
    """The input of the task that judges: the rows of each table, the variables, deleted topics, and the SQL.

    The breaks and counts are a function of these alone.
    """

    rows: Mapping[str, DataFrame]
    terms: Terms
    deleted: tuple[str, ...]
    steps: Program


@dataclass(frozen=True)
class Judged:
    """The output of a task, the small tables and the breaks, with its input."""

    tables: Tables
    breaks: Breaks
    inputs: JudgingInput


def judged_by(scope: Scope, requested: Mapping[str, Any] | None = None) -> Judged:
    """Return the small tables and the breaks of a scope's evidence, computed once and kept on disks.

    `requested` are the variables of a trace: the tables of `TRACED` are then handed out as well.
    """
    handed = HANDED_OUT if requested is None else (*HANDED_OUT, *TRACED)
    inputs = JudgingInput(
        rows=_input_rows(scope),
        terms=terms_of(scope, requested),
        deleted=() if scope.deleted is None else tuple(row["topic"] for row in scope.deleted.collect()),
        steps=program((*handed, BREAKS), ROUNDS if requested is None else (*ROUNDS, "trace")),
    )
    judged = _judge_input(scope, inputs, handed)
    # The clocks of clean messages are read only where a cause rests on two clocks: it takes a pass over all messages.
    distance_micros = furthest_before_stamp(scope) if judged.tables["comparing"] else None
    if distance_micros is None:
        return judged
    spark = judged.breaks.files.sparkSession
    clocks = spark.range(1).select(F.lit(distance_micros).cast("bigint").alias("micros"))
    return _judge_input(scope, replace(inputs, rows={**inputs.rows, "clean_clocks": clocks}), handed)


def _judge_input(scope: Scope, inputs: JudgingInput, handed: tuple[str, ...]) -> Judged:
    """Return the input judged once: in one bucket, or in several where one would spill."""
    shape = shape_of(scope)
    spark = next(iter(inputs.rows.values())).sparkSession
    cut_up = None
    if scope.row_count * BYTES_OF_ROW > _limits(spark).memory_bytes and handed == HANDED_OUT:
        share = _limits(spark, is_alone=False).memory_bytes
        cut_up = cut(scope, inputs.rows, max(1, share // BYTES_OF_ROW))
    limits = _limits(spark, is_alone=cut_up is None)
    try:
        if cut_up is None:
            kept = _in_one(scope, inputs, handed, shape, limits)
            counted = kept
        else:
            kept, counted = _in_several(inputs, handed, shape, limits, cut_up)
        small = counted.filter(F.col("row_json").isNotNull()).select("rows_of", "row_json").collect()
    except Exception as error:
        explained = _explained(error, scope, _limits(spark)) if is_of_spark(error) else None
        if explained is None:
            raise
        raise explained from error
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in handed}
    for row in small:
        tables[row["rows_of"]].append(json.loads(row["row_json"]))
    files = kept.filter(F.col("packed").isNotNull() & F.col("rows_of").isNull())
    buckets = 1 if cut_up is None else cut_up.count
    return Judged(tables, Breaks(files, shape.schema, buckets=buckets), inputs)


def _in_one(
    scope: Scope, inputs: JudgingInput, handed: tuple[str, ...], shape: Shape, limits: Limits
) -> DataFrame:
    """Return the output of one task, the breaks with the small tables, kept on disk."""
    task = partial(
        _judged,
        stage=Stage(inputs.steps, ()),
        terms=inputs.terms,
        deleted=inputs.deleted,
        limits=limits,
        shape=shape,
        handed=handed,
    )
    rows = _as_one_frame(inputs.rows, is_large=scope.is_large)
    rows = rows.repartition(1) if scope.is_large else rows.coalesce(1)
    return rows.mapInArrow(task, HANDED).persist(StorageLevel.DISK_ONLY)


def _in_several(
    inputs: JudgingInput, handed: tuple[str, ...], shape: Shape, limits: Limits, cut_up: Cut
) -> tuple[DataFrame, DataFrame]:
    """Return what the tasks of all buckets hand out, the breaks kept on disks and the small tables.

    What a bucket leaves to its next stage stays in its partition, so that only what is shared is exchanged.
    """
    first, second, last = stages(handed, BREAKS)
    task = partial(_judged, terms=inputs.terms, deleted=inputs.deleted, limits=limits)
    rows = _as_one_frame(inputs.rows, is_large=True, cut_up=cut_up).repartitionById(
        cut_up.count, F.col(BUCKET)
    )
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
    local_master = _ONE_MACHINE.fullmatch(spark.conf.get("spark.master", None) or "")
    memory = settings.bucket_memory(is_here=local_master is not None)
    if local_master is None:
        return Limits(memory, int(spark.conf.get("spark.task.cpus", None) or 1))
    cores = os.cpu_count() or 1 if local_master["cores"] == "*" else int(local_master["cores"] or 1)
    return Limits(memory, cores) if is_alone else Limits(memory // cores, 1)


def _input_rows(scope: Scope) -> dict[str, DataFrame]:
    """Return the rows of all ledgers and the tables about clean messages, by table name."""
    ledgers = {f"evidence_{ledger.value}": evidence.rows for ledger, evidence in scope.evidence.items()}
    return ledgers if scope.clean is None else {**ledgers, **scope.clean.tables()}


def _as_one_frame(
    rows_by_table: Mapping[str, DataFrame], *, is_large: bool, cut_up: Cut | None = None
) -> DataFrame:
    """Return the rows of all tables as one frame, in which `rows_of` names the table, with their `bucket` if cut up.

    In a large window, columns that are null everywhere are left out: three of four, each as costly as the others.
    """
    frames = []
    for table, rows in rows_by_table.items():
        columns = readable(table, rows, nulls_in(rows) if is_large else ())
        placed = rows if cut_up is None else cut_up.of(table, rows)
        bucket = [] if cut_up is None else [F.col(BUCKET)]
        frames.append(placed.select(F.lit(table).alias("rows_of"), *columns, *bucket))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def readable(table: str, rows: DataFrame, left_out: Collection[str] = ()) -> list[Column]:
    """Return a table's columns; strings that are not valid UTF-8 are replaced by their bytes in hexadecimal.

    Strings in Spark may hold any bytes, as in a Parquet file; DuckDB refuses the whole batch with such a string.
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
    """Run a stage in the worker, on the batches of one task: rows of the ledgers, or tables that the last stage left.

    Yields the tables that it leaves, the small tables in `handed`, and the breaks if there is a shape. Spilled files
    lie in a folder of their own, which is removed at the end.
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
                {"rows_of": name, "row_json": json.dumps(row, default=_json_value)}
                for name in handed
                for row in connection.table(name).to_arrow_table().to_pylist()
            ]
            yield from pa.Table.from_pylist(rows, schema=schema).to_batches(_ROWS_PER_BATCH)
            for part, file in packed(connection, shape) if shape else ():
                yield pa.RecordBatch.from_pylist([{"packed": file, **vars(part)}], schema=schema)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _load(connection: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch]) -> None:
    """Append batches to their tables: pieces of the stage before one by one, rows of the ledgers many at a time."""
    first = next(iterated := iter(batches), None)
    if first is None:
        return
    if "packed" in first.schema.names:
        pieces = (row for batch in chain([first], iterated) for row in batch.to_pylist())
        take(connection, ((piece["rows_of"], piece["packed"]) for piece in pieces))
        return
    for buffered in gathered(chain([first], iterated), _BYTES_AT_ONCE):
        rows = pa.Table.from_batches(buffered)
        for table in pc.unique(rows["rows_of"]).to_pylist():
            appended(connection, table, rows.filter(pc.equal(rows["rows_of"], table)))


def _json_value(value: object) -> int | str:
    """Return a number or a time for JSON: a time in UTC, to the millisecond, as Spark writes it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    return int(value)  # type: ignore[call-overload,no-any-return]
