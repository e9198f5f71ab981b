"""Which Spark SQL a contract may use: expressions over one row's columns that give the same value in every run.

Expressions that run Java, read other files, or change from run to run are refused: a verdict could not be repeated.
This module checks an expression's text, without Spark; the engine checks the plan that Spark makes of it.

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
_DROPS_ROWS: Final = "it leaves out rows whose array is empty; its form with _outer keeps them"
_DROPS_NULL_TIMES: Final = "it leaves out rows without a time; date_trunc keeps them"

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
    **dict.fromkeys(("explode", "posexplode", "inline"), _DROPS_ROWS),
    **dict.fromkeys(("window", "session_window"), _DROPS_NULL_TIMES),
}
"""Functions that an expression may not use, with the reason."""
OTHER_ROWS: Final = "over: its value depends on other rows"
SUBQUERY: Final = f"a query inside it: {_OTHER_DATA}"
_NOW: Final = re.compile(r"\b(?:now|current_timestamp)\s*\(\s*\)", re.IGNORECASE)
_PIECE: Final = re.compile(
    r"""(?P<line>--(?:\\\n|[^\r\n])*)|(?P<block>/\*)|(?P<name>`(?:[^`]|``)*`)"""
    r"""|(?P<text>\br'[^']*'|\br"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""",
    re.IGNORECASE | re.DOTALL,
)
"""A line comment, the start of a block comment, a quoted name, or a string literal, by Spark's grammar."""
_BLOCK_EDGE: Final = re.compile(r"/\*|\*/")
_OVER: Final = re.compile(r"(?<![.\w`])over\s*\(", re.IGNORECASE)
_CALL: Final = re.compile(r"(?:`([^`]+)`|\b(\w+))\s*\(")
_WITHOUT_PARENTHESES: Final = re.compile(
    r"(?<![.\w`])(current_date|current_time|current_timestamp|localtimestamp)\b(?![\w`])", re.I
)
_QUERY: Final = re.compile(
    r"(?<![.\w`])select\b(?!\s*(?:[.=<>!,)|/%]|$))|\|>|\(\s*(?:table|from)\s+[\w.`]+\s*\)", re.IGNORECASE
)
_TIME_PREFIX: Final = re.compile(
    r"\b(?:date|timestamp\w*|(?:try_)?cast|(?:try_)?to_(?:date|timestamp\w*))$", re.IGNORECASE
)
_TIME_CAST: Final = re.compile(r"\s*::\s*(?:date|timestamp)", re.IGNORECASE)
"""What makes a string literal a date or a time: a type or function before it, or a cast after it."""
_RELATIVE_TIME: Final = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|([0-3][0-7]{2})|(.))", re.IGNORECASE | re.DOTALL
)
_NO_MOMENT: Final = re.compile(r"\bunix_timestamp\s*\(\s*\)", re.IGNORECASE)
_READS_TIME: Final = re.compile(
    r"\b(?:(?:try_)?to_(?:date|time\w*|unix_timestamp)|unix_timestamp)\s*\(", re.IGNORECASE
)
"""Functions that read a time by a pattern."""
_QUOTED: Final = re.compile(r"'[^']*'")
_PATTERN_LETTERS: Final = frozenset("GyuMLdDQqEFVzOxXZHkhKmsSn")
"""The letters of Spark's "Datetime Patterns", without `a` for the half of the day."""


def with_moment(text: str, moment: str) -> str:
    """Return a coverage's expression with `now()` replaced by the time at which the source was read.

    >>> with_moment("now() - interval 5 minutes", "TIMESTAMP '2026-11-20T10:00:00Z'")
    "TIMESTAMP '2026-11-20T10:00:00Z' - interval 5 minutes"
    """
    return _NOW.sub(moment, text)


def is_moment(text: str) -> bool:
    """Return whether a coverage's expression is `now()` and nothing else."""
    return _NOW.fullmatch(text.strip()) is not None


def refused(text: str) -> str | None:
    """Return the forbidden part of an expression and the reason, or None if its text has none.

    >>> refused("concat(id, uuid())")
    'uuid: it gives another value each time'
    >>> refused("concat(`uuid`, 'reflect(x)', user)") is None
    True
    """
    uncommented = "".join(_uncommented(text))
    code = _PIECE.sub(lambda piece: "''" if piece["text"] else piece[0], uncommented)
    unquoted = _PIECE.sub(lambda piece: "``" if piece["name"] else piece[0], code)
    if _QUERY.search(unquoted):
        return SUBQUERY
    if _OVER.search(unquoted):
        return OTHER_ROWS
    for quoted, name in _CALL.findall(code):
        function = (quoted or name).lower()
        if function in REFUSED:
            return refusal_reason(function)
    call = _WITHOUT_PARENTHESES.search(unquoted) or _NO_MOMENT.search(code)
    if call is not None:
        return f"{call[0]}: {_MOMENT}"
    return next(_relative_times(uncommented), None)


def half_day_pattern(text: str) -> str | None:
    """Return a pattern by which an expression reads the hours 1 to 12 without knowing of which half of the day.

    Spark reads 12:30 as half past midnight by such a pattern, and refuses 13:30.

    >>> half_day_pattern("to_timestamp(t, 'yyyy-MM-dd hh:mm:ss')")
    'yyyy-MM-dd hh:mm:ss'
    >>> half_day_pattern("to_timestamp(t, 'yyyy-MM-dd hh:mm:ss a')") is None
    True
    """
    uncommented = "".join(_uncommented(text))
    if _READS_TIME.search(uncommented) is None:
        return None
    patterns = (_literal_value(piece["text"]) for piece in _PIECE.finditer(uncommented) if piece["text"])
    return next((one for one in patterns if _lacks_half_of_day(one)), None)


def _lacks_half_of_day(pattern: str) -> bool:
    letters = {letter for letter in _QUOTED.sub("", pattern) if letter.isalpha()}
    return "m" in letters and bool(letters & {"h", "K"}) and letters <= _PATTERN_LETTERS


def _uncommented(text: str) -> Iterator[str]:
    """Yield the text with each comment replaced by a blank; `/* … */` comments may be nested."""
    begin = 0
    while (piece := _PIECE.search(text, begin)) is not None:
        yield text[begin : piece.start()]
        is_comment = piece["line"] is not None or piece["block"] is not None
        yield " " if is_comment else piece[0]
        begin = piece.end() if piece["block"] is None else _end_of_block(text, piece.end())
    yield text[begin:]


def _end_of_block(text: str, begin: int) -> int:
    """Return the end of the block comment that was opened before `begin`."""
    depth = 1
    for edge in _BLOCK_EDGE.finditer(text, begin):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _relative_times(uncommented: str) -> Iterator[str]:
    """Yield a reason for each literal that is relative to the current time, such as `timestamp 'now'`."""
    ended = 0
    for piece in _PIECE.finditer(uncommented):
        before = uncommented[ended : piece.start()].rstrip().removesuffix("(").rstrip()
        ended = piece.end()
        if piece["text"] and (_TIME_PREFIX.search(before) or _TIME_CAST.match(uncommented, ended)):
            relative = _RELATIVE_TIME.match(_literal_value(piece["text"]))
            if relative is not None:
                yield f"'{relative[1]}': {_MOMENT}"


def _literal_value(literal: str) -> str:
    r"""Return the value of a string literal.

    >>> _literal_value(r"'\u006eow'"), _literal_value('r"now"')
    ('now', 'now')
    """
    if literal[0] in "rR":
        return literal[2:-1]
    return _ESCAPE.sub(_character, literal[1:-1])


def _character(escape: re.Match[str]) -> str:
    short, long, octal, itself = escape.groups()
    code = int(short or long or "0", 16) if octal is None else int(octal, 8)
    return itself or (chr(code) if code <= sys.maxunicode else "")


def refusal_reason(name: str) -> str:
    """Return a refused function's name and the reason.

    >>> refusal_reason("uuid")
    'uuid: it gives another value each time'
    """
    return f"{name}: {REFUSED.get(name, _MOMENT)}"


def refusal(reason: str) -> str:
    """Return the error message for a result of `refused`."""
    return f"expected an expression over the columns of one row, the same in every run, found {reason}"
