"""JSON fields that are null on every line, although a contract uses a field in them.

In an hour without updates `before` of a Debezium envelope is null on every line, and Spark infers a text. Then
`before.id`, which should be null, would be an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from tieout.engine.sources.named_columns import paths_of

_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def with_null_objects(
    schema: StructType, only_valued: Callable[[], StructType], expressions: Sequence[str]
) -> StructType:
    """Return the schema with an object instead of a text for each field that is always null and that a path leads into.

    `only_valued` returns the schema without fields that are always null. It is called only if a path leads into a text.

    >>> with_null_objects(StructType().add("a", StringType()), StructType, ["coalesce(a.b, '')"]).simpleString()
    'struct<a:struct<b:string>>'
    """
    paths = [path for text in expressions for path in _parts(text) if _leads_into_text(schema, path)]
    if not paths:
        return schema
    schema_without_nulls, kind = only_valued(), schema
    for path in paths:
        kind = StructType([_field_into(field, schema_without_nulls, path) for field in kind])
    return kind


def _field_into(
    field: StructField, schema_without_nulls: DataType | None, path: Sequence[str]
) -> StructField:
    """Return the field with objects for the rest of the path, if it is the path's first part."""
    if field.name.lower() != path[0].lower():
        return field
    types = (
        {each.name: each.dataType for each in schema_without_nulls}
        if isinstance(schema_without_nulls, StructType)
        else {}
    )
    return StructField(field.name, _into(field.dataType, types.get(field.name), path[1:]))


def _parts(text: str) -> Iterator[list[str]]:
    """Yield the parts of each path of an expression that has several parts.

    >>> [*_parts("coalesce(a.`$oid`, b)")]
    [['a', '$oid']]
    """
    for path in paths_of(text):
        parts = [quoted.replace("``", "`") or unquoted for quoted, unquoted in _PART.findall(path)]
        if len(parts) > 1:
            yield parts


def _leads_into_text(kind: DataType, path: Sequence[str]) -> bool:
    if isinstance(kind, ArrayType):
        return _leads_into_text(kind.elementType, path)
    if isinstance(kind, StructType) and path:
        return any(_leads_into_text(field.dataType, path[1:]) for field in _fields_named(kind, path[0]))
    return isinstance(kind, StringType) and bool(path)


def _into(kind: DataType, schema_without_nulls: DataType | None, path: Sequence[str]) -> DataType:
    """Return the type with objects for the parts of the path that have no values (`schema_without_nulls` is None)."""
    if not path:
        return kind
    if isinstance(kind, ArrayType):
        inner = schema_without_nulls.elementType if isinstance(schema_without_nulls, ArrayType) else None
        return ArrayType(_into(kind.elementType, inner, path))
    if isinstance(kind, StructType):
        fields = [_field_into(field, schema_without_nulls, path) for field in kind]
        is_new = schema_without_nulls is None and not _fields_named(kind, path[0])
        return StructType([*fields, *([_new_field(path)] if is_new else [])])
    if schema_without_nulls is None and isinstance(kind, StringType):
        return StructType([_new_field(path)])
    return kind


def _new_field(path: Sequence[str]) -> StructField:
    return StructField(path[0], _into(StringType(), None, path[1:]))


def _fields_named(kind: StructType, name: str) -> list[StructField]:
    return [field for field in kind if field.name.lower() == name.lower()]
