"""The health of pipelines over time: the verdict of each window, and windows that were never judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tieout.model import Window
from tieout.store.reader import Reader
from tieout.store.views import Buckets, Gap, JudgedBucket, PipelineHead
from tieout.web.rendering import MISSING, STATES, period

TOLERANCE: Final = timedelta(hours=1)
"""How long a due window is neither judged nor missing."""


@dataclass(frozen=True)
class Cell:
    """A bucket of a pipeline: the worst state in it, None where nothing is expected, and all of it in words.

    `only` is the bucket's window where there is just one.
    """

    bounds: Window
    state: str | None
    counts: Mapping[str, int]
    missing: Window | None
    only: Window | None

    @property
    def text(self) -> str:
        """The text for screen readers and tooltips."""
        parts = [f"{count} {state}" for state, count in self.counts.items()]
        if self.missing is not None:
            parts.append(f"never judged: {period(self.missing)}")
        return f"{period(self.bounds)}: {', '.join(parts) or 'nothing expected'}"


@dataclass(frozen=True)
class Health:
    """One pipeline's buckets."""

    head: PipelineHead
    cells: tuple[Cell, ...]


def health_of(
    reader: Reader, heads: Sequence[PipelineHead], buckets: Buckets, now: datetime
) -> tuple[Health, ...]:
    """Return the buckets of each pipeline, in the order of the heads."""
    if not heads:
        return ()
    # Windows of one schedule differ in length, as months do, but not by a factor of two.
    reach = 2 * max(head.window.end - head.window.start for head in heads)
    judged = reader.health([head.pipeline for head in heads], buckets, reach)
    expected = {head.pipeline: time for head in heads if (time := expected_time(head, buckets, now))}
    gaps = reader.gaps(expected, buckets, reach) if expected else ()
    return tuple(Health(head, _cells(head.pipeline, buckets, judged, gaps)) for head in heads)


def expected_time(head: PipelineHead, buckets: Buckets, now: datetime) -> Window | None:
    """Return the time within the buckets whose windows should have been judged by now, None where there is none.

    It begins where the contract becomes active, or with the first judged window. After the latest window it
    continues in steps of that window's length, up to windows whose grace, and an hour or one window if that is
    shorter, is over. A pipeline without a schedule has no expected windows.
    """
    if head.schedule is None:
        return None
    length = head.window.end - head.window.start
    due = now - head.grace - min(length, TOLERANCE)
    further = max(0, (due - head.window.end) // length)
    ends = [head.window.end + length * further, buckets.end, head.active_until or buckets.end]
    since, until = max(head.active_from or head.first_start, buckets.start), min(ends)
    return Window(since, until) if since < until else None


def worst(states: Iterable[str]) -> str | None:
    """Return the worst of some states, None without any.

    >>> worst(["KEPT", "MISSING", "PENDING"])
    'MISSING'
    """
    return min(states, key=STATES.index, default=None)


def _cells(
    pipeline: str, buckets: Buckets, judged: Iterable[JudgedBucket], gaps: Iterable[Gap]
) -> tuple[Cell, ...]:
    found: dict[int, list[JudgedBucket]] = defaultdict(list)
    for part in judged:
        if part.pipeline == pipeline:
            found[part.bucket].append(part)
    missing = {gap.bucket: gap.span for gap in gaps if gap.pipeline == pipeline}
    return tuple(
        _cell(buckets.bounds(number), found[number], missing.get(number)) for number in range(buckets.count)
    )


def _cell(bounds: Window, judged: Sequence[JudgedBucket], missing: Window | None) -> Cell:
    counts = Counter[str]()
    for part in judged:
        counts[part.verdict.value] += part.windows
    state = worst([*counts, *([MISSING] if missing else [])])
    only = judged[0].span if counts.total() == 1 and missing is None else None
    return Cell(bounds, state, dict(counts), missing, only)
