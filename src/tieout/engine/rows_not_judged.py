"""Coverage notes on good rows that are not judged: those that `where` leaves out, and those of other groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.counting import Counts
from tieout.engine.scope import is_of_group
from tieout.engine.sources.source import Reading, is_of_spark
from tieout.model import SMALL_BYTES

_NAMED_GROUPS: Final = 100
_SHOWN_GROUPS: Final = 5


def notes_on_left_out_rows(left_out: DataFrame | None, reading: Reading, counts: Counts) -> tuple[str, ...]:
    """Return a note on how many rows `where` leaves out, if counting them is cheap or no row remains."""
    is_cheap = reading.is_columnar or reading.size <= SMALL_BYTES
    if left_out is None or not (is_cheap or counts.rows == 0):
        return ()
    try:
        count = left_out.count()
    except Exception as error:
        if not is_of_spark(error):
            raise
        return ()  # unreadable inputs are named when the remaining rows are read
    note = f"where leaves out {count} rows"
    return (
        () if count == 0 else (note if counts.rows else f"{note}, and none is left: does it fit the values?",)
    )


@dataclass(frozen=True)
class OtherGroups:
    """Rows of other groups than the judged one: a note on them, and names that may be the judged one misspelled."""

    group: str
    notes: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

    @property
    def spelling(self) -> str:
        """The names that differ from the judged one only in what people rarely see."""
        return f"{', '.join(map(repr, self.alike))} and {self.group!r} differ only in case or blanks"


def other_groups(rows: DataFrame, group: str, counts: Counts) -> OtherGroups:
    """Return how many rows belong to other groups, and which of these may be the judged one misspelled."""
    if not counts.of_others:
        return OtherGroups(group)
    found = (
        rows.where(~is_of_group(group))
        .groupBy("consumer_group")
        .count()
        .orderBy(F.desc("count"), "consumer_group")
    )
    named = {row["consumer_group"]: row["count"] for row in found.limit(_NAMED_GROUPS).collect()}
    shown = ", ".join(f"{name} ({count})" for name, count in list(named.items())[:_SHOWN_GROUPS])
    others = OtherGroups(group, alike=tuple(name for name in named if _spelled(name) == _spelled(group)))
    more = f"; {others.spelling}" if others.alike else ""
    note = (
        f"{counts.of_others} of {counts.rows} rows are set aside, of other groups than {group}: {shown}{more}"
    )
    return replace(others, notes=(note,))


def _spelled(group: str) -> str:
    """Return a group's name without case and blanks, in which people rarely see a difference.

    >>> _spelled("Loader ") == _spelled("loader")
    True
    """
    return "".join(group.split()).casefold()
