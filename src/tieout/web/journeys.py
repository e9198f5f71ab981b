"""The path of a message in a break's evidence: its stages, and their times on one line, drawn to scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tieout.contracts.times import parse_time
from tieout.model import NON_MESSAGE_CLASSES, POSITION_LEDGERS
from tieout.reporting.trace import journey
from tieout.store.views import TracedBreak

WIDTH: Final = 720.0
MARGIN: Final = 16.0
CLOSE: Final = 20.0
"""Marks that would lie closer than this share one place and one label."""

MOST_NUMBERS: Final = 3
"""How many numbers a label lists."""

_SEEN: Final = "seen"
_UNKNOWN: Final = "not told"


@dataclass(frozen=True)
class Step:
    """A line of the journey: a row, or what the absence of rows means; `number` is its mark's, if it has a time."""

    stage: str
    state: str
    at: str | None
    since: str | None
    words: str
    number: int | None


@dataclass(frozen=True)
class Mark:
    """One place on the line of time, and which steps happened there."""

    x: float
    numbers: tuple[int, ...]
    text: str

    @property
    def label(self) -> str:
        """The steps' numbers.

        >>> Mark(0.0, (1, 2), "").label, Mark(0.0, (1, 2, 3, 4), "").label
        ('1, 2', '1 to 4')
        """
        if len(self.numbers) > MOST_NUMBERS:
            return f"{self.numbers[0]} to {self.numbers[-1]}"
        return ", ".join(str(number) for number in self.numbers)


@dataclass(frozen=True)
class Journey:
    """A message's steps in path order, and the marks of the steps with a time, in time order."""

    steps: tuple[Step, ...]
    marks: tuple[Mark, ...]


def journey_of(traced: TracedBreak, form: str | None = None) -> Journey:
    """Return the path of the message of a break, or of the records at the break's positions.

    A break of a message has the first rows of every ledger about it, so missing rows of a ledger that covers the window
    are evidence. Other breaks have the rows at their positions, and only breaks of commits have commits; there missing
    rows prove nothing.
    """
    broken = traced.broken
    rows = {ledger: found for ledger, found in broken.evidence.items() if _is_rows(found)}
    is_of_message = broken.class_name not in NON_MESSAGE_CLASSES
    coverage = {
        ledger: {"complete_until": None, "gap": None, **ledger_coverage}
        for ledger, ledger_coverage in traced.coverage.items()
        if is_of_message and ledger not in POSITION_LEDGERS
    }
    stages = journey(
        rows,
        declared=traced.ledgers or None,
        coverage=coverage,
        message_id=broken.message_id,
        group=traced.group,
        form=form,
    )
    return _drawn([step for stage in stages for step in _steps(stage)])


def _is_rows(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(row, Mapping) for row in found)


def _steps(stage: Mapping[str, Any]) -> Iterable[Step]:
    for step in stage["steps"]:
        yield Step(stage["stage"], _SEEN, step["at"], None, step["words"], None)
    if stage["state"] == "absent":
        yield Step(stage["stage"], _UNKNOWN, None, None, "no row is kept with this break", None)
    elif stage["note"] is not None:
        yield Step(stage["stage"], stage["state"].replace("_", " "), None, None, stage["note"], None)


def _drawn(steps: Sequence[Step]) -> Journey:
    """Return the steps numbered in the order of time, and the marks of their times."""
    timed = [(moment, place) for place, step in enumerate(steps) if (moment := _time(step.at)) is not None]
    timed.sort()
    if not timed:
        return Journey(tuple(steps), ())
    first, last = timed[0][0], timed[-1][0]
    length = (last - first).total_seconds()
    numbered = list(steps)
    marks: list[Mark] = []
    for number, (moment, place) in enumerate(timed, start=1):
        seconds = (moment - first).total_seconds()
        since = f"+{seconds:,.3f} s"
        step = steps[place]
        numbered[place] = Step(step.stage, step.state, step.at, since, step.words, number)
        x = MARGIN + (WIDTH - 2 * MARGIN) * (seconds / length if length else 0.0)
        text = f"{number}: {step.stage}, {since}"
        if marks and x - marks[-1].x < CLOSE:
            before = marks.pop()
            marks.append(Mark(before.x, (*before.numbers, number), f"{before.text}; {text}"))
        else:
            marks.append(Mark(x, (number,), text))
    return Journey(tuple(numbered), tuple(marks))


def _time(text: object) -> datetime | None:
    try:
        return parse_time(str(text))
    except ValueError:
        return None
