"""Checking cron expressions, so that a wrong schedule is the contract's error, not the scheduler's."""

from __future__ import annotations

from typing import Final, NamedTuple

PRESETS: Final = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class _Field(NamedTuple):
    """One of the five places of a cron expression; `names` stand for the numbers from `low` on."""

    label: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


def check_cron(expression: str) -> str:
    """Return the expression with single spaces where it has five valid fields, or is a preset.

    >>> check_cron("0  */2 * * mon-fri")
    '0 */2 * * mon-fri'

    Raises:
        ValueError: where a field is not valid, or where no date ever matches, as with 30 February.
    """
    if expression in PRESETS:
        return expression
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f"expected a cron expression of five fields such as '0 * * * *', or one of {', '.join(PRESETS)}; "
            f"found {expression!r}"
        )
    values = [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    days, months = values[2], values[3]
    if parts[4] == "*" and min(days) > max(_LONGEST_MONTH[month - 1] for month in months):
        raise ValueError(f"cron expression {expression!r} never happens: no such day in those months")
    return " ".join(parts)


def _values(part: str, field: _Field) -> set[int]:
    """Return the numbers that one field of an expression matches."""
    values: set[int] = set()
    for item in part.lower().split(","):
        span, slash, step = item.partition("/")
        if slash and (not _is_number(step) or int(step) == 0):
            raise ValueError(f"cron {field.label}: expected a step of 1 or more, found {item!r}")
        low, high = _bounds(span, field, has_step=bool(slash))
        values.update(range(low, high + 1, int(step) if slash else 1))
    return values


def _bounds(span: str, field: _Field, *, has_step: bool) -> tuple[int, int]:
    if span == "*":
        return field.low, field.high
    first, dash, last = span.partition("-")
    low = _number(first, field)
    high = _number(last, field) if dash else (field.high if has_step else low)
    if high < low:
        raise ValueError(f"cron {field.label}: expected a rising range, found {span!r}")
    return low, high


def _number(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if _is_number(text) and field.low <= int(text) <= field.high:
        return int(text)
    raise ValueError(f"cron {field.label}: expected {field.low} to {field.high}, found {text!r}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4
