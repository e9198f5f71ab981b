"""Which time a schedule promises, where lines lie, how evidence stands, and whose forms count."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tieout.model import BreakClass, Cause, Guarantee, Severity, Verdict, Window
from tieout.store.views import Buckets, LocatedIncident, PipelineHead
from tieout.web.access import is_same_origin
from tieout.web.evidence import sides_of
from tieout.web.health import expected_time
from tieout.web.offset_lines import WIDTH, offset_lines
from tieout.web.periods import TICKS, Period, buckets_until
from tieout.web.plots import Series, plot
from tieout.web.repairs import repairs

HOUR = timedelta(hours=1)
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
DAY = Buckets(datetime(2026, 11, 20, tzinfo=UTC), HOUR, 24)
HEAD = PipelineHead(
    pipeline="orders",
    group="loader",
    guarantee=Guarantee.EXACTLY_ONCE,
    run_id="r",
    window=Window(TEN - HOUR, TEN),
    verdict=Verdict.KEPT,
    published_at=TEN,
    contract_digest="d",
    description="",
    owner="",
    schedule="0 * * * *",
    grace=timedelta(minutes=15),
    active_from=None,
    active_until=None,
    first_start=TEN - 3 * HOUR,
)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (TEN + timedelta(minutes=30), TEN),
        # The window from ten is due at 11:15, and missing an hour later.
        (TEN + 2 * HOUR, TEN),
        (TEN + 2 * HOUR + timedelta(minutes=15), TEN + HOUR),
        (TEN + 100 * HOUR, DAY.end),
    ],
)
def test_a_window_is_missing_only_after_it_was_due(now: datetime, until: datetime) -> None:
    """Grace, and an hour of patience, pass before a window that nobody judged is called missing."""
    assert expected_time(HEAD, DAY, now) == Window(HEAD.first_start, until)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schedule": None}, None),
        ({"active_from": DAY.start - HOUR}, Window(DAY.start, DAY.end)),
        ({"active_until": TEN}, Window(TEN - 3 * HOUR, TEN)),
        ({"active_from": DAY.end, "active_until": DAY.end + HOUR}, None),
    ],
)
def test_a_schedule_promises_the_time_in_which_it_is_active(
    changes: dict[str, Any], expected: Window | None
) -> None:
    """Without a schedule nothing is missing, and outside of the contract's active time neither."""
    assert expected_time(replace(HEAD, **changes), DAY, TEN + 100 * HOUR) == expected


@pytest.mark.parametrize(
    ("period", "first"),
    [
        (Period.DAY, datetime(2026, 11, 20, 12, tzinfo=UTC)),
        (Period.WEEK, datetime(2026, 11, 17, tzinfo=UTC)),
        (Period.MONTH, datetime(2026, 10, 26, tzinfo=UTC)),
    ],
)
def test_a_day_is_named_where_it_begins(period: Period, first: datetime) -> None:
    """Whenever one looks: hours by their threes, days at midnight, months at their Mondays."""
    buckets = buckets_until(period, TEN + timedelta(days={Period.DAY: 1, Period.WEEK: 3}.get(period, 0)))

    starts = [buckets.bounds(number).start for number in range(buckets.count)]
    named = [
        buckets.bounds(number).start
        for number in range(buckets.count)
        if TICKS[period].has(buckets.bounds(number))
    ]

    assert starts[0] < first
    assert named[0] == first
    assert len({later - earlier for earlier, later in pairwise(named)}) == 1


@pytest.mark.parametrize("period", Period)
def test_a_period_ends_with_the_moment_asked_for(period: Period) -> None:
    """The last bucket holds the moment before, and the same period is given for its own end."""
    buckets = buckets_until(period, TEN + timedelta(minutes=1))

    assert buckets.end - buckets.step < TEN + timedelta(minutes=1) <= buckets.end
    assert buckets_until(period, buckets.end) == buckets


def _row(**states: int) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offsets": {"from": 100, "to": 200, **states}, "unexplained": 0}


def _incident(first: int, last: int) -> LocatedIncident:
    return LocatedIncident("t", 0, f"{first}", "LOST", Severity.CRITICAL, 1, first, last)


def test_a_partition_is_drawn_to_scale() -> None:
    """Shares fill the width by their counts, and an incident lies between its offsets."""
    (line,) = offset_lines([_row(delivered=75, lost=25)], [_incident(150, 174), _incident(10, 20)])

    assert [(share.state, share.x, share.width) for share in line.shares] == [
        ("delivered", 0, WIDTH * 0.75),
        ("lost", WIDTH * 0.75, WIDTH * 0.25),
    ]
    assert [(one.x, one.width) for one in line.placed] == [(WIDTH * 0.5, WIDTH * 0.25)]
    assert line.elsewhere == 1


def test_one_lost_message_of_a_million_is_seen() -> None:
    """An incident is never narrower than two units, and never beyond the line's end."""
    row = {**_row(), "offsets": {"from": 0, "to": 1_000_000, "delivered": 999_999, "lost": 1}}

    (line,) = offset_lines([row], [_incident(999_999, 999_999)])

    assert (line.placed[0].width, line.placed[0].x) == (2, WIDTH - 2)
    assert offset_lines([{**_row(), "offsets": None}], []) == ()


def test_no_name_below_a_plot_is_cut_off() -> None:
    """A week whose last quarter begins a Monday does not name that Monday: there is no room right of it."""
    week = buckets_until(Period.WEEK, datetime(2026, 11, 23, 1, tzinfo=UTC))
    made = plot("t", [Series("one", (1.0,) * week.count)], week, TICKS[Period.WEEK], str)

    assert [mark.text for mark in made.x_marks] == [
        "Tue 17",
        "Wed 18",
        "Thu 19",
        "Fri 20",
        "Sat 21",
        "Sun 22",
    ]


def test_a_line_is_broken_where_a_value_is_missing() -> None:
    """Nothing known is not drawn as zero."""
    values: tuple[float | None, ...] = (1.0, None, 2.0, 4.0)
    made = plot("t", [Series("one", values)], Buckets(TEN, HOUR, 4), TICKS[Period.DAY], str)

    (line,) = made.lines
    assert [step[0] for step in line.path.split(" ") if step[0].isalpha()] == ["M", "M", "L"]
    assert len(line.points) == 3
    assert plot("t", [Series("one", (None,))], Buckets(TEN, HOUR, 1), TICKS[Period.DAY], str).is_empty


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"sec-fetch-site": "same-origin", "host": "airflow"}, True),
        ({"sec-fetch-site": "same-site", "origin": "http://airflow", "host": "airflow"}, False),
        ({"sec-fetch-site": "cross-site", "host": "airflow"}, False),
        ({"sec-fetch-site": "none", "host": "airflow"}, False),
        ({"origin": "http://airflow:8080", "host": "airflow:8080"}, True),
        ({"origin": "http://airflow:8081", "host": "airflow:8080"}, False),
        ({"origin": "null", "host": "airflow"}, False),
        ({"origin": "http://[airflow", "host": "airflow"}, False),
        ({"origin": "http://air\u2100flow", "host": "airflow"}, False),
        ({"host": "airflow", "authorization": "Bearer token"}, False),
        ({}, False),
    ],
)
def test_only_our_own_pages_may_change_something(headers: dict[str, str], expected: bool) -> None:
    """A form on another site, an unknown sender, and a token alone are all refused."""
    assert is_same_origin(headers) is expected


def test_repairs_are_for_causes_and_classes_that_there_are() -> None:
    """A misspelt cause would never be found; every cause that is told has a repair."""
    assert set(repairs()["causes"]) == {cause.value for cause in Cause} - {Cause.UNKNOWN.value}
    assert set(repairs()["classes"]) <= {name.value for name in BreakClass}


def test_evidence_stands_side_by_side() -> None:
    """Ledgers in the order of the way, one line a field, and what two rows contradict each other in is marked."""
    sides = sides_of(
        {
            "delivered": [{"message_id": "m", "payload_hash": "b"}],
            "produced": [
                {"message_id": "m", "payload_hash": "a", "note": None},
                {"message_id": "m", "sequence": 2},
            ],
            "elsewhere": "text",
        }
    )

    assert sides.ledgers == ("produced", "produced", "delivered", "elsewhere")
    assert [(field.name, field.values, field.differs) for field in sides.fields] == [
        ("message_id", ("m", "m", "m", None), False),
        ("payload_hash", ("a", None, "b", None), True),
        ("sequence", (None, "2", None, None), False),
        ("value", (None, None, None, "text"), False),
    ]
