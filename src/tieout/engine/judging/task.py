"""The Spark side of a bucket: rows of all ledgers go into one task, and come out as breaks and counts.

The kernel runs in an executor's Python worker, never on the driver, and is a pure function of its rows; Spark reads,
moves, repeats and writes. Rows of all ledgers are one frame, in which `rows_of` names the ledger, and every canonical
column stands once. Docs: `DataFrame.mapInArrow` in PySpark's reference.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, cast

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from tieout import settings
from tieout.engine.judging.bucket import (
    Limits,
    Program,
    appended,
    connected,
    prepared,
    program,
    run,
)
from tieout.engine.judging.canonical import COLUMNS
from tieout.engine.judging.numbers import HANDED_OUT, Tables
from tieout.engine.judging.terms import Terms, terms_of
from tieout.engine.proof import PROVING, evidence_type
from tieout.engine.scope import Scope
from tieout.model import POSITION_LEDGERS, Ledger

_ROWS_PER_BATCH: Final = 10_000
_POSITIONS: Final = "array<struct<topic:string,partition:int,offset:bigint>>"
_OF_BREAK: Final = {
    **dict.fromkeys(("break_id", "class"), "string"),
    "flags": "array<string>",
    **dict.fromkeys(("message_id", "producer_id", "topic"), "string"),
    "partition": "int",
    "offset": "bigint",
    "positions": _POSITIONS,
    **dict.fromkeys(("locus", "cause"), "string"),
    "admissible": "array<string>",
    **dict.fromkeys(("rule", "incident_id"), "string"),
    "evidence": evidence_type(PROVING),
    "kind": "string",
}
"""The columns of a break as a bucket hands them out, with their types in Spark."""


def handed_out() -> StructType:
    """Return the schema of what a bucket hands out: breaks, and rows of small tables as JSON in `told`."""
    breaks = cast(
        StructType, StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in _OF_BREAK.items()))
    )
    return StructType(
        [StructField("rows_of", StringType()), StructField("told", StringType()), *breaks.fields]
    )


def judged_by(scope: Scope, limits: Limits) -> tuple[Tables, DataFrame]:
    """Return the small tables and the breaks of evidence that fits one bucket, computed once and kept on disks.

    Of the evidence of a break only the ledgers that the contract declares are there.
    """
    deleted = () if scope.deleted is None else tuple(row["topic"] for row in scope.deleted.collect())
    schema = handed_out()
    judge = partial(
        _judged,
        terms=terms_of(scope),
        steps=program(),
        deleted=deleted,
        limits=limits,
        schema=to_arrow_schema(schema),
    )
    kept = _together(scope).coalesce(1).mapInArrow(judge, schema).persist(StorageLevel.DISK_ONLY)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in HANDED_OUT}
    for row in kept.filter(F.col("told").isNotNull()).select("rows_of", "told").collect():
        tables[row["rows_of"]].append(json.loads(row["told"]))
    breaks = kept.filter(F.col("told").isNull()).select(*_OF_BREAK)
    declared = [ledger for ledger in PROVING if ledger in scope.evidence]
    evidence = [F.col(f"evidence.{ledger.value}") for ledger in (*declared, *POSITION_LEDGERS)]
    return tables, breaks.withColumn("evidence", F.struct(*evidence))


def _together(scope: Scope) -> DataFrame:
    """Return the rows of all ledgers as one frame."""
    every = [
        found.rows.select(F.lit(ledger.value).alias("rows_of"), *_readable(ledger))
        for ledger, found in scope.evidence.items()
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), every)


def _readable(ledger: Ledger) -> list[Column]:
    """Return a ledger's columns with texts that DuckDB takes: of what is no UTF-8 its bytes, in hexadecimal.

    Spark's texts may hold any bytes, as those of a Parquet file do; DuckDB refuses every row beside such a one.
    """
    columns = []
    for name, kind in COLUMNS[ledger].items():
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
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Judge the batches of one task, in the worker; spilled bytes lie in a folder of their own and go with it."""
    spill = Path(tempfile.mkdtemp(prefix="tieout-", dir=settings.spill_folder()))
    try:
        with connected(replace(limits, spill=spill)) as connection:
            prepared(connection, terms, deleted)
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                for name in pc.unique(rows["rows_of"]).to_pylist():
                    appended(connection, Ledger(name), rows.filter(pc.equal(rows["rows_of"], name)))
            run(connection, steps)
            yield from _tables_of(connection, schema)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _tables_of(connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = [
        {"rows_of": name, "told": json.dumps(row, default=int)}
        for name in HANDED_OUT
        for row in connection.table(name).to_arrow_table().to_pylist()
    ]
    yield from pa.Table.from_pylist(rows, schema=schema).to_batches(_ROWS_PER_BATCH)
    columns = ", ".join(f'"{name}"' for name in _OF_BREAK)
    told = f"SELECT 'breaks' AS rows_of, NULL::VARCHAR AS told, {columns} FROM breaks"  # noqa: S608 - names of this module
    for batch in connection.sql(told).to_arrow_reader(_ROWS_PER_BATCH):
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
