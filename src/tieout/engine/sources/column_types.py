"""Columns that have different types in the Parquet or ORC files of one ledger.

Programs choose types per file. Pandas writes integers for a column in one file, floating-point numbers if a value is
missing, and no type at all if all are. Spark merges such files only if that is lossless, and a union converts the
values of one file to the type of another: `'04'` in a union with whole numbers becomes 4, another id. So the types are
compared here, and each file is read with its own types. A column that becomes a canonical one as it is, is then read as
the text that each file would have given by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import orc, parquet
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tieout.engine.sources.casting import strict
from tieout.engine.sources.inputs import Input, Inputs, Recast
from tieout.engine.sources.paths import is_remote
from tieout.engine.sources.source import FAULT, Request
from tieout.engine.sources.value_faults import fault_of_text

_SHOWN: Final = 80
_WIDER: Final[tuple[tuple[tuple[type[DataType], ...], DataType], ...]] = (
    ((IntegralType,), LongType()),
    ((TimestampType, TimestampNTZType), TimestampType()),
)
"""Types that can be merged without changing a text or time: a time without a zone is in UTC everywhere."""
_WITH_TEXT: Final = (
    *(StringType, IntegralType, DecimalType, DoubleType, FloatType),
    *(TimestampType, TimestampNTZType, DateType),
)
"""Types of which each value has one text."""
_FLOATING: Final = "column {} has floating-point numbers; 101.0 is read as 101"


class TypesDifferError(Exception):
    """Files that were read by themselves have a column in types that are not to be converted to each other."""


def united(parts: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all parts; a column that a part lacks is null there.

    Raises:
        TypesDifferError: if two parts have a column in different types, which Spark would convert.
    """
    types: dict[str, DataType] = {}
    for part in parts:
        for field in part.schema:
            if not _is_alike(types.setdefault(field.name.lower(), field.dataType), field.dataType):
                raise TypesDifferError(field.name)
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)


def recast(rows: DataFrame, columns: Sequence[Recast]) -> DataFrame:
    """Return the rows of a file with these columns in their new types; a value without a text makes its row faulty."""
    source_names = {name.lower(): name for name in rows.columns}
    recast_columns, faults = {}, [F.col(FAULT)]
    for column in columns:
        name = source_names[column.name]
        value = F.col(f"`{name.replace('`', '``')}`")
        if not column.has_values:
            recast_columns[name] = F.lit(None).cast(column.kind)
        elif isinstance(column.kind, StringType):
            recast_columns[name] = strict(value, column.own, column.kind)
            faults.append(fault_of_text(value, recast_columns[name], column.own, name))
        else:
            recast_columns[name] = value.cast(column.kind)
    return rows.withColumns({**recast_columns, FAULT: F.coalesce(*faults)}) if recast_columns else rows


def by_recast(files: Sequence[Input]) -> dict[tuple[Recast, ...], list[Input]]:
    """Return the files grouped by the columns that get another type; usually one group without any."""
    groups: dict[tuple[Recast, ...], list[Input]] = defaultdict(list)
    for file in files:
        groups[file.recast].append(file)
    return groups


def with_one_type(
    inputs: Inputs,
    file_format: str,
    schema_of: Callable[[Input], StructType],
    request: Request,
) -> Inputs:
    """Return the inputs with `recast` set so that each column has one type, or a fault if that would change values.

    A column that the contract does not use is not read if its types differ. The type of a column without values is
    ignored. Whole numbers are read as the longest type, times with and without a zone as times, and a column that
    becomes a canonical one as it is as text.
    """
    types = {file: _types_of(schema_of(file)) for file in inputs.readable}
    changed: dict[Input, list[Recast]] = defaultdict(list)
    faults: dict[Input, str] = {}
    floating: dict[Input, str] = {}
    for name in sorted({name for file_types in types.values() for name in file_types}):
        kinds = {file: file_types[name] for file, file_types in types.items() if name in file_types}
        if all(_is_alike(kind, next(iter(kinds.values()))) for kind in kinds.values()):
            continue
        with_values = [
            file
            for file in kinds
            if request.uses(name) and name not in _columns_without_value(file, file_format)
        ]
        common = _common([kinds[file] for file in with_values], may_be_text=request.is_as_it_is(name))
        target = common or kinds[with_values[0]]
        for file in [file for file, kind in kinds.items() if not _is_alike(kind, target)]:
            if file in with_values and common is None:
                faults.setdefault(file, _fault(name, kinds[file], target, with_values[0]))
            else:
                changed[file].append(Recast(name, kinds[file], target, file in with_values))
                if file in with_values and isinstance(kinds[file], DoubleType | FloatType):
                    floating[file] = _FLOATING.format(name)
    files = [
        replace(
            file,
            fault=faults.get(file, file.fault),
            recast=tuple(changed[file]),
            note=floating.get(file, file.note),
        )
        for file in inputs.files
    ]
    return Inputs(tuple(files), inputs.missing)


def _fault(name: str, actual: DataType, target: DataType, other: Input) -> str:
    shown, expected = actual.simpleString()[:_SHOWN], target.simpleString()[:_SHOWN]
    return f"expected column {name} as {expected}, as in {other.name}, found {shown}"


def _types_of(schema: StructType) -> dict[str, DataType]:
    return {field.name.lower(): field.dataType for field in schema}


def _common(kinds: Sequence[DataType], *, may_be_text: bool = False) -> DataType | None:
    """Return a type to which all can be converted without changing values, or None; text if there are no types.

    With `may_be_text`, types of which each value has one text become texts.

    >>> _common([TimestampNTZType(), TimestampType()]), _common([LongType(), StringType()]), _common([])
    (TimestampType(), None, StringType())
    >>> _common([LongType(), DoubleType()], may_be_text=True)
    StringType()
    """
    if all(_is_alike(kind, kinds[0]) for kind in kinds):
        return kinds[0] if kinds else StringType()
    for narrow, wide in _WIDER:
        if all(isinstance(kind, narrow) for kind in kinds):
            return wide
    return StringType() if may_be_text and all(isinstance(kind, _WITH_TEXT) for kind in kinds) else None


def _is_alike(first: DataType, other: DataType) -> bool:
    """Return whether the types are the same; for objects, whether the types of their common fields are."""
    if isinstance(first, StructType) and isinstance(other, StructType):
        fields = _types_of(first)
        return all(_is_alike(fields.get(name, kind), kind) for name, kind in _types_of(other).items())
    return first.simpleString() == other.simpleString()


def _columns_without_value(file: Input, file_format: str) -> frozenset[str]:
    """Return the columns of a local file, in lower case, of which all values are null according to its footer."""
    if is_remote(file.path):
        return frozenset()
    try:
        with Path(file.path).open("rb") as opened:
            if file_format == "orc":
                found = orc.ORCFile(opened)
                return frozenset(name.lower() for name in found.schema.names if found.nrows == 0)
            return _parquet_columns_without_value(parquet.ParquetFile(opened))
    except (OSError, pa.ArrowException):
        return frozenset()


def _parquet_columns_without_value(file: Any) -> frozenset[str]:
    footer, schema = file.metadata, file.schema_arrow
    if footer.num_rows == 0:
        return frozenset(name.lower() for name in schema.names)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    untyped = {field.name.lower() for field in schema if pa.types.is_null(field.type)}
    return frozenset(untyped) | {
        footer.schema.column(place).path.lower()
        for place in range(footer.num_columns)
        if all(_is_null(group.column(place)) for group in groups)
    }


def _is_null(column: Any) -> bool:
    known = column.statistics
    return known is not None and known.has_null_count and known.null_count == column.num_values
