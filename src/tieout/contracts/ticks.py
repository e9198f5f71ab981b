"""The ticks of a contract's schedule, and the windows between them, for whoever has no Airflow.

The same moments as those of Airflow's cron timetables, which `tests/dags/test_timetable.py` holds against these. A
schedule that runs every hour follows the hours that pass where clocks are changed; any other follows the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo

from tieout.contracts.contract import Contract
from tieout.contracts.cron import CronFields, cron_fields
from tieout.errors import UsageError
from tieout.model import Window

_MINUTE: Final = timedelta(minutes=1)
_FURTHEST_DAYS: Final = 366 * 9
"""A 29th of February lies eight years ahead at most."""


def windows_from(contract: Contract, moment: datetime) -> Iterator[Window]:
    """Yield the contract's windows from `moment` on that lie in its active time; none without a schedule."""
    if contract.schedule is None:
        return
    fields, zone = cron_fields(contract.schedule), ZoneInfo(contract.timezone)
    active = contract.active
    begin = moment if active.from_ is None else max(moment, active.from_)
    start = _next_tick(fields, zone, begin - timedelta(microseconds=1))
    while True:
        end = _next_tick(fields, zone, start)
        if active.until is not None and end > active.until:
            return
        yield Window(start, end)
        start = end


def latest_window(contract: Contract, now: datetime) -> Window | None:
    """Return the last window that was over, grace included, by `now`; None where there was none."""
    due = now - contract.grace
    for days in (1, 8, 40, _FURTHEST_DAYS):
        found = None
        for window in windows_from(contract, due - timedelta(days=days)):
            if window.end > due:
                break
            found = window
        if found is not None:
            return found
    return None


def _next_tick(fields: CronFields, zone: ZoneInfo, after: datetime) -> datetime:
    """Return the first tick later than `after`, in UTC."""
    clock = after.astimezone(zone).replace(tzinfo=None)
    scheduled = clock
    while True:
        scheduled = _next_on_the_clock(fields, scheduled)
        tick = after + (scheduled - clock) if fields.is_hourly else _at(scheduled, zone)
        if tick > after:
            return tick.astimezone(UTC)


def _next_on_the_clock(fields: CronFields, after: datetime) -> datetime:
    """Return the first time on the clock that matches, later than `after`."""
    first = after.replace(second=0, microsecond=0) + _MINUTE
    midnight = first.replace(hour=0, minute=0)
    for days in range(_FURTHEST_DAYS):
        day = midnight + timedelta(days=days)
        if fields.has_day(day):
            for hour, minute in product(fields.hours, fields.minutes):
                moment = day.replace(hour=hour, minute=minute)
                if moment >= first:
                    return moment
    raise UsageError("the schedule has no further tick: expected a day that comes again")


def _at(clock: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment at which clocks show this: the second of two, and where they skip it, as much later."""
    second = clock.replace(tzinfo=zone, fold=1)
    is_skipped = second.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != clock
    return clock.replace(tzinfo=zone, fold=0) if is_skipped else second
