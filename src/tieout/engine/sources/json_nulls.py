"""JSON fields that are null on every line, and in which a contract names a field.

In an hour without updates `before` of a Debezium envelope is null on every line, and Spark takes it for a text. Then
`before.id`, which is null in that hour, was an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from tieout.engine.sources.named_columns import paths_of

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def with_null_objects(
    found: StructType, only_valued: Callable[[], StructType], expressions: Sequence[str]
) -> StructType:
    """Return the fields with an object instead of a text where a path leads into a field that is always null.

    `only_valued` gives the fields without those that are always null. It is asked only where a path leads into a text.

    >>> with_null_objects(StructType().add("a", StringType()), StructType, ["coalesce(a.b, '')"]).simpleString()
    'struct<a:struct<b:string>>'
    """
    paths = [path for text in expressions for path in _parts(text) if _leads_into_text(found, path)]
    if not paths:
        return found
    valued, kind = only_valued(), found
    for path in paths:
        kind = StructType([_field_into(field, valued, path) for field in kind])
    return kind


def _field_into(field: StructField, valued: DataType | None, path: Sequence[str]) -> StructField:
    """Return the field with objects for what the path names in it, where it is the first one of the path."""
    if field.name.lower() != path[0].lower():
        return field
    own = {one.name: one.dataType for one in valued} if isinstance(valued, StructType) else {}
    return StructField(field.name, _into(field.dataType, own.get(field.name), path[1:]))


def _parts(text: str) -> Iterator[list[str]]:
    """Give the parts of each path of an expression that has several.

    >>> [*_parts("coalesce(a.`$oid`, b)")]
    [['a', '$oid']]
    """
    for path in paths_of(text):
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(path)]
        if len(parts) > 1:
            yield parts


def _leads_into_text(kind: DataType, path: Sequence[str]) -> bool:
    if isinstance(kind, ArrayType):
        return _leads_into_text(kind.elementType, path)
    if isinstance(kind, StructType) and path:
        return any(_leads_into_text(field.dataType, path[1:]) for field in _named(kind, path[0]))
    return isinstance(kind, StringType) and bool(path)


def _into(kind: DataType, valued: DataType | None, path: Sequence[str]) -> DataType:
    """Return the type with objects for the parts of the path that lie in what has no value; `valued` is None there."""
    if not path:
        return kind
    if isinstance(kind, ArrayType):
        inner = valued.elementType if isinstance(valued, ArrayType) else None
        return ArrayType(_into(kind.elementType, inner, path))
    if isinstance(kind, StructType):
        fields = [_field_into(field, valued, path) for field in kind]
        is_new = valued is None and not _named(kind, path[0])
        return StructType([*fields, *([_new(path)] if is_new else [])])
    if valued is None and isinstance(kind, StringType):
        return StructType([_new(path)])
    return kind


def _new(path: Sequence[str]) -> StructField:
    return StructField(path[0], _into(StringType(), None, path[1:]))


def _named(kind: StructType, name: str) -> list[StructField]:
    return [field for field in kind if field.name.lower() == name.lower()]
