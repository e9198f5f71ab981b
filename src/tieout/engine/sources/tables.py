"""The reader of the formats `delta` and `iceberg`: a table's folder, as the snapshot that is current when it is read.

The folder holds files of earlier versions as well, and rows that are marked as deleted; the table's log says what
counts. The snapshot is chosen once and named in every later read, so concurrent writers change nothing.

Source: "Table batch reads and writes" of Delta Lake; "Spark Queries" and `HadoopTables` of Apache Iceberg.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout import settings
from tieout.contracts import FilesSource
from tieout.engine.session import DELTA_EXTENSION, has_class, local_session, stop
from tieout.engine.sources.lacking import lacking_of, with_lacking
from tieout.engine.sources.paths import is_remote, name_of
from tieout.engine.sources.source import (
    BLOCK,
    FAULT,
    FILE,
    HIDDEN,
    ROW,
    TEXT,
    Reading,
    Request,
    is_of_spark,
    is_reserved,
    within_reach,
)
from tieout.engine.table_folders import LOGS, METADATA
from tieout.errors import SourceError, SourceUnreachableError
from tieout.model import Ledger

DELTA: Final = "delta"
CALLED: Final = {DELTA: "Delta", "iceberg": "Iceberg"}
"""The display names of the formats."""
_CLASSES: Final = {
    DELTA: "io.delta.tables.DeltaTable",
    "iceberg": "org.apache.iceberg.spark.source.IcebergSource",
}
_NO_TABLE: Final = "org.apache.iceberg.exceptions.NoSuchTableException"
_UNREADABLE: Final = "does not read through; a file of its snapshot is missing or corrupt"
_SHOWN: Final = 200


@dataclass(frozen=True)
class _Snapshot:
    """One snapshot of a table: its number, or None before the first, its name, and its size.

    `as_of` is the time of a state that the contract names itself, None where it is the current one.
    """

    version: int | None
    label: str
    size: int
    as_of: datetime | None = None


@dataclass(frozen=True)
class _Table:
    """A table behind a path of the contract: its snapshot, or why it cannot be read."""

    path: str
    name: str
    snapshot: _Snapshot | None = None
    fault: str | None = None

    @property
    def digest(self) -> str:
        """The snapshot that was read, as one line."""
        return f"{self.snapshot.label if self.snapshot else 'unread'}  {self.name}"


def read_tables(spec: FilesSource, request: Request) -> Reading:
    """Return the rows of the current snapshot of each table; a table that cannot be read is counted and named.

    Raises:
        SourceError: where Spark lacks the format's jars, and for a path that is there and no table of the format.
        SourceUnreachableError: where the file system of a path does not answer.
    """
    require_jars(request.spark, spec.format, request.place)
    tables: dict[str, _Table] = {}
    missing = []
    for path in spec.path:
        full = path if is_remote(path) else os.path.normpath(request.base_dir.absolute() / path)
        name = path if is_remote(path) else name_of(Path(full), request.base_dir)
        if not _exists(request, full):
            _refuse_wildcards(request, path)
            missing.append(f"{path}: no such table")
        elif full not in tables:
            tables[full] = _opened(spec.format, request, _Table(full, name))
    return _reading(spec.format, request, tuple(tables.values()), tuple(missing))


def first_rows(spec: FilesSource, place: str, limit: int) -> list[dict[str, Any]]:
    """Return some rows of an unknown table as a sample; runs its own Spark.

    Raises: what `first_rows_in` raises.
    """
    spark = local_session("tieout", settings.jars({spec.format}))
    try:
        return first_rows_in(spark, spec, place, limit)
    finally:
        stop(spark)


def first_rows_in(spark: SparkSession, spec: FilesSource, place: str, limit: int) -> list[dict[str, Any]]:
    """Return some rows of the table's current snapshot, with times in UTC; `place` is the user's name for it.

    Raises:
        SourceError: where Spark lacks the format's jars, or there is no such table, or none that can be read.
    """
    request = Request(spark, Ledger.DELIVERED, Path(), datetime.now(UTC))
    try:
        reading = read_tables(spec, request)
    except SourceError as error:
        raise SourceError(f"{place}: {str(error).partition(': ')[2]}") from error
    if reading.rows is None:
        raise SourceError(f"{place}: {'; '.join(reading.notes)}")
    try:
        found: list[dict[str, Any]] = reading.rows.drop(*HIDDEN).limit(limit).toArrow().to_pylist()
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise SourceError(f"{place}: {_UNREADABLE}") from error
    return found


def require_jars(spark: SparkSession, table_format: str, place: str) -> None:
    """Refuse a session that cannot read tables of the format.

    Raises:
        SourceError: where its jars are not among Spark's, or the session was not set up for them.
    """
    if not has_class(spark, _CLASSES[table_format]):
        raise SourceError(
            f"{place}: reading format: {table_format} needs {CALLED[table_format]}'s jars for Spark, which are not "
            "among Spark's: fetch them with `make jars` (needs Maven), or name a folder that has them with TIEOUT_JARS"
        )
    if table_format == DELTA and DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        raise SourceError(
            f"{place}: reading format: delta needs spark.sql.extensions to have {DELTA_EXTENSION}, found a session "
            "without it: it is set where TIEOUT_JARS has Delta's jars, which `make jars` fetches (needs Maven)"
        )


def _refuse_wildcards(request: Request, path: str) -> None:
    if set("*?[{") & set(path):
        raise SourceError(
            f"{request.place}.path: expected the folder of a table, found the pattern {path}; "
            "name the folder, or list several"
        )


def _exists(request: Request, path: str) -> bool:
    if not is_remote(path):
        return Path(path).exists()
    jvm: Any = request.spark._jvm
    location = jvm.org.apache.hadoop.fs.Path(path)
    try:
        found: bool = location.getFileSystem(request.spark._jsc.hadoopConfiguration()).exists(location)
    except Py4JJavaError as error:
        raise SourceUnreachableError(
            f"{request.place}: {path} cannot be looked at: {_reason(error)}"
        ) from None
    return found


def _opened(table_format: str, request: Request, table: _Table) -> _Table:
    """Return the table with its current snapshot, or with the reason why its log cannot be read.

    Raises:
        SourceError: where it is no table of the format.
    """
    is_state = table_format != DELTA and METADATA in Path(table.path).name
    if not is_state and not _exists(request, f"{table.path}/{LOGS[table_format]}"):
        raise SourceError(
            f"{request.place}.path: expected a table's folder, found {table.name} without a folder "
            f"{LOGS[table_format]}: no {CALLED[table_format]} table; name the table's own folder, or another format"
        )
    try:
        opened = _delta(request.spark, table.path) if table_format == DELTA else _iceberg(request, table)
    except Exception as error:
        if not is_of_spark(error):
            raise
        return replace(table, fault=f"the table cannot be opened: {_reason(error)}")
    return replace(table, snapshot=opened)


def _delta(spark: SparkSession, path: str) -> _Snapshot:
    jvm: Any = spark._jvm
    table = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, path)
    (newest,) = DataFrame(table.history(1), spark).select("version").collect()
    (about,) = DataFrame(table.detail(), spark).select("id", "sizeInBytes").collect()
    label = f"delta-table:{about['id']} version:{newest['version']}"
    return _Snapshot(newest["version"], label, about["sizeInBytes"] or 0)


def _iceberg(request: Request, table: _Table) -> _Snapshot:
    spark = request.spark
    jvm: Any = spark._jvm
    try:
        found = jvm.org.apache.iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration()).load(table.path)
        snapshot, uuid = found.currentSnapshot(), found.uuid().toString()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != _NO_TABLE:
            raise
        raise SourceError(
            f"{request.place}.path: {table.name}/metadata does not say which snapshot is current, because the table's "
            f"catalog does: name the metadata file that it gives, such as {table.name}/metadata/00007-….metadata.json"
        ) from None
    as_of = None
    if METADATA in Path(table.path).name:
        as_of = datetime.fromtimestamp(found.operations().current().lastUpdatedMillis() / 1000, UTC)
    if snapshot is None:
        return _Snapshot(None, f"iceberg-table:{uuid} snapshot:none", 0, as_of)
    label = f"iceberg-table:{uuid} snapshot:{snapshot.snapshotId()}"
    size = int(snapshot.summary().get("total-files-size") or 0)
    return _Snapshot(snapshot.snapshotId(), label, size, as_of)


def _reading(
    table_format: str, request: Request, tables: Sequence[_Table], missing: tuple[str, ...]
) -> Reading:
    faults = (*(f"{table.name}: {table.fault}" for table in tables if table.fault is not None), *missing)
    readable = [
        (table, table.snapshot) for table in tables if table.fault is None and table.snapshot is not None
    ]
    try:
        parts = {table.path: _rows(request, table_format, table, state) for table, state in readable}
        lacking = lacking_of({path: part.columns for path, part in parts.items()}, request.content_columns)
        complete_parts = [with_lacking(part, lacking[path]) for path, part in parts.items()]
        rows = (
            reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), complete_parts)
            if complete_parts
            else None
        )
    except PySparkException as error:
        raise SourceError(f"{request.place}: the tables cannot be read together: {_reason(error)}") from error
    return Reading(
        rows=rows,
        is_present=bool(tables),
        read_at=min((one.as_of for _, one in readable if one.as_of is not None), default=request.now),
        size=sum(snapshot.size for _, snapshot in readable),
        digests=tuple(table.digest for table in tables),
        unparsed_inputs=len(faults),
        notes=faults,
        reread=lambda: _reading(
            table_format, request, tuple(_checked(table_format, request, tables)), missing
        ),
        is_columnar=True,
    )


def _rows(request: Request, table_format: str, table: _Table, snapshot: _Snapshot) -> DataFrame:
    """Return the snapshot's rows with `HIDDEN`; of a table that has no snapshot yet, none."""
    reader = request.spark.read.format(table_format)
    if snapshot.version is not None:
        reader = reader.option("versionAsOf", snapshot.version)
    source = reader.load(table.path)
    if snapshot.version is None:
        source = source.where(F.lit(False))
    file, block = F.col("_file"), F.lit(None)
    if table_format == DELTA:
        file, block = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    return within_reach(source, request.reach).select(
        *(F.col(f"`{name.replace('`', '``')}`") for name in source.columns if not is_reserved(name)),
        file.alias(FILE),
        F.lit(None).cast("string").alias(TEXT),
        block.cast("bigint").alias(BLOCK),
        F.monotonically_increasing_id().cast("bigint").alias(ROW),
        F.lit(None).cast("string").alias(FAULT),
    )


def _checked(table_format: str, request: Request, tables: Sequence[_Table]) -> Iterator[_Table]:
    """Yield the tables after reading each completely by itself; those that Spark fails on have a fault."""
    for table in tables:
        if table.snapshot is None or table.fault is not None:
            yield table
            continue
        try:
            rows = _rows(request, table_format, table, table.snapshot)
            rows.write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not is_of_spark(error):
                raise
            yield replace(table, fault=_UNREADABLE)
        else:
            yield table


def _reason(error: Exception) -> str:
    """Return the first line of what Spark or Java says of the failure, without the code that Spark ends it with."""
    text: str | None = None
    if isinstance(error, PySparkException):
        text = error.getMessage()
    elif isinstance(error, Py4JJavaError):
        text = error.java_exception.getMessage()
    lines = (text or type(error).__name__).strip().splitlines()
    return " ".join(lines[0].split())[:_SHOWN]
