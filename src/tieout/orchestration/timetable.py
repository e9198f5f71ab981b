"""Intervals that are windows: a run judges `[start, end)` between two ticks of the contract's cron.

Airflow's own cron timetables do not fit. `CronTriggerTimetable` gives intervals of no length.
`CronDataIntervalTimetable` gives a manual run whose logical date is exactly a tick the interval that *ends*
there, although a run of that logical date is the one whose interval *starts* there: the manual run then takes
the place of a window that is never judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable

from tieout.contracts import Contract
from tieout.model import Window

_LONGEST_CHANGE: Final = timedelta(hours=3)
"""More than clocks are changed by."""


class WindowTimetable(CronDataIntervalTimetable):  # type: ignore[misc]  # airflow is untyped to us
    """A cron's intervals as windows, scheduled at their end, within the time the contract is active.

    The active time is kept here and not in the DAG's `start_date` and `end_date`, because Airflow ends a
    manual run outside of those as a success without a single task.

    Args:
        cron: The contract's schedule.
        timezone: The time zone that the cron is written in.
        active_from: No scheduled window starts earlier.
        active_until: No scheduled window ends later.
    """

    def __init__(
        self,
        cron: str,
        timezone: Any,
        active_from: datetime | None = None,
        active_until: datetime | None = None,
    ) -> None:
        super().__init__(cron, timezone)
        self._active_from = None if active_from is None else pendulum.instance(active_from)
        self.active_until = None if active_until is None else pendulum.instance(active_until)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowTimetable) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.serialize().items())))

    def serialize(self) -> dict[str, Any]:
        """Return what `deserialize` needs, as JSON."""
        return {
            **super().serialize(),
            "active_from": None if self._active_from is None else self._active_from.isoformat(),
            "active_until": None if self.active_until is None else self.active_until.isoformat(),
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> WindowTimetable:
        """Return the timetable that `serialize` described."""
        base = CronDataIntervalTimetable.deserialize(data)
        bounds = (
            None if data[name] is None else datetime.fromisoformat(data[name])
            for name in ("active_from", "active_until")
        )
        return cls(data["expression"], base._timezone, *bounds)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the next window within the active time, or None when there is none left."""
        earliest = [bound for bound in (restriction.earliest, self._active_from) if bound is not None]
        info: DagRunInfo | None = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval,
            restriction=restriction._replace(earliest=max(earliest, default=None)),
        )
        if info is None or info.data_interval is None or self.active_until is None:
            return info
        return info if info.data_interval.end <= self.active_until else None

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """Return the window that starts at `run_after`, if that is a tick, else the last that ended."""
        if self._align_to_prev(run_after) == run_after:
            return DataInterval(start=run_after, end=self._get_next(run_after))
        interval: DataInterval = super().infer_manual_data_interval(run_after=run_after)
        return interval

    def _get_prev(self, current: pendulum.DateTime) -> pendulum.DateTime:
        """Return the last tick before `current`: the one whose next tick is `current` or later.

        Airflow's own is another where clocks are changed, so that a scheduled window would not begin where the one
        before it ended, or none would follow it: the time it gives for a tick that clocks skip may be later than
        `current`, and where clocks change by half an hour it passes over a tick.
        """
        found = before = current
        while found >= current:
            found = super()._get_prev(before)
            before -= _LONGEST_CHANGE
        while (following := self._get_next(found)) < current:
            found = following
        return found

    def latest_window(self, until: datetime) -> Window:
        """Return the last window that ends at `until` or earlier, whether or not the contract was active then."""
        interval = super().infer_manual_data_interval(run_after=pendulum.instance(until))
        return Window(_utc(interval.start), _utc(interval.end))


def timetable_of(contract: Contract) -> WindowTimetable | None:
    """Return the timetable of a contract's windows, or None where it has no schedule."""
    if contract.schedule is None:
        return None
    active = contract.active
    return WindowTimetable(contract.schedule, contract.timezone, active.from_, active.until)


def windows_between(timetable: WindowTimetable, since: datetime, until: datetime) -> Iterator[Window]:
    """Yield the windows that begin at `since` or later and end at `until` or earlier, in their order.

    They are those that the scheduler would run for a DAG that catches up. Each end is the next tick: asking for each
    window as the scheduler does would compute five ticks to find one.
    """
    restriction = TimeRestriction(earliest=pendulum.instance(since), latest=None, catchup=True)
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    if first is None:
        return
    last = until if timetable.active_until is None else min(until, timetable.active_until)
    start, end = first.data_interval
    while end <= last:
        yield Window(_utc(start), _utc(end))
        start, end = end, timetable._get_next(end)


def _utc(moment: pendulum.DateTime) -> datetime:
    return datetime.fromtimestamp(moment.timestamp(), UTC)
