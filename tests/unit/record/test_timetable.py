"""When a recording happens: inside one interval of the contracts' schedule, and judged after its grace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tools.record.timetable import GRACE, Timetable


@pytest.mark.parametrize(
    ("moment", "start"),
    [("12:01:59.999", "12:02"), ("12:02:00", "12:02"), ("12:02:00.001", "12:04"), ("23:59:30", "00:00")],
)
def test_the_next_window_starts_at_an_even_minute(moment: str, start: str) -> None:
    """Windows are those of the cron expression `*/2 * * * *`."""
    timetable = Timetable.following(datetime.fromisoformat(f"2026-11-21T{moment}+00:00"))

    assert f"{timetable.start:%H:%M}" == start
    assert timetable.end - timetable.start == timedelta(minutes=2)


def test_the_recorder_keeps_inside_the_window_and_takes_evidence_after_its_grace() -> None:
    """Nothing happens at a bound itself, where a clock's tick would decide."""
    timetable = Timetable.following(datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC))

    assert timetable.start < timetable.open_at < timetable.close_at < timetable.end
    assert timetable.extract_at > timetable.end + GRACE
