"""Parses and formats times: ISO 8601 with a zone, held in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""Bounds of a window's times: arithmetic beyond them may exceed the range of PostgreSQL or Python."""


def parse_time(text: str) -> datetime:
    """Return the time of a text, in UTC.

    >>> parse_time("2026-11-20T11:00:00+01:00").isoformat()
    '2026-11-20T10:00:00+00:00'

    Raises:
        ValueError: if the text is not an ISO 8601 time, or has no zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2026-11-20T10:00:00Z, found {text!r}") from None
    if moment.tzinfo is None:
        raise ValueError(
            f"expected a time with its zone, found {text!r}; add Z for UTC or an offset such as +01:00"
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"expected a time between the years 1 and 9999 in UTC, found {text!r}") from None


def window_time(text: str) -> datetime:
    """Return the time of a text, in UTC, within the bounds of a window.

    >>> window_time("2026-11-20T10:00:00Z").year
    2026

    Raises:
        ValueError: as for `parse_time`, and for a time before 1970 or after 2100.
    """
    moment = parse_time(text)
    if not FIRST <= moment <= LAST:
        raise ValueError(f"expected a time between 1970 and 2100, found {text!r}")
    return moment


def format_time(moment: datetime) -> str:
    """Return an aware time as ISO 8601 in UTC with `Z`.

    >>> format_time(datetime(2026, 11, 20, 10, tzinfo=UTC))
    '2026-11-20T10:00:00Z'
    """
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def epoch_millis(moment: datetime) -> int:
    """Return an aware time in whole milliseconds since 1970, rounded down.

    >>> epoch_millis(datetime(1970, 1, 1, 0, 0, 1, 999, tzinfo=UTC))
    1000
    """
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
