"""Which window a run judges: asked for, or its data interval; never a guess."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tieout.errors import UsageError
from tieout.model import Window
from tieout.orchestration.windows import judged_from, refusal, window_of

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
ELEVEN = datetime(2026, 11, 20, 11, tzinfo=UTC)


def test_without_parameters_the_window_is_the_data_interval() -> None:
    """A scheduled run or a backfill judges its interval."""
    assert window_of(requested=(None, None), interval=(TEN, ELEVEN)) == Window(TEN, ELEVEN)


def test_parameters_win_over_the_data_interval() -> None:
    """A manual run may ask for any window, in any time zone."""
    requested = ("2026-11-19T10:00:00+01:00", "2026-11-19T10:30:00Z")

    found = window_of(requested=requested, interval=(TEN, ELEVEN))

    assert found == Window(datetime(2026, 11, 19, 9, tzinfo=UTC), datetime(2026, 11, 19, 10, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("requested", "interval", "expected"),
    [
        ((None, None), (None, None), "no data interval"),
        (("2026-11-20T10:00:00Z", None), (TEN, ELEVEN), "window_end is not"),
        ((None, "2026-11-20T10:00:00Z"), (TEN, ELEVEN), "window_start is not"),
        (
            (TEN.isoformat(), "9999-12-31T23:59:59Z"),
            (TEN, ELEVEN),
            "window_end: expected a time between 1970",
        ),
        (
            ("0001-01-01T00:00:00+14:00", TEN.isoformat()),
            (TEN, ELEVEN),
            "window_start: expected a time between",
        ),
        (("bogus", "2026-11-20T10:00:00Z"), (TEN, ELEVEN), "window_start: expected an ISO 8601 time"),
        (("2026-11-20T10:00:00", "2026-11-20T11:00:00Z"), (TEN, ELEVEN), "expected a time zone"),
        (("2026-11-20T11:00:00Z", "2026-11-20T10:00:00Z"), (TEN, ELEVEN), "empty or reversed"),
        ((None, None), (TEN, TEN), "empty or reversed"),
        (("", ""), (None, None), "no data interval"),
    ],
)
def test_what_is_no_window_is_refused(
    requested: tuple[str | None, str | None], interval: tuple[datetime | None, datetime | None], expected: str
) -> None:
    """The message says what is wrong and how to ask for a window."""
    with pytest.raises(UsageError, match=expected):
        window_of(requested=requested, interval=interval)


def test_a_window_is_judged_after_its_grace() -> None:
    """The grace is part of what must have passed, and the refusal names the time."""
    window, grace = Window(TEN, ELEVEN), timedelta(minutes=15)

    assert judged_from(window, grace) == ELEVEN + grace
    assert "2026-11-20T11:15:00+00:00" in refusal(window, grace, ELEVEN)
