"""The columns of sampled rows, or the fields of JSON values in them: names, kinds, and values as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tieout.contracts.guessing import ColumnSample

Row = Mapping[str, Any]


def columns_of(rows: Iterable[Row]) -> tuple[ColumnSample, ...]:
    """Return every column that any row has, in the order of first occurrence, with its values as text."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, [])
            if value is not None:
                values[name].append(value)
    return tuple(ColumnSample(name, _kind(found), tuple(map(_text, found))) for name, found in values.items())


def fields_of(values: Iterable[str | None]) -> list[ColumnSample]:
    """Return the plain fields of the values that are JSON objects, each as Spark reads it from a record's value."""
    return [
        replace(column, kind="text", expression=_field(column.name))
        for column in columns_of(_objects(values))
    ]


def _objects(values: Iterable[str | None]) -> Iterator[Row]:
    """Yield the plain fields of the values that are JSON objects."""
    for value in values:
        try:
            found = json.loads(value or "null")
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield {k: v for k, v in found.items() if "'" not in k and not isinstance(v, dict | list)}


def _field(name: str) -> str:
    """Return a field of a record's value in Spark SQL.

    >>> print(_field("id"), _field("order id"))
    get_json_object(string(value), '$.id') get_json_object(string(value), "$['order id']")
    """
    path = f"'$.{name}'" if name.isidentifier() else f"\"$['{name}']\""
    return f"get_json_object(string(value), {path})"


def _kind(values: Iterable[Any]) -> str:
    """Return what the source holds: text, integer, number, flag, time, or other where it is nested or mixed."""
    kinds = {_kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else "text" if not kinds else "other"


def _kind_of(value: Any) -> str:
    for kind, name in (
        (bool, "flag"),
        (int, "integer"),
        (float, "number"),
        (datetime, "time"),
        (str, "text"),
    ):
        if isinstance(value, kind):
            return name
    return "other"


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
