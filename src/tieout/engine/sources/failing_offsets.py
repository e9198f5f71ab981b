"""Finds the unreadable offsets of a partition by bisection: reading a span only shows that some offset fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

Span = tuple[int, int]
"""The first offset, and the one after the last."""

MOST: Final = 16
"""The most records of a topic that are searched for: each takes two small reads per halving of its partition."""


def failing(span: Span, fails: Callable[[int, int], bool]) -> Iterator[int]:
    """Yield the offsets in the span at which reading fails, in order; a single one makes its span fail.

    >>> list(failing((0, 8), lambda first, end: first <= 2 < end or first <= 7 < end))
    [2, 7]
    """
    first, end = span
    if first >= end or not fails(first, end):
        return
    if end - first == 1:
        yield first
        return
    middle = (first + end) // 2
    yield from failing((first, middle), fails)
    yield from failing((middle, end), fails)


def without(span: Span, offsets: Collection[int]) -> list[Span]:
    """Return the span without these offsets, as spans that are not empty.

    >>> without((0, 8), [2, 7]), without((3, 3), []), without((3, 5), [9])
    ([(0, 2), (3, 7)], [], [(3, 5)])
    """
    first, end = span
    inside = sorted(offset for offset in offsets if first <= offset < end)
    gaps = zip([first, *(offset + 1 for offset in inside)], [*inside, end], strict=True)
    return [(start, until) for start, until in gaps if start < until]
