"""Lines over time as SVG: positions are computed here; templates only write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

from tieout.store.views import Buckets
from tieout.web.periods import Ticks

WIDTH: Final = 560
HEIGHT: Final = 160
LEFT: Final = 64
NAME_HALF: Final = 20
"""The width of a bucket's label to the right of its position; a label without that room is left out."""
BOTTOM: Final = 22
TOP: Final = 8
MOST_LINES: Final = 8


@dataclass(frozen=True)
class Series:
    """The values of one line, one per bucket; None where a value is missing, which differs from zero."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Mark:
    """A position on an axis with its label, or a point with its text."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Line:
    """One drawn line: pieces of a path, broken where a value is missing, and its points."""

    name: str
    path: str
    points: tuple[Mark, ...]


@dataclass(frozen=True)
class Plot:
    """A drawn plot; `rows` has the same numbers as a table, for people who cannot see the plot."""

    title: str
    lines: tuple[Line, ...]
    x_marks: tuple[Mark, ...]
    y_marks: tuple[Mark, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no value to draw."""
        return not any(line.points for line in self.lines)


def plot(
    title: str, series: Sequence[Series], buckets: Buckets, ticks: Ticks, form: Callable[[float], str]
) -> Plot:
    """Return the plot of some series over the same buckets, from zero to a round number above the highest value.

    Args:
        title: The plotted quantity, with its unit.
        series: At most `MOST_LINES` lines.
        buckets: The time of each value.
        ticks: Which buckets have labels.
        form: Formats a value.
    """
    top = round_above(max((value for one in series for value in one.values if value is not None), default=0))
    names = [buckets.bounds(number).start for number in range(buckets.count)]
    return Plot(
        title,
        tuple(
            _line(one, buckets.count, top, form, [f"{name:%Y-%m-%d %H:%M}" for name in names])
            for one in series
        ),
        tuple(
            Mark(_x(number, buckets.count), HEIGHT - 6, f"{names[number]:{ticks.form}}")
            for number in range(buckets.count)
            if ticks.has(buckets.bounds(number)) and _x(number, buckets.count) + NAME_HALF <= WIDTH
        ),
        tuple(Mark(LEFT - 6, _y(top * part / 4, top), on_axis(top * part / 4, form)) for part in (0, 2, 4)),
        tuple(
            (f"{names[number]:%Y-%m-%d %H:%M}", tuple(_shown(one.values[number], form) for one in series))
            for number in range(buckets.count)
            if any(one.values[number] is not None for one in series)
        ),
    )


def round_above(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 and so on that is not below a value; 1 for 0.

    >>> round_above(0), round_above(3), round_above(0.07), round_above(200)
    (1.0, 5.0, 0.1, 200.0)
    """
    if value <= 0:
        return 1.0
    power: float = 10.0 ** floor(log10(value))
    return next(
        float(f"{step * power:.9g}") for step in (1, 2, 5, 10, 20) if step * power >= value * (1 - 1e-9)
    )


def on_axis(value: float, form: Callable[[float], str]) -> str:
    """Return a value as an axis label, which has room for nine characters; millions get a letter.

    >>> on_axis(200_000_000.0, "{:,.0f}".format), on_axis(2_500_000.0, "{:,.0f}".format)
    ('200 M', '2.5 M')
    >>> on_axis(5_000.0, "{:,.0f}".format), on_axis(5e15, "{:,.0f}".format)
    ('5,000', '5,000 T')
    """
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= power:
            return f"{value / power:,.6g} {letter}"
    return form(value)


def _line(one: Series, count: int, top: float, form: Callable[[float], str], names: Sequence[str]) -> Line:
    points = tuple(
        Mark(_x(number, count), _y(value, top), f"{one.name}, {names[number]}: {form(value)}")
        for number, value in enumerate(one.values)
        if value is not None
    )
    return Line(one.name, " ".join(_pieces(one.values, count, top)), points)


def _pieces(values: Sequence[float | None], count: int, top: float) -> Iterator[str]:
    """Yield the path's steps: a move after each missing value, a line otherwise."""
    is_drawing = False
    for number, value in enumerate(values):
        if value is not None:
            yield f"{'L' if is_drawing else 'M'}{_x(number, count):.1f} {_y(value, top):.1f}"
        is_drawing = value is not None


def _x(number: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - 8) * (number + 0.5) / count


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    return "-" if value is None else form(value)
