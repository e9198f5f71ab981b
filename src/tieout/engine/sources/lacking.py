"""Files that lack a content column which other files of their ledger have.

In such a file null means unknown; in a file that has the column null means no value. So each of its rows names the
columns that its file lacks. Docs: docs/reference/taxonomy.md, section 1 (Null contents).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow import orc, parquet
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.sources.inputs import Input
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.paths import is_remote, spark_path
from tieout.engine.sources.source import FILE, LACKS, TEXT, Request

_Named = TypeVar("_Named", bound=Hashable)
_NO_COLUMNS: Final = frozenset[str]()


def lacking_of(
    columns: Mapping[_Named, Iterable[str]], content_columns: frozenset[str]
) -> dict[_Named, frozenset[str]]:
    """Return per file which of the content columns it lacks and another file has, in lower case.

    >>> {name: sorted(lacks) for name, lacks in lacking_of({"a": ["id", "Hash"], "b": ["id"]}, {"hash"}).items()}
    {'a': [], 'b': ['hash']}
    """
    own = {name: frozenset(column.lower() for column in of_file) for name, of_file in columns.items()}
    shown = content_columns & _NO_COLUMNS.union(*own.values())
    return {name: shown - of_file for name, of_file in own.items()}


def with_lacking(rows: DataFrame, names: frozenset[str]) -> DataFrame:
    """Return rows of files that lack these columns, with `LACKS`; the same rows where they lack none."""
    return rows.withColumn(LACKS, _names(names)) if names else rows


def json_with_lacking(request: Request, files: Sequence[Input], rows: DataFrame) -> DataFrame:
    """Return rows of JSON lines with `LACKS`; a file has a column where any of its lines has the key, even as null."""
    content_columns = sorted(request.content_columns & {name.lower() for name in rows.columns})
    if len(files) < 2 or not content_columns:
        return rows
    keys = [F.bool_or(_has_key(name)).alias(name) for name in content_columns]
    found = lines_of(request.spark, files).groupBy(FILE).agg(*keys).collect()
    columns = {row[FILE]: [name for name in content_columns if row[name]] for row in found}
    lacking = {uri: names for uri, names in lacking_of(columns, frozenset(content_columns)).items() if names}
    groups = _grouped(lacking)
    if not groups:
        return rows
    named = [F.when(F.col(FILE).isin(*uris), _names(names)) for names, uris in groups.items()]
    return rows.withColumn(LACKS, F.coalesce(*named))


def _has_key(name: str) -> Column:
    """Return whether a line has the key, as most encoders write it, or in any other way."""
    return F.contains(TEXT, F.lit(f'"{name}":')) | F.col(TEXT).rlike(rf'(?i)"{re.escape(name)}"\s*:')


def columnar_groups(
    request: Request, file_format: str, files: Sequence[Input]
) -> list[tuple[frozenset[str], list[Input]]]:
    """Return Parquet or ORC files in groups that lack the same columns, each with these; mostly one that lacks none."""
    if len(files) < 2 or not request.content_columns:
        return [(_NO_COLUMNS, list(files))]
    columns = {file: _columns_of(request, file_format, file) for file in files}
    return list(_grouped(lacking_of(columns, request.content_columns)).items())


def _grouped(lacking: Mapping[_Named, frozenset[str]]) -> dict[frozenset[str], list[_Named]]:
    groups: dict[frozenset[str], list[_Named]] = {}
    for name, names in lacking.items():
        groups.setdefault(names, []).append(name)
    return groups


def _columns_of(request: Request, file_format: str, file: Input) -> Collection[str]:
    """Return the file's columns; all content columns if it cannot be opened: Spark reports the fault."""
    try:
        if is_remote(file.path):
            return request.spark.read.format(file_format).load(spark_path(file.path)).columns
        with Path(file.path).open("rb") as opened:
            schema = parquet.read_schema(opened) if file_format == "parquet" else orc.ORCFile(opened).schema
            return list(schema.names)
    except (OSError, pa.ArrowException, PySparkException, Py4JJavaError):
        return request.content_columns


def _names(names: frozenset[str]) -> Column:
    return F.array(*[F.lit(name) for name in sorted(names)])
