"""A partition's judged offsets as a line drawn to scale, with its incidents at their offsets.

A statement counts how many positions are in each state, and names the first and last position of each incident.
So the upper bar shows shares only, and the lower line positions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tieout.model import OFFSET_STATES
from tieout.store.views import LocatedIncident

WIDTH: Final = 720.0
LEAST: Final = 2.0
"""The smallest width of an incident: one lost message of a million must be visible."""

STATES: Final = ("delivered", *(state for state in OFFSET_STATES if state != "delivered"), "unexplained")
"""The states in the order of the bar."""


@dataclass(frozen=True)
class Share:
    """The number of positions in a state, and the coordinates of its part of the bar."""

    state: str
    count: int
    x: float
    width: float


@dataclass(frozen=True)
class Placed:
    """An incident with its coordinates on the line."""

    incident: LocatedIncident
    x: float
    width: float


@dataclass(frozen=True)
class OffsetLine:
    """One partition: the judged offsets `[first, end)`, their states, and the incidents in them or at their edges."""

    topic: str | None
    partition: int | None
    first: int
    end: int
    shares: tuple[Share, ...]
    placed: tuple[Placed, ...]
    elsewhere: int

    @property
    def summary(self) -> str:
        """The bar in words."""
        return (
            ", ".join(f"{share.count:,} {share.state.replace('_', ' ')}" for share in self.shares) or "empty"
        )


def offset_lines(
    partitions: Iterable[Mapping[str, Any]], incidents: Sequence[LocatedIncident]
) -> tuple[OffsetLine, ...]:
    """Return the lines of the partitions of a statement that have a log and any positions; of no sparse ones."""
    return tuple(
        _line(
            row, [one for one in incidents if (one.topic, one.partition) == (row["topic"], row["partition"])]
        )
        for row in partitions
        if row["offsets"]
        and row["offsets"]["to"] > row["offsets"]["from"]
        and not row["offsets"].get("is_sparse")
    )


def _line(row: Mapping[str, Any], incidents: Sequence[LocatedIncident]) -> OffsetLine:
    first, end = int(row["offsets"]["from"]), int(row["offsets"]["to"])
    scale = WIDTH / (end - first)
    inside = [one for one in incidents if one.last_offset >= first and one.first_offset < end]
    return OffsetLine(
        row["topic"],
        row["partition"],
        first,
        end,
        tuple(_shares(row, scale)),
        tuple(_placed(one, first, end, scale) for one in inside),
        len(incidents) - len(inside),
    )


def _shares(row: Mapping[str, Any], scale: float) -> Iterable[Share]:
    counts = {**row["offsets"], "unexplained": row["unexplained"]}
    x = 0.0
    for state in STATES:
        count = int(counts.get(state, 0))
        if count:
            yield Share(state, count, x, count * scale)
            x += max(0.0, count * scale)


def _placed(incident: LocatedIncident, first: int, end: int, scale: float) -> Placed:
    begins = max(incident.first_offset, first)
    stops = min(incident.last_offset + 1, end)
    width = max(LEAST, (stops - begins) * scale)
    return Placed(incident, min((begins - first) * scale, WIDTH - width), width)
