"""Finds ids that are computed from floating-point numbers so large that two ids may have become one.

`cast(id as bigint)` of a column of doubles, or `cast(cast(id as double) as bigint)` of a text, gives whole digits that
look exact. From 2^53 on they may be those of another id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from tieout.engine.sources.named_columns import is_path, paths_in, without_literals

_CAST: Final = re.compile(
    r"\b(?:try_)?cast\s*\(\s*([\w.`]+)\s+as\s+(double|float|real)\s*\)|\b(double|float)\s*\(\s*([\w.`]+)\s*\)|"
    r"([\w.`]+)\s*::\s*(double|float|real)\b",
    re.IGNORECASE,
)
"""A column, or a field of one, that becomes a floating-point number."""
_EXACT: Final = {"double": 2.0**53, "float": 2.0**24, "real": 2.0**24}
REASON: Final = "message_id: computed from a floating-point number so large that it may be that of another id"


def is_inexact(source: DataFrame, text: str, names: Sequence[str]) -> Column:
    """Return whether an id's expression uses a floating-point number that may be another one in the row.

    A column that becomes the id unchanged is checked when it is cast. `names` are the source's columns.
    """
    if is_path(text):
        return F.lit(False)
    numbers = [
        F.coalesce(F.abs(F.expr(f"try_cast({path} as double)")) >= _EXACT[kind], F.lit(False))
        for path, kind in _numbers_in(source, text, names)
    ]
    return reduce(Column.__or__, numbers, F.lit(False))


def _numbers_in(source: DataFrame, text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each path that the expression uses as a floating-point number, with the number's type."""
    paths = sorted(paths_in(text, names))
    fields = source.select(*map(F.expr, paths)).schema.fields if paths else []
    for path, field in zip(paths, fields, strict=True):
        if isinstance(field.dataType, DoubleType | FloatType):
            yield path, field.dataType.simpleString()
    for found in _CAST.finditer(without_literals(text)):
        path = found[1] or found[4] or found[5]
        if paths_in(path, names):
            yield path, (found[2] or found[3] or found[6]).lower()
