"""The source's columns that the contract's expressions name, and those that become canonical ones unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql.types import StringType

from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.ledger import SCHEMAS
from tieout.model import Ledger

QUOTED_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"")
_NAME: Final = r"(?:`(?:[^`]|``)++`|[A-Za-z_]\w*+)"
NAMED_PATH: Final = rf"{_NAME}(?:\.{_NAME})*+(?!\s*\()"
"""A column, or a field of one, and no function."""
_PATH: Final = re.compile(NAMED_PATH)


def text_columns(ledger: Ledger, columns: Mapping[str, str]) -> frozenset[str]:
    """Return the source columns that become canonical ones as they are.

    >>> names = text_columns(Ledger.FILTERED, {"message_id": "id", "at": "to_timestamp(t)"})
    >>> "id" in names, "message_id" in names, "t" in names, "reason" in names
    (True, False, False, True)
    """
    used = {path for text in columns.values() if not is_path(text) for path in heads_in(text)}
    column_names = {plain_column(name, columns) for name in SCHEMAS[ledger].names}
    return frozenset(name for name in column_names if name is not None and name not in used)


def number_columns(ledger: Ledger, columns: Mapping[str, str]) -> frozenset[str]:
    """Return the source columns that become canonical ones as they are, and none that is text.

    >>> sorted(number_columns(Ledger.FILTERED, {"message_id": "id", "at": "id"}))
    ['offset', 'partition']
    """
    column_names = {True: set[str | None](), False: set[str | None]()}
    for field in SCHEMAS[ledger].fields:
        column_names[isinstance(field.dataType, StringType)].add(plain_column(field.name, columns))
    return frozenset(name for name in column_names[False] - column_names[True] if name is not None)


def plain_column(name: str, columns: Mapping[str, str]) -> str | None:
    """Return the source's column that becomes the canonical one as it is, None where an expression makes it.

    >>> plain_column("at", {"at": "`when`"}), plain_column("at", {}), plain_column("at", {"at": "f(x)"})
    ('when', 'at', None)
    """
    text = columns.get(name, name).strip()
    return text.strip("`") if is_path(text) and "." not in text else None


def content_columns(ledger: Ledger, columns: Mapping[str, str]) -> frozenset[str]:
    """Return the source's columns, in lower case, that what a message carries is made of.

    >>> sorted(content_columns(Ledger.PRODUCED, {"payload_hash": "sha2(body, 256)"}))
    ['body', 'header_hash', 'key_hash', 'record_timestamp']
    """
    named = set(CONTENT_COLUMNS) & set(SCHEMAS[ledger].names)
    if "content" not in SCHEMAS[ledger].names:
        return frozenset()
    return frozenset(head.lower() for name in named for head in heads_in(columns.get(name, name)))


def paths_in(text: str, columns: Iterable[str]) -> set[str]:
    """Return those of a source's columns, and their fields, that an expression names, in lower case.

    >>> sorted(paths_in("concat(cast(Doc.body as binary), `id`, 'x.y')", ["doc", "id", "x"]))
    ['doc.body', 'id']
    """
    own = {name.lower() for name in columns}
    return {path.replace("`", "").lower() for path in paths_of(text) if head_of(path).lower() in own}


def is_path(text: str) -> bool:
    """Return whether an expression is a column, or a field of one, and nothing else."""
    return _PATH.fullmatch(text.strip()) is not None


def is_text(text: str) -> bool:
    """Return whether an expression is a quoted text and nothing else.

    >>> is_text(" 'h1' "), is_text("sha2('h1', 256)")
    (True, False)
    """
    return QUOTED_TEXT.fullmatch(text.strip()) is not None


def heads_in(text: str) -> set[str]:
    """Return the columns that an expression names, without their fields."""
    return {head_of(path) for path in paths_of(text)}


def paths_of(text: str) -> list[str]:
    """Return the columns and fields that an expression names, as they are written and each time that they are."""
    return _PATH.findall(without_literals(text))


def without_literals(text: str) -> str:
    """Return the expression with each quoted text replaced by a blank."""
    return QUOTED_TEXT.sub(" ", text)


def head_of(path: str) -> str:
    """Return the column that a path begins with."""
    return path[1 : path.index("`", 1)] if path.startswith("`") else path.partition(".")[0]
