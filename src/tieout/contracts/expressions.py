"""Which Spark SQL a contract may use: expressions over one row's own columns, that give the same value in every run.

A contract is code, but no code that runs Java, reads other files, or gives another value each time: nobody could
repeat a verdict. Here an expression is looked at as text, without Spark; the engine looks at what Spark makes of it.

Source: "Built-in Functions" and "Identifiers" of Spark's SQL reference.
"""

from __future__ import annotations

import re
from typing import Final

_JAVA: Final = "it runs Java code"
_OTHER_DATA: Final = "it reads what the contract does not name as evidence"
_COMPUTED_NAME: Final = "what it names is computed"
_MOMENT: Final = "its value depends on when, where and as whom the run is made"
_CHANCE: Final = "it gives another value each time"
_LAYOUT: Final = "its value depends on how Spark divides the files"
_NO_ROW: Final = "it leaves out rows whose array is empty; its form with _outer keeps them"

REFUSED: Final = {
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), _JAVA),
    **dict.fromkeys(
        ("from_avro", "from_protobuf", "to_protobuf", "schema_of_avro", "read_files"), _OTHER_DATA
    ),
    "identifier": _COMPUTED_NAME,
    **dict.fromkeys(
        (
            *("now", "curdate", "current_date", "current_time", "current_timestamp", "localtimestamp"),
            *("current_timezone", "current_user", "session_user", "user", "current_database"),
            *("current_schema", "current_catalog", "current_path", "version"),
        ),
        _MOMENT,
    ),
    **dict.fromkeys(
        ("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "aes_encrypt"), _CHANCE
    ),
    **dict.fromkeys(
        (
            *("monotonically_increasing_id", "spark_partition_id", "input_file_name"),
            *("input_file_block_start", "input_file_block_length"),
        ),
        _LAYOUT,
    ),
    **dict.fromkeys(("explode", "posexplode", "inline"), _NO_ROW),
}
"""Functions that an expression may not use, and why."""
SUBQUERY: Final = f"a query inside it: {_OTHER_DATA}"
_NOW: Final = re.compile(r"\b(?:now|current_timestamp)\s*\(\s*\)", re.IGNORECASE)
_NO_CODE: Final = re.compile(
    r"""--[^\n]*|/\*.*?\*/|\br'[^']*'|\br"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""",
    re.IGNORECASE | re.DOTALL,
)
_CALL: Final = re.compile(r"(?:`([^`]+)`|\b(\w+))\s*\(")
_BARE: Final = re.compile(
    r"(?<![.\w`])(current_date|current_time|current_timestamp|localtimestamp)\b(?![\w`])", re.I
)
_QUERY: Final = re.compile(
    r"(?<![.\w`])select\b(?!\s*(?:[.=<>!,)|/%]|$))|\|>|\(\s*(?:table|from)\s+[\w.`]+\s*\)", re.IGNORECASE
)
_MOVING: Final = re.compile(
    r"\b(?:date|timestamp\w*|cast|to_date|to_timestamp\w*)\s*\(?\s*'\s*(now|today|tomorrow|yesterday)\b",
    re.IGNORECASE,
)
_NO_MOMENT: Final = re.compile(r"\bunix_timestamp\s*\(\s*\)", re.IGNORECASE)


def with_moment(text: str, moment: str) -> str:
    """Return a coverage's expression with the time at which the source was read in the place of `now()`.

    >>> with_moment("now() - interval 5 minutes", "TIMESTAMP '2026-11-20T10:00:00Z'")
    "TIMESTAMP '2026-11-20T10:00:00Z' - interval 5 minutes"
    """
    return _NOW.sub(moment, text)


def is_moment(text: str) -> bool:
    """Return whether a coverage's expression is `now()` and nothing else."""
    return _NOW.fullmatch(text.strip()) is not None


def refused(text: str) -> str | None:
    """Return what an expression may not use, and why, or None where its text shows nothing of the kind.

    >>> refused("concat(id, uuid())")
    'uuid: it gives another value each time'
    >>> refused("concat(`uuid`, 'reflect(x)', user)") is None
    True
    """
    code = _NO_CODE.sub(lambda found: " " if found[0].startswith(("--", "/*")) else "''", text)
    if _QUERY.search(code):
        return SUBQUERY
    for quoted, plain in _CALL.findall(code):
        name = (quoted or plain).lower()
        if name in REFUSED:
            return told(name)
    bare = _BARE.search(code) or _NO_MOMENT.search(code)
    if bare is not None:
        return f"{bare[0]}: {_MOMENT}"
    moving = _MOVING.search(text)
    return None if moving is None else f"'{moving[1]}': {_MOMENT}"


def told(name: str) -> str:
    """Return a refused function and why it is.

    >>> told("uuid")
    'uuid: it gives another value each time'
    """
    return f"{name}: {REFUSED.get(name, _MOMENT)}"


def refusal(found: str) -> str:
    """Return the whole sentence about what `refused` found."""
    return f"expected an expression over the columns of one row, the same in every run, found {found}"
