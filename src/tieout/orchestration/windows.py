"""Which window a run judges, and from when on: pure functions, without Airflow."""

from __future__ import annotations

from datetime import datetime, timedelta

from tieout.contracts.times import FIRST, LAST
from tieout.errors import UsageError
from tieout.model import Window

_HOW = "give both window_start and window_end (ISO 8601 with a time zone) when triggering, or run a backfill"


def window_of(
    *,
    requested: tuple[str | None, str | None],
    interval: tuple[datetime | None, datetime | None],
) -> Window:
    """Return the window in the run's parameters, else the run's data interval.

    >>> window_of(requested=("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"), interval=(None, None)).end.hour
    11

    Args:
        requested: The parameters `window_start` and `window_end`; Airflow does not check their format.
        interval: The run's data interval; a run without a logical date has none.

    Raises:
        UsageError: where one of the two is missing, is no time, or the window is empty or reversed.
    """
    start, end = (
        _time(name, text) for name, text in zip(("window_start", "window_end"), requested, strict=True)
    )
    if (start is None) != (end is None):
        given, missing = ("window_start", "window_end") if end is None else ("window_end", "window_start")
        raise UsageError(f"{given} is given and {missing} is not: {_HOW}")
    if start is None or end is None:
        start, end = interval
    if start is None or end is None:
        raise UsageError(f"this run has no data interval, so there is no window to judge: {_HOW}")
    if end <= start:
        raise UsageError(f"the window {start.isoformat()} .. {end.isoformat()} is empty or reversed: {_HOW}")
    return Window(start, end)


def judged_from(window: Window, grace: timedelta) -> datetime:
    """Return when the window's evidence can be complete: at the end of the grace after it."""
    return window.end + grace


def refusal(window: Window, grace: timedelta, now: datetime) -> str:
    """Return why a window that is not over yet is not judged."""
    due = judged_from(window, grace)
    return (
        f"the window {window.start.isoformat()} .. {window.end.isoformat()} is not over: with its grace of "
        f"{grace} it can be judged from {due.isoformat()} on, and it is {now.isoformat(timespec='seconds')}; "
        "run it again then, or choose an earlier window"
    )


def _time(name: str, text: str | None) -> datetime | None:
    if text is None or text == "":
        return None
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name}: expected an ISO 8601 time such as 2026-11-20T10:00:00Z, found {text!r}"
        ) from None
    if found.tzinfo is None:
        raise UsageError(f"{name}: expected a time zone, such as Z at the end, found {text!r}")
    if not FIRST <= found <= LAST:
        raise UsageError(f"{name}: expected a time between 1970 and 2100, found {text!r}")
    return found
