"""JSON that another system wrote for itself, read strictly: what could mean two things means nothing."""

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
        FormatError: where it is none, has a key twice, or is deeper or has longer numbers than Python reads.
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
        FormatError: as `exact_json` does, and for another value.
    """
    found = exact_json(text)
    if not isinstance(found, dict):
        raise FormatError(f"expected a JSON object, found {_kind(found)}")
    return found


def offset_in(value: object) -> int | None:
    """Return the offset that a JSON value is, None where it is none: a fraction, a text, negative, or too large.

    >>> [offset_in(value) for value in (5, True, 5.0, -1, "5", 2**62)]
    [5, None, None, None, None, None]
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST else None


def partition_in(text: str) -> int | None:
    """Return the partition's number that a text is, None where it is none.

    >>> [partition_in(text) for text in ("12", "-1", "-0", "00", "x")]
    [12, None, None, None, None]
    """
    number = number_in(text, LARGEST_INT)
    return number if number is not None and number >= 0 and text == str(number) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FormatError("expected each key once in a JSON object, found one twice")
    return found


def _refused(constant: str) -> object:
    raise FormatError(f"expected JSON, found {constant}, which is none")


def _kind(value: object) -> str:
    kinds: dict[type, str] = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
