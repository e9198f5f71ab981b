"""Which Spark SQL a contract may use: expressions over one row's own columns, that give the same value in every run.

A contract is code, but no code that runs Java, reads other files, or gives another value each time: nobody could
repeat a verdict. Here an expression is looked at as text, without Spark; the engine looks at what Spark makes of it.

Source: "Built-in Functions" and "Identifiers" of Spark's SQL reference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Final

_JAVA: Final = "it runs Java code"
_OTHER_DATA: Final = "it reads what the contract does not name as evidence"
_COMPUTED_NAME: Final = "what it names is computed"
_MOMENT: Final = "its value depends on when, where and as whom the run is made"
_CHANCE: Final = "it gives another value each time"
_LAYOUT: Final = "its value depends on how Spark divides the files"
_NO_ROW: Final = "it leaves out rows whose array is empty; its form with _outer keeps them"
_NO_TIME: Final = "it leaves out rows without a time; date_trunc keeps them"

REFUSED: Final = {
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), _JAVA),
    **dict.fromkeys(
        (
            *("from_avro", "from_protobuf", "to_protobuf", "schema_of_avro", "read_files"),
            *("from_xml", "schema_of_xml"),
        ),
        _OTHER_DATA,
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
    **dict.fromkeys(("window", "session_window"), _NO_TIME),
}
"""Functions that an expression may not use, and why."""
OTHER_ROWS: Final = "over: its value depends on other rows"
SUBQUERY: Final = f"a query inside it: {_OTHER_DATA}"
_NOW: Final = re.compile(r"\b(?:now|current_timestamp)\s*\(\s*\)", re.IGNORECASE)
_PIECE: Final = re.compile(
    r"""(?P<line>--(?:\\\n|[^\r\n])*)|(?P<block>/\*)|(?P<name>`(?:[^`]|``)*`)"""
    r"""|(?P<text>\br'[^']*'|\br"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""",
    re.IGNORECASE | re.DOTALL,
)
"""A comment, the beginning of one that may hold others, a quoted name, or a text, as Spark's grammar has them."""
_BLOCK_EDGE: Final = re.compile(r"/\*|\*/")
_OVER: Final = re.compile(r"(?<![.\w`])over\s*\(", re.IGNORECASE)
_CALL: Final = re.compile(r"(?:`([^`]+)`|\b(\w+))\s*\(")
_BARE: Final = re.compile(
    r"(?<![.\w`])(current_date|current_time|current_timestamp|localtimestamp)\b(?![\w`])", re.I
)
_QUERY: Final = re.compile(
    r"(?<![.\w`])select\b(?!\s*(?:[.=<>!,)|/%]|$))|\|>|\(\s*(?:table|from)\s+[\w.`]+\s*\)", re.IGNORECASE
)
_DATES: Final = re.compile(
    r"\b(?:date|timestamp\w*|(?:try_)?cast|(?:try_)?to_(?:date|timestamp\w*))$", re.IGNORECASE
)
_DATED: Final = re.compile(r"\s*::\s*(?:date|timestamp)", re.IGNORECASE)
"""What makes a text a date or a time, before it and after it."""
_MOVING: Final = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([0-3][0-7]{2})|(.))", re.IGNORECASE | re.DOTALL
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
    plain = "".join(_uncommented(text))
    code = _PIECE.sub(lambda found: "''" if found["text"] else found[0], plain)
    unquoted = _PIECE.sub(lambda found: "``" if found["name"] else found[0], code)
    if _QUERY.search(unquoted):
        return SUBQUERY
    if _OVER.search(unquoted):
        return OTHER_ROWS
    for quoted, name in _CALL.findall(code):
        function = (quoted or name).lower()
        if function in REFUSED:
            return told(function)
    bare = _BARE.search(unquoted) or _NO_MOMENT.search(code)
    if bare is not None:
        return f"{bare[0]}: {_MOMENT}"
    return next(_moving(plain), None)


def _uncommented(text: str) -> Iterator[str]:
    """Yield the text with a blank in the place of each comment; one of `/* … */` may hold others."""
    begin = 0
    while (found := _PIECE.search(text, begin)) is not None:
        yield text[begin : found.start()]
        is_comment = found["line"] is not None or found["block"] is not None
        yield " " if is_comment else found[0]
        begin = found.end() if found["block"] is None else _end_of_block(text, found.end())
    yield text[begin:]


def _end_of_block(text: str, begin: int) -> int:
    """Return where the comment ends that began before `begin`."""
    depth = 1
    for edge in _BLOCK_EDGE.finditer(text, begin):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _moving(plain: str) -> Iterator[str]:
    """Yield the texts that are dates or times of the moment at which they are read, such as `timestamp 'now'`."""
    ended = 0
    for found in _PIECE.finditer(plain):
        before = plain[ended : found.start()].rstrip().removesuffix("(").rstrip()
        ended = found.end()
        if found["text"] and (_DATES.search(before) or _DATED.match(plain, ended)):
            word = _MOVING.match(_meant(found["text"]))
            if word is not None:
                yield f"'{word[1]}': {_MOMENT}"


def _meant(literal: str) -> str:
    r"""Return the text that a literal stands for.

    >>> _meant(r"'\u006eow'"), _meant('r"now"')
    ('now', 'now')
    """
    if literal[0] in "rR":
        return literal[2:-1]
    return _ESCAPE.sub(_character, literal[1:-1])


def _character(escape: re.Match[str]) -> str:
    short, long, octal, itself = escape.groups()
    code = int(short or long or "0", 16) if octal is None else int(octal, 8)
    return itself or (chr(code) if code <= sys.maxunicode else "")


def told(name: str) -> str:
    """Return a refused function and why it is.

    >>> told("uuid")
    'uuid: it gives another value each time'
    """
    return f"{name}: {REFUSED.get(name, _MOMENT)}"


def refusal(found: str) -> str:
    """Return the whole sentence about what `refused` found."""
    return f"expected an expression over the columns of one row, the same in every run, found {found}"
