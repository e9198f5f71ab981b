"""Columns of Parquet that Spark refuses, and with them the file: times of nanoseconds or of a day, UUID and others.

Spark reads times of nanoseconds as plain numbers, where an option says so and the file's columns are given: then it
does not infer the columns. Columns of other types are left out of those. The files' own schemas tell which they are,
and one file of a ledger may have such a column where another does not.
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
from tieout.engine.sources.source import is_of_spark

AS_NUMBERS: Final = "spark.sql.legacy.parquet.nanosAsLong"
"""The setting by which Spark reads nanoseconds at all; it counts when the rows are read."""
_OF_NANOSECONDS: Final = re.compile(r"^  \w+ int64 (.+) \(TIMESTAMP\(NANOS,\w+\)\)", re.MULTILINE)
_OF_DAY: Final = '"time('
"""How Spark's JSON names a time of day: Spark knows the type, and reads no row that has one."""
_PARALLEL_FILES: Final = 8


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are times of nanoseconds, and which of them Spark refuses, each with its type.

    `all` are the others, and those of nanoseconds, as Spark's JSON; None where Spark reads the file as it is.
    """

    nanoseconds: frozenset[str] = frozenset()
    all: str | None = None
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def schema(self) -> StructType | None:
        """The columns that Spark is to be given, None where it finds them itself."""
        return None if self.all is None else StructType.fromJson(json.loads(self.all))

    @property
    def names(self) -> list[str]:
        """The columns that Spark reads, where it does not find them itself."""
        return [] if self.schema is None else self.schema.names


def by_columns(spark: SparkSession, files: Sequence[Input]) -> list[tuple[Columns, list[Input]]]:
    """Return the Parquet files in groups that can be read together; those without nanoseconds are one."""
    groups: dict[Columns, list[Input]] = defaultdict(list)
    with ThreadPoolExecutor(max_workers=_PARALLEL_FILES) as pool:
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
    # Rounded down; to take the rest off first would leave the numbers that Spark has.
    micros = {name: f"`{text}` div 1000 - if(`{text}` % 1000 < 0, 1, 0)" for name, text in quoted.items()}
    return rows.withColumns({name: F.timestamp_micros(F.expr(text)) for name, text in micros.items()})


def _columns_of(spark: SparkSession, file: Input) -> Columns:
    """Return the columns of interest; none if the file has no schema: Spark reports what is wrong."""
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    try:
        path = jvm.org.apache.hadoop.fs.Path(file.copy or file.path)
        opened = parquet.util.HadoopInputFile.fromPath(path, spark._jsc.hadoopConfiguration())
        reader = parquet.ParquetFileReader.open(opened)
    except Py4JJavaError:
        return Columns()
    try:
        schema = reader.getFileMetaData().getSchema()
    finally:
        reader.close()
    names = nanosecond_columns(str(schema.toString()))
    converters = jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = converters.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    refused: tuple[tuple[str, str], ...] = ()
    try:
        found = str(converter.convert(schema).json())
    except Exception as error:
        if not is_of_spark(error):
            raise
        found, refused = _without_refused(jvm, schema, converter)
    else:
        if _OF_DAY in found:
            found, refused = _without_refused(jvm, schema, converter)
    return Columns(names, found, refused) if names or refused else Columns()


def _without_refused(jvm: Any, schema: Any, converter: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the columns that Spark reads, as its JSON, and each of the others with its type."""
    fields: list[dict[str, Any]] = []
    refused: list[tuple[str, str]] = []
    for field in schema.getFields():
        alone = jvm.java.util.ArrayList()
        alone.add(field)
        try:
            one = converter.convert(jvm.org.apache.parquet.schema.MessageType(schema.getName(), alone))
        except Exception as error:
            if not is_of_spark(error):
                raise
            refused.append((field.getName(), _type_of(str(field))))
            continue
        if _OF_DAY in str(one.json()):
            refused.append((field.getName(), _type_of(str(field))))
        else:
            fields += json.loads(str(one.json()))["fields"]
    return json.dumps({"type": "struct", "fields": fields}), tuple(refused)


def _type_of(field: str) -> str:
    """Return the type of a field, as Parquet prints it.

    >>> _type_of("optional fixed_len_byte_array(16) batch (UUID)"), _type_of("optional int64 at (TIME(NANOS,true))")
    ('UUID', 'TIME(NANOS,true)')
    """
    found = re.fullmatch(r"\S+ \S+ .+ \((.+)\)", field)
    return found[1] if found else " ".join(field.split())
