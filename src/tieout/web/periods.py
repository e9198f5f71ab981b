"""The time that a page shows, in equal parts: a day in hours, a week in quarters of a day, a year in weeks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tieout.model import Window
from tieout.store.views import Buckets

_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)
"""The origin of all steps, so that weeks begin on a Monday and the parts do not move with the clock."""


class Period(StrEnum):
    """The length of time that a page shows."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


_PARTS: Final[Mapping[Period, tuple[timedelta, int]]] = MappingProxyType(
    {
        Period.DAY: (timedelta(hours=1), 24),
        Period.WEEK: (timedelta(hours=6), 28),
        Period.MONTH: (timedelta(days=1), 31),
        Period.YEAR: (timedelta(weeks=1), 53),
    }
)


@dataclass(frozen=True)
class Ticks:
    """The buckets that have labels on a heat map or a plot: every n-th one, formatted by `strftime`.

    They are counted from a Monday's midnight and not from the first bucket shown, so that the label of a day is where
    the day begins.
    """

    every: int
    form: str

    def has(self, bucket: Window) -> bool:
        """Return whether the bucket has a label.

        >>> morning = Window(datetime(2026, 11, 20, 6, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC))
        >>> TICKS[Period.WEEK].has(morning)
        False
        """
        return not (bucket.start - _MONDAY) % ((bucket.end - bucket.start) * self.every)


TICKS: Final[Mapping[Period, Ticks]] = MappingProxyType(
    {
        Period.DAY: Ticks(3, "%H:%M"),
        Period.WEEK: Ticks(4, "%a %d"),
        Period.MONTH: Ticks(7, "%d %b"),
        Period.YEAR: Ticks(6, "%d %b"),
    }
)


def buckets_until(period: Period, until: datetime) -> Buckets:
    """Return the buckets of a period; the last one contains the moment before `until`.

    >>> buckets_until(Period.DAY, datetime(2026, 11, 20, 10, 30, tzinfo=UTC)).end.isoformat()
    '2026-11-20T11:00:00+00:00'
    """
    step, count = _PARTS[period]
    steps = -((_MONDAY - until) // step)
    return Buckets(_MONDAY + step * (steps - count), step, count)
