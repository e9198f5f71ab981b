r"""Keeps numbers of JSON documents as their original text: `12`, `12.0` and `1.2E1` are different.

Spark's parser reads a number with a point or an exponent as a double, even if text is requested, and keeps 17 digits.
So the numbers of such a document are quoted before it is parsed, each with a mark that distinguishes it from a text.
Whole numbers are parsed exactly, and need this only in the output of `to_json`: there `5` must not become the text
`"5"`. The same holds for `true` and `false`.

If an expression computes with such a value, it is a double, as Spark would read it; `to_json` prints its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from tieout.engine.limits import EARLIEST_MILLIS, LATEST_MILLIS

MARKED: Final = "_tieout_marked_"
"""Prefix of a column that holds a document's field with its marks, for `to_json`.

It is an object with that one field, so that `struct(FIELD)` has the field's name.
"""
NUMBERS: Final = "tieout_numbers"
"""The metadata of a column with the paths of numbers that are kept as texts."""
_MARK: Final = "\ufdd0"
_NUMBER: Final = (
    r'\G((?:[^"0-9tfI-]++|-?Infinity|"(?:[^"\\]++|\\.)*+")*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false)(?=\s*+[,\]}])"
)
"""Anything except numbers and booleans, including whole texts, followed by a possible number or boolean."""
_QUOTED: Final = f'"{_MARK}([^"]*)"'
_DOUBLE: Final = r"^-?[0-9]+\.[0-9]+(E-?[0-9]+)?$"
"""A double as Spark prints it."""
_NESTED: Final = r"^[{\[]"
"""A value as Spark prints it that may contain a double."""
_INFINITE: Final = ('"Infinity"', '"-Infinity"')
_NONE: Final = ('"NaN"', *_INFINITE)
"""NaN and infinities as Spark prints them, for which JSON has no number."""

_LITERAL: Final = r"r?'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\""
_NAME: Final = r"(?:`(?:[^`]|``)++`|[A-Za-z_]\w*+)"
_TOKEN: Final = re.compile(
    rf"(?P<literal>{_LITERAL})|(?P<path>{_NAME}(?:\.{_NAME})*+)|(?P<other>.)", re.DOTALL
)
_ALIAS: Final = re.compile(r"\bas\s+$", re.IGNORECASE)
"""The text before a name that an expression assigns."""
_EQUALS: Final = r"(?:<=>|==?|!=|<>)"
_COMPUTING_BEHIND: Final = re.compile(
    rf"\s*(?:[-+*/%](?!>)|<(?!=>|>)|>|\bdiv\b|\b(?:not\s+)?between\b|(?:{_EQUALS}|\bin\s*\()\s*[-+.]?[0-9])",
    re.IGNORECASE,
)
_COMPUTING_BEFORE: Final = re.compile(
    rf"(?:[-+*/%]|<=?|(?<![-<=])>=?|\bdiv|[0-9]\s*{_EQUALS})\s*$", re.IGNORECASE
)
_BESIDE_TEXT: Final = re.compile(rf"\s*(?:{_EQUALS}|[<>]=?|\bin\s*\(|\bbetween\b)\s*r?['\"]", re.IGNORECASE)
_BEHIND_TEXT: Final = re.compile(rf"['\"]\s*(?:{_EQUALS}|[<>]=?)\s*$")
_OF_NUMBERS: Final = re.compile(
    r"\b(?:timestamp_seconds|abs|round|bround|floor|ceil|ceiling|mod|pmod|sum|sign|power|pow|sqrt)\s*\(\s*$",
    re.IGNORECASE,
)
_UNITS: Final = {"timestamp_seconds": 1, "timestamp_millis": 1000, "timestamp_micros": 1_000_000}
"""Functions that make a time of a number, with the units per second."""
_OF_WHOLE: Final = re.compile(r"\btimestamp_(?:millis|micros)\s*\(\s*$", re.IGNORECASE)


def marked(text: Column) -> Column:
    """Return the document with numbers, true and false quoted and marked; an invalid document stays invalid."""
    return F.regexp_replace(text, _NUMBER, f'$1"{_MARK}$2"')


def unmarked(text: Column) -> Column:
    """Return a value of a marked document as originally written; within an object, numbers are unquoted again."""
    without_mark = F.when(F.startswith(text, F.lit(_MARK)), F.substr(text, F.lit(2)))
    nested = F.when(F.contains(text, F.lit(f'"{_MARK}')), F.regexp_replace(text, _QUOTED, "$1"))
    return F.coalesce(without_mark, nested, text)


def is_rounded(value: Column, kind: DataType, line: Column) -> Column:
    """Return whether a text in the line's value may be Spark's rendering of a number with a point.

    A document within a text starts like an object, so lines with one are treated as having rounded numbers.
    """
    if isinstance(kind, StringType):
        is_object = value.rlike(_NESTED) & ~F.contains(line, F.lit('"{')) & ~F.contains(line, F.lit('"['))
        is_double = F.contains(value, F.lit(".")) & (value.rlike(_DOUBLE) | is_object)
        return F.coalesce(is_double | value.isin(*_INFINITE), F.lit(False))
    if isinstance(kind, ArrayType):
        return F.coalesce(
            F.exists(value, lambda element: is_rounded(element, kind.elementType, line)), F.lit(False)
        )
    is_any = F.lit(False)
    if isinstance(kind, StructType):
        for field in kind.fields:
            is_any = is_any | is_rounded(value.getField(field.name), field.dataType, line)
    return is_any


def is_no_number(value: Column) -> Column:
    """Return whether a text is Spark's rendering of NaN or an infinity."""
    return F.coalesce(value.isin(*_NONE), F.lit(False))


def is_inexact(kind: DataType) -> bool:
    """Return whether numbers of the type may print differently than they were written."""
    return isinstance(kind, DoubleType | FloatType) or (isinstance(kind, DecimalType) and kind.scale > 0)


def inexact_paths(kind: DataType, path: str = "") -> Iterator[str]:
    """Yield the dotted paths, also through arrays, to the numbers that may print differently than written."""
    if is_inexact(kind):
        yield path
    elif isinstance(kind, ArrayType):
        yield from inexact_paths(kind.elementType, path)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from inexact_paths(field.dataType, f"{path}.{field.name}" if path else field.name)


def printed_paths(kind: DataType, name: str, expressions: Sequence[str]) -> list[str]:
    """Return the paths, with a trailing dot, to the field's objects and arrays that an expression prints.

    Spark's types do not show the document's types: a field that is a number on one line and a text on another is a text
    on both. A field that is a text itself has an empty path.
    """
    paths = list(_nested_paths(kind, name))
    if not has_text(kind) or not any(_is_printed(name, paths, text) for text in expressions):
        return []
    return paths or [""]


def _nested_paths(kind: DataType, path: str) -> Iterator[str]:
    if isinstance(kind, ArrayType | StructType):
        yield f"{path}."
    if isinstance(kind, ArrayType):
        yield from _nested_paths(kind.elementType, path)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from _nested_paths(field.dataType, f"{path}.{field.name}")


def has_text(kind: DataType) -> bool:
    """Return whether the type is text, or contains text."""
    if isinstance(kind, StructType):
        return any(has_text(field.dataType) for field in kind.fields)
    return has_text(kind.elementType) if isinstance(kind, ArrayType) else isinstance(kind, StringType)


def _is_printed(name: str, paths: Sequence[str], text: str) -> bool:
    """Return whether the expression is such a path, or uses the field in `to_json`."""
    if f"{text.strip()}." in paths:
        return True
    until = -1
    for token in _TOKEN.finditer(text):
        if (token["path"] or "").lower() == "to_json":
            until = max(until, _closing(text, token.end()) or -1)
        elif token["path"] and token.start() < until and _head(token["path"]).lower() == name.lower():
            return True
    return False


def as_texts(kind: DataType) -> DataType:
    """Return the type with text instead of inexact numbers."""
    return _changed(kind, lambda leaf: StringType() if is_inexact(leaf) else leaf)


def all_texts(schema: StructType) -> StructType:
    """Return the schema with text for everything except objects and arrays."""
    fields = [(field.name, _changed(field.dataType, lambda _: StringType())) for field in schema.fields]
    return StructType([StructField(name, kind) for name, kind in fields])


def _changed(kind: DataType, change: Callable[[DataType], DataType]) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_changed(kind.elementType, change))
    if isinstance(kind, StructType):
        return StructType(
            [StructField(field.name, _changed(field.dataType, change)) for field in kind.fields]
        )
    return change(kind)


def is_other(value: Column, kind: DataType) -> Column:
    """Return whether a value parsed as marked texts differs from the type anywhere, such as text for a number."""
    if isinstance(kind, ArrayType):
        return F.coalesce(F.exists(value, lambda element: is_other(element, kind.elementType)), F.lit(False))
    is_any = F.lit(False)
    if isinstance(kind, StructType):
        for field in kind.fields:
            is_any = is_any | is_other(value.getField(field.name), field.dataType)
    elif isinstance(kind, BooleanType):
        is_any = value.isNotNull() & ~value.isin(f"{_MARK}true", f"{_MARK}false")
    elif isinstance(kind, NumericType):
        is_any = value.isNotNull() & ~F.startswith(value, F.lit(_MARK)) & ~value.isin(*_NONE)
    return F.coalesce(is_any, F.lit(False))


def converted(value: Column, kind: DataType, use: Callable[[Column], Column] = unmarked) -> Column:
    """Return a value parsed as marked texts, converted to the type; `use` is applied to its texts."""
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda element: converted(element, kind.elementType, use))
    if isinstance(kind, StructType):
        if not kind.fields:
            return value
        fields = [
            converted(value.getField(field.name), field.dataType, use).alias(field.name)
            for field in kind.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, LongType | DecimalType | BooleanType):
        return unmarked(value).try_cast(kind)
    return use(value)


def has_texts(name: str, expressions: Sequence[str]) -> bool:
    """Return whether an expression uses the field, or a part of it, except in computations.

    >>> has_texts("a", ["a.b > 1", "timestamp_seconds(a.t)"]), has_texts("a", ["concat(a.b, '')"])
    (False, True)
    """
    return any(
        not _is_computed(text, token)
        for text in expressions
        for token in _TOKEN.finditer(text)
        if token["path"] and _head(token["path"]).lower() == name.lower()
    )


_UNREAD: Final = "\N{REPLACEMENT CHARACTER}"
"""The character that Java reads for invalid bytes."""


def exact_fields(text: str) -> str:
    """Return the expression rewritten so that each `get_json_object` returns numbers as written in the document.

    It returns null for a text that is not valid UTF-8.

    Each `to_timestamp` without a format also accepts a comma before the fraction of a second, as in log files.

    >>> exact_fields("to_timestamp(t)")
    "coalesce(to_timestamp(t), to_timestamp(replace(t, ',', '.')))"
    """
    parts: list[str] = []
    done = 0
    for token in _TOKEN.finditer(text):
        name = (token["path"] or "").lower()
        if token.start() < done or name not in ("get_json_object", "to_timestamp", "try_to_timestamp"):
            continue
        end = _closing(text, token.end())
        arguments = [] if end is None else _arguments(text, text.index("(", token.end()) + 1, end)
        if end is None or len(arguments) != (2 if name == "get_json_object" else 1):
            continue
        inner = [exact_fields(argument) for argument in arguments]
        made = _field_in(*inner) if name == "get_json_object" else _time_of(name, *inner)
        parts += [text[done : token.start()], made]
        done = end + 1
    return "".join([*parts, text[done:]])


def bounded_times(text: str) -> str:
    """Return the expression rewritten so that a number outside of the calendar gives null instead of an error.

    Spark multiplies it without a check, in every mode: one such number would fail the job.

    >>> bounded_times("timestamp_seconds(t)")
    'timestamp_seconds(get(filter(array(t), v_ -> v_ between -62135596800 and 253402300799), 0))'
    """
    parts: list[str] = []
    done = 0
    for token in _TOKEN.finditer(text):
        unit = _UNITS.get((token["path"] or "").lower())
        end = None if unit is None or token.start() < done else _closing(text, token.end())
        if unit is None or end is None:
            continue
        start = text.index("(", token.end()) + 1
        low, high = EARLIEST_MILLIS * unit // 1000, ((LATEST_MILLIS + 1) * unit - 1) // 1000
        bounded = f"filter(array({bounded_times(text[start:end])}), v_ -> v_ between {low} and {high})"
        parts.append(f"{text[done:start]}get({bounded}, 0)")
        done = end
    return "".join([*parts, text[done:]])


def _field_in(document: str, path: str) -> str:
    quoted = f"""regexp_replace({document}, r'{_NUMBER}', r'$1"{_MARK}$2"')"""
    without_mark = f"""regexp_replace(get_json_object({quoted}, {path}), r'^{_MARK}', '')"""
    exact = f"""regexp_replace({without_mark}, r'{_QUOTED}', '$1')"""
    is_rounded = f"contains(f_, 'Infinity') or (contains(f_, '.') and f_ rlike r'{_DOUBLE}|{_NESTED}')"
    # Bytes that are no text are all read as one character: ids that differ in them alone would be one.
    is_unread = f"contains(f_, '{_UNREAD}') and not is_valid_utf8({document})"
    choice = f"case when {is_unread} then null when {is_rounded} then {exact} else f_ end"
    return f"get(transform(array(get_json_object({document}, {path})), f_ -> {choice}), 0)"


def _time_of(name: str, text: str) -> str:
    return f"coalesce({name}({text}), {name}(replace({text}, ',', '.')))"


def _arguments(text: str, start: int, end: int) -> list[str]:
    """Return the arguments between top-level commas."""
    depth, commas = 0, [start - 1]
    for token in _TOKEN.finditer(text, start, end):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token["other"] or "", 0)
        if depth == 0 and token["other"] == ",":
            commas.append(token.start())
    return [text[comma + 1 : next_comma] for comma, next_comma in pairwise([*commas, end])]


def rewritten(text: str, numbers: dict[str, list[str]]) -> str:
    """Return the expression rewritten for columns with numbers stored as texts at these paths.

    >>> rewritten("o.n > 5 and o.s = 'x' and to_json(o) <> o.n", {"o": ["o.n"]})[:39]
    "(+o.n) > 5 and o.s = 'x' and regexp_rep"
    """
    if not numbers:
        return text
    heads = {head.lower() for head in numbers}
    leaves = {leaf.lower() for paths in numbers.values() for leaf in paths}
    ends = {leaf.rpartition(".")[2] for leaf in leaves}
    parts: list[str] = []
    json_until = -1
    closing: dict[int, str] = {}
    for token in _TOKEN.finditer(text):
        path, start = token["path"], token.start()
        shown = token.group()
        if path and path.lower() == "to_json" and json_until < start:
            end = _closing(text, token.end())
            if end is not None:
                json_until = end
                closing[end] = f", r'{_QUOTED}', '$1')"
                shown = f"regexp_replace({path}"
        elif path and json_until > start:
            if _head(path).lower() in heads and not _ALIAS.search(text[:start]):
                shown = f"`{MARKED}{_head(path).lower()}`.{path}"
        elif path and _is_leaf(path, leaves, ends, heads) and _is_computed(text, token):
            is_whole = _OF_WHOLE.search(text[:start])
            shown = f"cast(cast({path} as decimal(38,6)) as bigint)" if is_whole else f"(+{path})"
        parts.append(shown + closing.pop(start, ""))
    return "".join(parts)


def _is_leaf(path: str, leaves: set[str], ends: set[str], heads: set[str]) -> bool:
    """Return whether the path leads to a number stored as text; for a lambda's variable by its last name."""
    unquoted = path.replace("`", "").lower()
    return unquoted in leaves or (
        "." in unquoted and _head(unquoted) not in heads and unquoted.rpartition(".")[2] in ends
    )


def _is_computed(text: str, token: re.Match[str]) -> bool:
    """Return whether the token is an operand of a numeric operator, or an argument of a numeric function."""
    before, behind = text[: token.start()], text[token.end() :]
    if _BESIDE_TEXT.match(behind) or _BEHIND_TEXT.search(before):
        return False
    if _OF_NUMBERS.search(before) or _OF_WHOLE.search(before):
        return True
    return _COMPUTING_BEHIND.match(behind) is not None or _COMPUTING_BEFORE.search(before) is not None


def _closing(text: str, start: int) -> int | None:
    """Return the position of the bracket that closes the one at `start`, or None."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token["other"] == "(":
            depth += 1
        elif token["other"] == ")":
            depth -= 1
            if depth == 0:
                return token.start()
        elif depth == 0 and not token.group().isspace():
            return None
    return None


def _raw_head(path: str) -> str:
    return path[: path.index("`", 1) + 1] if path.startswith("`") else path.partition(".")[0]


def _head(path: str) -> str:
    return _raw_head(path).strip("`")
