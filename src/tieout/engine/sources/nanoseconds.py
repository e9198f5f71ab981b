"""Times of nanoseconds in Parquet, as pandas and Arrow write them: Spark knows microseconds, and refuses such a file.

Spark reads such a column as the number that it is, where it is told to and given the file's columns: it does not look
for them itself then. Which columns are times is known from the files' own schemas, and one file of a ledger may have
them where another does not.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tieout.engine.sources.inputs import Input

AS_NUMBERS: Final = "spark.sql.legacy.parquet.nanosAsLong"
"""The setting by which Spark reads nanoseconds at all; it counts when the rows are read."""
_OF_NANOSECONDS: Final = re.compile(r"^  \w+ int64 (.+) \(TIMESTAMP\(NANOS,\w+\)\)", re.MULTILINE)
_AT_ONCE: Final = 8


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are times of nanoseconds, and, where some are, all its columns as Spark's JSON."""

    nanoseconds: frozenset[str] = frozenset()
    all: str | None = None

    @property
    def schema(self) -> StructType | None:
        """The columns that Spark is to be given, None where it finds them itself."""
        return None if self.all is None else StructType.fromJson(json.loads(self.all))


def by_columns(spark: SparkSession, files: Sequence[Input]) -> list[tuple[Columns, list[Input]]]:
    """Return the Parquet files in groups that can be read together; those without nanoseconds are one."""
    groups: dict[Columns, list[Input]] = defaultdict(list)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for file, columns in zip(files, pool.map(lambda file: _columns_of(spark, file), files), strict=True):
            groups[columns].append(file)
    return list(groups.items())


def nanosecond_columns(schema: str) -> frozenset[str]:
    r"""Return the top columns of a Parquet schema, as Parquet prints it, that are times of nanoseconds.

    >>> nanosecond_columns("message schema {\n  optional int64 at (TIMESTAMP(NANOS,true));\n  optional int64 n;\n}\n")
    frozenset({'at'})
    """
    return frozenset(_OF_NANOSECONDS.findall(schema))


def in_microseconds(rows: DataFrame, names: frozenset[str]) -> DataFrame:
    """Return the rows with these columns, read as numbers of nanoseconds, as times, cut to microseconds."""
    quoted = {name: name.replace("`", "``") for name in sorted(names)}
    micros = {name: f"(`{text}` - pmod(`{text}`, 1000)) div 1000" for name, text in quoted.items()}
    return rows.withColumns({name: F.timestamp_micros(F.expr(text)) for name, text in micros.items()})


def _columns_of(spark: SparkSession, file: Input) -> Columns:
    """Return the file's columns as far as they matter; none of a file that has no schema: Spark says what is wrong."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    try:
        path = jvm.org.apache.hadoop.fs.Path(file.path)
        opened = parquet.util.HadoopInputFile.fromPath(path, spark._jsc.hadoopConfiguration())
        reader = parquet.ParquetFileReader.open(opened)
    except Py4JJavaError:
        return Columns()
    try:
        schema = reader.getFileMetaData().getSchema()
    finally:
        reader.close()
    names = nanosecond_columns(str(schema.toString()))
    if not names:
        return Columns()
    converters = jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = converters.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    return Columns(names, str(converter.convert(schema).json()))
