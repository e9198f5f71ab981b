"""The plots of a pipeline: rates, latencies, offsets and what was in flight, over a period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tieout.store.reader import Reader
from tieout.store.views import Buckets, HistoryPoint, OffsetPoint
from tieout.web.periods import Ticks
from tieout.web.plots import MOST_LINES, Plot, Series, plot
from tieout.web.rendering import number, place

_Value = Callable[[HistoryPoint], float | None]

RATES: Final[dict[str, _Value]] = {
    "lost": lambda point: ratio(point.lost, point.accepted - point.in_flight),
    "duplicated": lambda point: ratio(point.further_effects, point.first_effects),
    "late": lambda point: ratio(point.late, point.accepted),
}
"""The budgets' ratios (docs/reference/taxonomy.md, section 6), over all windows of a bucket together."""

LATENCIES: Final[dict[str, _Value]] = {
    "median": lambda point: point.p50,
    "95 %": lambda point: point.p95,
    "99 %": lambda point: point.p99,
}


def plots_of(reader: Reader, pipeline: str, buckets: Buckets, ticks: Ticks) -> tuple[Plot, ...]:
    """Return the plots of a pipeline that have something to show."""
    points = reader.history(pipeline, buckets)
    offsets = reader.offsets_history(pipeline, buckets)
    made = (
        plot(
            "Messages accepted",
            _series({"accepted": lambda p: p.accepted}, points, buckets),
            buckets,
            ticks,
            whole,
        ),
        plot(
            "Lost, duplicated and late, as shares", _series(RATES, points, buckets), buckets, ticks, percent
        ),
        plot(
            "Latency of the slowest window, in seconds",
            _series(LATENCIES, points, buckets),
            buckets,
            ticks,
            number,
        ),
        plot("Log offsets judged up to", _of_places(offsets, buckets, _end_offset), buckets, ticks, whole),
        plot("Lag: offsets still in flight", _of_places(offsets, buckets, _in_flight), buckets, ticks, whole),
    )
    return tuple(one for one in made if not one.is_empty)


def ratio(part: int, total: int) -> float | None:
    """Return a share; 0/0 is 0, and None stands for an undefined share.

    >>> ratio(0, 0), ratio(1, 4), ratio(1, 0)
    (0.0, 0.25, None)
    """
    if part == 0:
        return 0.0
    return part / total if total > 0 else None


def whole(value: float) -> str:
    """Return a count.

    >>> whole(1200.0)
    '1,200'
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def percent(value: float) -> str:
    """Return a share as percent, with as many digits as needed.

    >>> percent(0.5), percent(0.00001)
    ('50 %', '0.001 %')
    """
    return f"{value * 100:.4g} %"


def _series(values: dict[str, _Value], points: Sequence[HistoryPoint], buckets: Buckets) -> list[Series]:
    at = {point.bucket: point for point in points}
    return [
        Series(name, tuple(value(at[place]) if place in at else None for place in range(buckets.count)))
        for name, value in values.items()
    ]


def _end_offset(point: OffsetPoint) -> int:
    return point.end_offset


def _in_flight(point: OffsetPoint) -> int:
    return point.in_flight


def _of_places(
    points: Iterable[OffsetPoint], buckets: Buckets, value: Callable[[OffsetPoint], int]
) -> list[Series]:
    """Return one line per partition; if those are too many, one per topic with their sum, or one in all."""
    known = list(points)
    names: tuple[Callable[[OffsetPoint], str], ...] = (
        lambda point: place(point.topic, point.partition),
        lambda point: place(point.topic, None),
        lambda _: "all topics",
    )
    lines: dict[str, dict[int, int]] = {}
    for name_of in names:
        lines = defaultdict(lambda: defaultdict(int))
        for point in known:
            lines[name_of(point)][point.bucket] += value(point)
        if len(lines) <= MOST_LINES:
            break
    return [
        Series(name, tuple(line.get(number) for number in range(buckets.count)))
        for name, line in lines.items()
    ]
