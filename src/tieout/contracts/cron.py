"""Cron expressions: validated when a contract is loaded, and parsed for their ticks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

PRESETS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_HOURS: Final = 24
_WEEK: Final = 7
_LONGEST_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class _Field(NamedTuple):
    """One of the five fields of a cron expression; `names` stand for the numbers from `low` on."""

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


@dataclass(frozen=True)
class CronFields:
    """The numbers that each field of a cron expression matches, in order; weekdays begin with Sunday as 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    @property
    def is_hourly(self) -> bool:
        """Whether a matching day has ticks in every hour."""
        return len(self.hours) == _HOURS

    def has_day(self, day: date) -> bool:
        """Return whether a day has ticks; if days of month and of week are both restricted, either is enough."""
        if day.month not in self.months:
            return False
        by_number, by_weekday = day.day in self.days, day.isoweekday() % _WEEK in self.weekdays
        if len(self.weekdays) == _WEEK or len(self.days) == _LONGEST_MONTH[0]:
            return by_number and by_weekday
        return by_number or by_weekday


def cron_fields(expression: str) -> CronFields:
    """Return the values matched by each field of a valid expression or preset.

    >>> cron_fields("0,30 6-8 * * mon").hours
    (6, 7, 8)

    Raises:
        ValueError: if a field is not valid.
    """
    parts = PRESETS.get(expression, expression).split()
    minutes, hours, days, months, weekdays = (
        _values(part, field) for part, field in zip(parts, _FIELDS, strict=True)
    )
    return CronFields(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(day % _WEEK for day in weekdays),
    )


def check_cron(expression: str) -> str:
    """Return the expression with single spaces, if it has five valid fields or is a preset.

    >>> check_cron("0  */2 * * mon-fri")
    '0 */2 * * mon-fri'

    Raises:
        ValueError: if a field is not valid, or no date ever matches, as with 30 February.
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
        low, high = _range_of(span, field, has_step=bool(slash))
        values.update(range(low, high + 1, int(step) if slash else 1))
    return values


def _range_of(span: str, field: _Field, *, has_step: bool) -> tuple[int, int]:
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
