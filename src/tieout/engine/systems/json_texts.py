"""Strict parsing of JSON written by other systems: ambiguous values are errors."""

from __future__ import annotations

import json
from typing import Final

from tieout.engine.limits import LARGEST, LARGEST_INT, number_in

NO_JSON: Final = "expected JSON, found none: cut off or changed"


class FormatError(ValueError):
    """What another system wrote is not in its format; the message says what was expected and found."""


def exact_json(text: str) -> object:
    """Return the value of a JSON text.

    >>> exact_json('{"orders": {"0": 5}}')
    {'orders': {'0': 5}}

    Raises:
        FormatError: if it is invalid, has a duplicate key, or is deeper or has longer numbers than Python reads.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except FormatError:
        raise
    except (ValueError, RecursionError):
        raise FormatError(NO_JSON) from None


def json_object(text: str) -> dict[str, object]:
    """Return the fields of a JSON object.

    Raises:
        FormatError: as for `exact_json`, and for another value.
    """
    value = exact_json(text)
    if not isinstance(value, dict):
        raise FormatError(f"expected a JSON object, found {_kind(value)}")
    return value


def offset_in(value: object) -> int | None:
    """Return a JSON value as an offset, None if it is not valid: a fraction, a text, negative, or too large.

    >>> [offset_in(value) for value in (5, True, 5.0, -1, "5", 2**62)]
    [5, None, None, None, None, None]
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST else None


def partition_in(text: str) -> int | None:
    """Return a text as a partition's number, None if it is not valid.

    >>> [partition_in(text) for text in ("12", "-1", "-0", "00", "x")]
    [12, None, None, None, None]
    """
    number = number_in(text, LARGEST_INT)
    return number if number is not None and number >= 0 and text == str(number) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise FormatError("expected each key once in a JSON object, found one twice")
    return fields


def _refused(constant: str) -> object:
    raise FormatError(f"expected JSON, found {constant}, which is none")


def _kind(value: object) -> str:
    kinds: dict[type, str] = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
