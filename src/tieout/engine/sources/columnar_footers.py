"""Checks the footers of columnar files whose pages are not inspected before Spark reads them.

These are ORC files, and files that are not on a file system of this machine. Java reads both, here first: if Spark
reads the footers, a type with thousands of levels overflows a thread's stack, and the run never ends.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tieout.engine.sources.expressions import is_classic
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.parquet_repeats import fault_of_rows

_MOST_LEVELS: Final = 100
"""The limit of pyarrow, and so of Parquet files on this machine."""
_TOO_DEEP: Final = f"expected types of at most {_MOST_LEVELS} levels, found more"
_INSTANT: Final = "timestamp with local time zone"
_NO_INSTANT: Final = (
    f"it has a column of the type {_INSTANT}, which Spark reads from no ORC file: write times in UTC without a zone, "
    "or a Parquet file"
)
_DOES_NOT_READ: Final = "its footer does not read; it is corrupt, or not what the contract says"
_QUOTED: Final = re.compile(r"`[^`]*`")


def with_footer_faults(spark: SparkSession, inputs: Inputs, file_format: str) -> Inputs:
    """Return the inputs; a file with too deep a schema in its footer has a fault."""
    if not is_classic(spark) or file_format not in ("orc", "parquet"):
        return inputs
    files = [
        replace(file, fault=_fault_of(spark, file, file_format))
        if file.fault is None and (file_format == "orc" or file.state is None)
        else file
        for file in inputs.files
    ]
    return Inputs(tuple(files), inputs.missing)


def levels_of(schema: str) -> int:
    """Return the nesting depth of a schema as ORC or Parquet prints it.

    >>> levels_of("struct<id:string,x:struct<`<<`:array<int>>>"), levels_of("message m { group a { int64 b; } }")
    (3, 2)
    """
    level = most = 0
    for bracket in re.findall(r"[<>{}]", _QUOTED.sub("", schema)):
        level += 1 if bracket in "<{" else -1
        most = max(most, level)
    return most


def _fault_of(spark: SparkSession, file: Input, file_format: str) -> str | None:
    jvm: Any = spark._jvm
    location = jvm.org.apache.hadoop.fs.Path(file.path)
    configuration = spark._jsc.hadoopConfiguration()
    try:
        if file_format == "orc":
            orc = jvm.org.apache.orc.OrcFile
            reader = orc.createReader(location, orc.readerOptions(configuration))
            schema = reader.getSchema().toString()
            rows = sum(stripe.getNumberOfRows() for stripe in reader.getStripes())
        else:
            parquet = jvm.org.apache.parquet.hadoop
            opened = parquet.util.HadoopInputFile.fromPath(location, configuration)
            reader = parquet.ParquetFileReader.open(opened)
            schema = reader.getFileMetaData().getSchema().toString()
            rows = reader.getRecordCount()
        reader.close()
    except Py4JJavaError:
        return _DOES_NOT_READ
    if file_format == "orc" and _INSTANT in _QUOTED.sub("", str(schema)):
        return _NO_INSTANT
    return _TOO_DEEP if levels_of(str(schema)) > _MOST_LEVELS else fault_of_rows(int(rows), file.size)
