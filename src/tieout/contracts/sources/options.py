"""Options of Spark's readers that a contract may set, by format: those that cannot drop a row.

Spark has options that leave out files (`pathGlobFilter`, `modifiedAfter`), lines (`comment`, `mode: DROPMALFORMED`),
columns (`mergeSchema`, `dropFieldIfAllNull`) or whatever fails (`ignoreCorruptFiles`), and every version brings more.
Evidence that is left out goes unnoticed, so only the options listed here are allowed. Names are case-insensitive.

Source: "Generic File Source Options", "JSON Files", "CSV Files", "Parquet Files" of Spark SQL's guide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tieout.contracts.secrets import REASON, is_secret_name


@dataclass(frozen=True)
class Option:
    """One option: its expected value, a test of the value as text, and why it cannot drop a row."""

    expected: str
    is_value: Callable[[str], bool]
    reason: str


def _is_switch(value: str) -> bool:
    return value.lower() in ("true", "false")


def _is_character(value: str) -> bool:
    return len(value) == 1 and value not in "\r\n"


def _is_rebase_mode(value: str) -> bool:
    return value.upper() in ("EXCEPTION", "CORRECTED", "LEGACY")


def _switch(reason: str) -> Option:
    return Option("true or false", _is_switch, reason)


def _character(reason: str) -> Option:
    return Option("one character", _is_character, reason)


def _text(reason: str) -> Option:
    return Option("a text on one line", lambda value: not set("\r\n") & set(value), reason)


def _rebasing(reason: str) -> Option:
    return Option("EXCEPTION, CORRECTED or LEGACY", _is_rebase_mode, reason)


_SYNTAX: Final = "widens what is an object; a line that is still none is a fault"
_OF_A_LINE: Final = "divides one line into values; a line with too few or too many is a fault"
_SPACES: Final = "trims values; the row stays"
_CALENDAR: Final = "moves times of before 1900 to another calendar; the row stays"

ALLOWED: Final[Mapping[str, Mapping[str, Option]]] = {
    "jsonl": {
        "allowBackslashEscapingAnyCharacter": _switch(_SYNTAX),
        "allowNumericLeadingZeros": _switch(_SYNTAX),
        "allowSingleQuotes": _switch(_SYNTAX),
        "allowUnquotedControlChars": _switch(_SYNTAX),
        "allowUnquotedFieldNames": _switch(_SYNTAX),
    },
    "csv": {
        "charToEscapeQuoteEscaping": _character(_OF_A_LINE),
        "emptyValue": _text("says what a quoted empty value is; the row stays"),
        "escape": _character(_OF_A_LINE),
        "ignoreLeadingWhiteSpace": _switch(_SPACES),
        "ignoreTrailingWhiteSpace": _switch(_SPACES),
        "nullValue": _text("says which text is null; the row stays"),
        "quote": _character(_OF_A_LINE),
        "sep": _character(_OF_A_LINE),
    },
    "parquet": {
        "datetimeRebaseMode": _rebasing(_CALENDAR),
        "int96RebaseMode": _rebasing(_CALENDAR),
    },
    "orc": {},
}
"""The options of each file format; tables have none, as theirs would select a snapshot."""
_ALIASES: Final = {"delimiter": "sep"}
"""Spark's aliases."""


def allowed_options(file_format: str, options: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Return the options as Spark spells them, with texts as values.

    >>> allowed_options("csv", {"Delimiter": ";", "nullvalue": "-"})
    {'sep': ';', 'nullValue': '-'}

    Raises:
        ValueError: if an option is not allowed, is given twice, or has an invalid value.
    """
    allowed = ALLOWED.get(file_format, {})
    names = {name.lower(): name for name in allowed}
    spark_options: dict[str, str] = {}
    for option, value in options.items():
        name = names.get(_ALIASES.get(option.lower(), option.lower()))
        if name is None:
            if is_secret_name(option):
                raise ValueError(f"options.{option}: {REASON}")
            raise ValueError(
                f"options.{option}: expected {_listed(allowed)} for {file_format}, as other options can leave out "
                "files or rows of the evidence; remove it, or name the files in path and write where"
            )
        if name in spark_options:
            raise ValueError(f"options.{option}: expected {name} once, found it twice; remove one")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not allowed[name].is_value(text):
            raise ValueError(f"options.{option}: expected {allowed[name].expected}, found {text!r}")
        spark_options[name] = text
    return spark_options


def _listed(allowed: Mapping[str, Option]) -> str:
    return f"one of {', '.join(sorted(allowed))}" if allowed else "no option"
