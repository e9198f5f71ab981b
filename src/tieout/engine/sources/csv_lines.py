"""Reads CSV files, each by its own header, and finds faults of headers and lines."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import compress
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.json_lines import CORRUPT, RECORD
from tieout.engine.sources.lacking import lacking_of, with_lacking
from tieout.engine.sources.lines import first_line, lines_of
from tieout.engine.sources.source import FAULT, HIDDEN, TEXT, Request, is_reserved

_LINE_BREAK: Final = (
    "a quote is not closed on its line: values with line breaks are read from JSON lines and Parquet"
)
_BACKSLASH: Final = (
    "a quote within quotes is not doubled and has a backslash before it, as Spark writes them: "
    "options: {escape: '\\'} reads it"
)
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(?P<sep>[^"]|\\t)"?\s*', re.IGNORECASE)
"""A line above the header that states the separator, which only Excel reads and some programs write for it."""
_MOST_COLUMNS: Final = 4096
"""The most columns of a header: each is a column of Spark's, and a file may have millions."""
_MOST_VALUES: Final = 20_000
"""The most values of a line; beyond 20,480 Spark's parser fails, and with it the whole job."""


def csv_rows(request: Request, files: Sequence[Input], options: Mapping[str, str]) -> DataFrame:
    """Return the rows of CSV files, each read by its own header, in any order of columns."""
    by_header: dict[str, list[Input]] = defaultdict(list)
    for file in files:
        header = _header_line(request.spark, file)
        if header.strip():
            by_header[header].append(file)
    if not by_header:
        return _csv_part(request, files, "", options)
    names = {header: _csv_names(header, options) for header in by_header}
    lacking = lacking_of(names, request.content_columns)
    parts = [
        with_lacking(_csv_part(request, group, header, options), lacking[header])
        for header, group in by_header.items()
    ]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)


def _csv_part(request: Request, files: Sequence[Input], header: str, options: Mapping[str, str]) -> DataFrame:
    lines = lines_of(request.spark, files)
    names = _csv_names(header, options)
    if not names:
        return lines.select(*HIDDEN[:-1], F.lit(None).cast("string").alias(FAULT))
    # A column without a name, such as pandas' index or the empty ones of a spreadsheet, is not read.
    is_read = [name != "" and not is_reserved(name) for name in names]
    data_columns = list(compress(names, is_read))
    # The other names are replaced: reserved ones of the file's own columns, too.
    unique_names = [
        name if is_own else f"{CORRUPT}_{place}"
        for place, (name, is_own) in enumerate(zip(names, is_read, strict=True))
    ]
    schema = StructType([StructField(name, StringType()) for name in (*unique_names, CORRUPT)])
    settings = {"escape": '"', **options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    data = lines.where(F.col(TEXT) != header)
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` STRING" for field in schema.fields)
    is_wide = _is_wide(settings)
    parsed = data.withColumn(RECORD, F.from_csv(F.when(~is_wide, F.col(TEXT)), ddl, settings))
    fault = (
        F.when(~F.is_valid_utf8(TEXT), "the line is not UTF-8")
        .when(is_wide, f"expected {len(names)} columns, found more than {_MOST_VALUES}")
        .when(_has_backslashes(settings), _BACKSLASH)
        .when(_is_left_open(settings), _LINE_BREAK)
        .when(F.col(f"{RECORD}.{CORRUPT}").isNotNull(), f"the line has not {len(names)} columns")
    )
    columns = [F.col(RECORD).getField(name).alias(name) for name in data_columns]
    return parsed.select(*columns, *HIDDEN[:-1], fault.alias(FAULT))


def with_header_faults(request: Request, inputs: Inputs, options: Mapping[str, str]) -> Inputs:
    """Return the inputs; a CSV file with an ambiguous header has a fault."""
    files = [
        file
        if file.fault
        else replace(file, fault=_fault_of_header(_header_line(request.spark, file), options))
        for file in inputs.files
    ]
    return Inputs(tuple(files), inputs.missing)


def _fault_of_header(header: str, options: Mapping[str, str]) -> str | None:
    """Return the fault of the header, None if all columns have different names.

    >>> _fault_of_header("id,at,ID", {})
    'expected a name of its own for each column of its header, found ID twice'
    >>> _fault_of_header(",id,at,,", {}) is None, _fault_of_header(",,", {})
    (True, "expected the columns' names in the first line, found none")
    >>> _fault_of_header("sep=;", {}).partition("found ")[2]
    "sep=;, which only Excel reads: take the line away, and say options: {sep: ';'}"
    """
    if not header.strip():
        return "expected a header line, which a CSV file without rows has as well, found an empty file"
    separator_line = _SEPARATOR_LINE.fullmatch(header)
    if separator_line is not None:
        return (
            f"expected the columns' names in the first line, found {header.strip()}, which only Excel reads: "
            f"take the line away, and say options: {{sep: '{separator_line['sep']}'}}"
        )
    if header.count(options.get("sep", ",")) >= _MOST_COLUMNS:
        return f"expected a header of at most {_MOST_COLUMNS} columns, found more"
    try:
        names = _csv_names(header, options)
    except csv.Error:
        return "expected a header of columns' names, found one that is too long for any"
    return _fault_of_names(names)


def _fault_of_names(names: Sequence[str]) -> str | None:
    """Return the fault of a header's names: none has a text, or one of them stands twice."""
    if not any(names):
        return "expected the columns' names in the first line, found none"
    lower_names: set[str] = set()
    for name in filter(None, names):
        if name.lower() in lower_names:
            return f"expected a name of its own for each column of its header, found {name[:80]} twice"
        lower_names.add(name.lower())
    return None


def _is_wide(options: Mapping[str, str]) -> Column:
    """Return whether a line has more values than Spark's parser accepts, without separators in quotes."""
    separator = F.lit(options.get("sep", ","))
    outside = _outside_quotes() if _has_usual_quotes(options) else F.col(TEXT)

    def count(text: Column) -> Column:
        return F.length(text) - F.length(F.replace(text, separator, F.lit("")))

    return F.when(F.length(TEXT) > _MOST_VALUES, count(outside) >= _MOST_VALUES).otherwise(F.lit(False))


def _is_left_open(options: Mapping[str, str]) -> Column:
    """Return whether a quote at the start of a value is not closed on its line; false with another quote character.

    Lines without a quote, which are most, are not searched by patterns.
    """
    if not _has_usual_quotes(options):
        return F.lit(False)
    separator = re.escape(options.get("sep", ","))
    return F.contains(TEXT, F.lit('"')) & _outside_quotes().rlike(rf'(?:^|{separator})\s*"')


def _has_backslashes(options: Mapping[str, str]) -> Column:
    """Return whether quotes escaped by a backslash leave a quoted value that does not end at its closing quote.

    Spark's parser returns such a value with all its quotes and backslashes, unlike any other program.
    """
    if not _has_usual_quotes(options):
        return F.lit(False)
    separator = re.escape(options.get("sep", ","))
    single = F.replace(TEXT, F.lit('""'), F.lit(""))
    unquoted = F.regexp_replace(single, rf'(?:^|(?<={separator}))\s*"[^"]*+"\s*(?={separator}|$)', "")
    return F.contains(TEXT, F.lit('\\"')) & unquoted.rlike(rf'(?:^|{separator})\s*"')


def _has_usual_quotes(options: Mapping[str, str]) -> bool:
    return options["escape"] == '"' and options.get("quote", '"') == '"'


def _outside_quotes() -> Column:
    """Return the line without its quoted values."""
    return F.regexp_replace(F.replace(TEXT, F.lit('""'), F.lit("")), '"[^"]*+"', "")


def _csv_names(header: str, options: Mapping[str, str]) -> list[str]:
    separator = options.get("sep", ",")
    names = next(csv.reader([header], delimiter=separator, quotechar=options.get("quote", '"')), [])
    return [name.strip() for name in names]


def _header_line(spark: SparkSession, file: Input) -> str:
    path = Path(file.path)
    if path.is_file():
        return first_line(path)
    head = lines_of(spark, [file]).select(TEXT).head()
    return "" if head is None else str(head[0])
