"""Intervals are windows: of real length, one after the other, and no manual run takes a window's place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pendulum
import pytest
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DataInterval, TimeRestriction
from tests.dags.home import write_contract

from tieout.contracts import load_contract
from tieout.contracts.ticks import windows_from
from tieout.model import Window
from tieout.orchestration.dag_factory import pipeline_dag
from tieout.orchestration.timetable import WindowTimetable, timetable_of, windows_between

HOURLY = WindowTimetable("0 * * * *", "UTC")


def at(text: str) -> pendulum.DateTime:
    """Return a time in UTC."""
    return pendulum.instance(datetime.fromisoformat(text).replace(tzinfo=UTC))


def interval(start: str, end: str) -> DataInterval:
    """Return an interval in UTC."""
    return DataInterval(at(start), at(end))


def test_a_manual_run_on_a_tick_judges_the_window_that_starts_there() -> None:
    """Its logical date is that window's, so any other interval would leave that window unjudged for ever."""
    found = HOURLY.infer_manual_data_interval(run_after=at("2026-11-20T10:00:00"))

    assert found == interval("2026-11-20T10:00:00", "2026-11-20T11:00:00")


def test_a_manual_run_between_ticks_judges_the_last_finished_window() -> None:
    """Its logical date is no window's start, so it is in nobody's way."""
    found = HOURLY.infer_manual_data_interval(run_after=at("2026-11-20T10:20:00"))

    assert found == interval("2026-11-20T09:00:00", "2026-11-20T10:00:00")


def test_a_daily_window_follows_the_clocks_of_its_time_zone() -> None:
    """The day on which Berlin's clocks go back has 25 hours."""
    daily = WindowTimetable("0 0 * * *", "Europe/Berlin")

    found = daily.infer_manual_data_interval(run_after=pendulum.datetime(2026, 10, 25, tz="Europe/Berlin"))

    assert found.end - found.start == timedelta(hours=25)


def _next(timetable: WindowTimetable, last: DataInterval | None, earliest: str) -> DataInterval | None:
    restriction = TimeRestriction(earliest=at(earliest), latest=None, catchup=True)
    info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
    return None if info is None else info.data_interval


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, interval("2026-11-20T10:00:00", "2026-11-20T11:00:00")),
        (
            interval("2026-11-20T10:00:00", "2026-11-20T11:00:00"),
            interval("2026-11-20T11:00:00", "2026-11-20T12:00:00"),
        ),
        (interval("2026-11-20T11:00:00", "2026-11-20T12:00:00"), None),
    ],
)
def test_scheduled_windows_lie_within_the_active_time(last: Any, expected: Any) -> None:
    """The first starts at its beginning or later, the last ends at its end or earlier."""
    active = (datetime(2026, 11, 20, 9, 30, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC))

    assert _next(WindowTimetable("0 * * * *", "UTC", *active), last, "2000-01-01T00:00:00") == expected


def test_a_window_that_ends_after_the_active_time_is_not_scheduled() -> None:
    """A part of a window is no window."""
    timetable = WindowTimetable("0 * * * *", "UTC", None, datetime(2026, 11, 20, 10, 30, tzinfo=UTC))

    assert _next(timetable, None, "2026-11-20T10:00:00") is None


def test_a_backfill_through_the_stored_dag_gives_real_intervals(contracts: Any) -> None:
    """What the scheduler reads back from its database has the same windows as the contract."""
    write_contract(contracts, "orders", "active: {from: 2026-11-18T00:00:00Z, until: 2026-11-18T03:00:00Z}")
    dag = pipeline_dag(load_contract(contracts / "orders.yml"))

    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    infos = list(stored.iter_dagrun_infos_between(at("2026-11-17T22:00:00"), at("2026-11-18T09:00:00")))

    assert [info.data_interval for info in infos] == [
        interval("2026-11-18T00:00:00", "2026-11-18T01:00:00"),
        interval("2026-11-18T01:00:00", "2026-11-18T02:00:00"),
        interval("2026-11-18T02:00:00", "2026-11-18T03:00:00"),
    ]
    assert [info.logical_date for info in infos] == [info.data_interval.start for info in infos]


@pytest.mark.parametrize(
    ("cron", "zone", "since", "until"),
    [
        ("0 * * * *", "UTC", "2026-11-20T09:30:00", "2026-11-20T13:00:00"),
        ("*/30 1-4 * * *", "Europe/Berlin", "2026-10-24T00:00:00", "2026-10-26T12:00:00"),
        ("0 2 * * *", "Europe/Berlin", "2026-03-27T00:00:00", "2026-03-31T00:00:00"),
        ("*/30 0-4 * * *", "Europe/Berlin", "2026-03-28T00:00:00", "2026-03-30T00:00:00"),
        ("15,45 1-3 * * *", "Europe/London", "2026-03-28T00:00:00", "2026-03-30T00:00:00"),
        ("*/7 2 * * *", "America/New_York", "2026-03-07T00:00:00", "2026-03-09T12:00:00"),
        ("0 * * * *", "Australia/Lord_Howe", "2026-04-03T00:00:00", "2026-04-05T00:00:00"),
        ("20 * * * *", "Australia/Lord_Howe", "2026-10-02T00:00:00", "2026-10-04T00:00:00"),
        ("0 0 1 * *", "America/New_York", "2026-01-01T00:00:00", "2026-12-31T00:00:00"),
    ],
)
def test_the_expected_windows_are_those_that_the_scheduler_runs(
    cron: str, zone: str, since: str, until: str
) -> None:
    """Asked one after the other as it asks, over the days on which clocks change too; the last may end at the bound."""
    timetable = WindowTimetable(cron, zone)
    scheduled: list[Window] = []
    last = None
    while (last := _next(timetable, last, since)) and last.end <= at(until):
        scheduled.append(Window(last.start, last.end))

    assert len(scheduled) > 2
    assert all(one.end == following.start for one, following in pairwise(scheduled))
    assert list(windows_between(timetable, at(since), at(until))) == scheduled


def test_no_window_outside_of_the_active_time_is_expected() -> None:
    """The audit must not miss what was never to be run."""
    active = (datetime(2026, 11, 20, 9, 30, tzinfo=UTC), datetime(2026, 11, 20, 12, 30, tzinfo=UTC))
    timetable = WindowTimetable("0 * * * *", "UTC", *active)

    found = list(windows_between(timetable, at("2026-11-20T00:00:00"), at("2026-11-21T00:00:00")))

    assert [window.start.hour for window in found] == [10, 11]


def test_the_latest_window_ends_at_the_bound_or_before() -> None:
    """On a tick it is the one that ends there."""
    for bound in ("2026-11-20T11:00:00", "2026-11-20T11:59:59"):
        assert HOURLY.latest_window(at(bound)).end == at("2026-11-20T11:00:00")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    "schedule",
    [
        "*/15 * * * *",
        "@hourly",
        "30 * * * *",
        "30 1-3 * * *",
        "0 */2 * * *",
        "@daily",
        "15 2 * * *",
        "0 6 * * mon-fri",
        "0 0 1,15 * *",
        "0 0 13 * 5",
        "@weekly",
        "@quarterly",
        "0 12 29 2 *",
    ],
)
def test_a_desk_without_airflow_has_the_same_windows(contracts: Path, schedule: str, zone: str) -> None:
    """Through two changes of the clocks: `tieout watch` and the scheduler never cut time differently."""
    file = write_contract(contracts, "orders", f'timezone: "{zone}"')
    file.write_text(file.read_text().replace('schedule: "0 * * * *"', f'schedule: "{schedule}"'))
    contract = load_contract(file)
    timetable = timetable_of(contract)
    assert timetable is not None

    for since in (datetime(2026, 3, 1, 0, 10, tzinfo=UTC), datetime(2026, 10, 20, 0, 10, tzinfo=UTC)):
        ours = list(islice(windows_from(contract, since), 200))
        theirs = list(windows_between(timetable, since, ours[-1].end))

        assert len(ours) == 200
        assert ours == theirs
