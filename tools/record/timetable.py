"""The timetable of a recording: one window of two minutes, and the evidence extracted after its grace."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LENGTH = timedelta(minutes=2)
GRACE = timedelta(seconds=20)
_MARGIN = timedelta(seconds=2)
"""The recorder's own distance from the window's bounds."""


@dataclass(frozen=True)
class Timetable:
    """One window `[start, end)`; its length divides the hour, so it is an interval of a cron schedule."""

    start: datetime
    end: datetime

    @classmethod
    def following(cls, moment: datetime) -> Timetable:
        """Return the first window that starts at `moment` or after.

        >>> Timetable.following(datetime(2026, 11, 21, 12, 1, 30, tzinfo=UTC)).start.isoformat()
        '2026-11-21T12:02:00+00:00'
        """
        epoch = datetime.fromtimestamp(0, UTC)
        start = epoch + -(-(moment - epoch) // LENGTH) * LENGTH
        return cls(start, start + LENGTH)

    @property
    def open_at(self) -> datetime:
        """The time from which the recorder acts."""
        return self.start + _MARGIN

    @property
    def close_at(self) -> datetime:
        """The time by which the recorder must have finished."""
        return self.end - _MARGIN

    @property
    def extract_at(self) -> datetime:
        """The time at which the evidence covers the window and its grace."""
        return self.end + GRACE + _MARGIN


def sleep_until(moment: datetime) -> None:
    """Sleep until `moment`; return immediately if it has passed."""
    time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))
