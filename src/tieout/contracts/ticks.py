"""The ticks of a contract's schedule, and the windows between them, without Airflow.

They are equal to those of Airflow's cron timetables; `tests/dags/test_timetable.py` compares them. When clocks change,
an hourly schedule follows elapsed hours; any other follows local time.
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
"""The next 29 February is at most eight years ahead."""


def windows_from(contract: Contract, moment: datetime) -> Iterator[Window]:
    """Yield the contract's windows from `moment` on within its active time; none without a schedule."""
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
    """Return the last window that ended, including its grace, by `now`, or None."""
    due = now - contract.grace
    for days in (1, 8, 40, _FURTHEST_DAYS):
        latest = None
        for window in windows_from(contract, due - timedelta(days=days)):
            if window.end > due:
                break
            latest = window
        if latest is not None:
            return latest
    return None


def _next_tick(fields: CronFields, zone: ZoneInfo, after: datetime) -> datetime:
    """Return the first tick later than `after`, in UTC."""
    local_time = after.astimezone(zone).replace(tzinfo=None)
    scheduled = local_time
    while True:
        scheduled = _next_local_time(fields, scheduled)
        tick = after + (scheduled - local_time) if fields.is_hourly else _at(scheduled, zone)
        if tick > after:
            return tick.astimezone(UTC)


def _next_local_time(fields: CronFields, after: datetime) -> datetime:
    """Return the first matching local time later than `after`."""
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


def _at(local_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment of a local time: the later one if it occurs twice, and shifted forward if it is skipped."""
    second = local_time.replace(tzinfo=zone, fold=1)
    is_skipped = second.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local_time
    return local_time.replace(tzinfo=zone, fold=0) if is_skipped else second
