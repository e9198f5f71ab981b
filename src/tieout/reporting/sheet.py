"""The balance sheet of a statement: which counts add up to which, per partition and in total.

The sums are those of docs/reference/taxonomy.md, section 5; the numbers are the statement's, only
totals and differences are computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tieout.model import OFFSET_STATES

ATTEMPTS: Final = ("acked_attempts", "failed_attempts", "unknown_attempts")
MESSAGES: Final = ("accepted", "unproven", "failed")
DISPOSITIONS: Final = (
    "delivered", "dead_lettered", "filtered", "unverifiable", "compacted", "lost", "in_flight",
)  # fmt: skip
EFFECTS: Final = ("first_effects", "further_effects", "phantom_effects", "unverifiable_effects")
SUMS: Final[dict[str, tuple[str, ...]]] = {
    "attempts": ATTEMPTS,
    "messages": MESSAGES,
    "accepted": DISPOSITIONS,
    "effects": EFFECTS,
}
COUNTS: Final = ("attempts", *ATTEMPTS, "messages", "resends", *MESSAGES, *DISPOSITIONS, "effects", *EFFECTS)
"""Every count of a partition, in the order in which people read them."""


@dataclass(frozen=True)
class Line:
    """One count: its values per partition, and their total."""

    name: str
    values: tuple[int, ...]

    @property
    def total(self) -> int:
        """The count over all partitions."""
        return sum(self.values)


@dataclass(frozen=True)
class Account:
    """One sum of the sheet: a whole, and the terms that must add up to it in every partition."""

    whole: Line
    terms: tuple[Line, ...]

    @property
    def difference(self) -> int:
        """By how much the terms miss the whole, over all partitions; 0 in a sound statement."""
        columns = zip(self.whole.values, zip(*(term.values for term in self.terms), strict=True), strict=True)
        return sum(abs(whole - sum(terms)) for whole, terms in columns)


def accounts(statement: Mapping[str, Any]) -> tuple[Account, ...]:
    """Return the sheet's sums: attempts, messages, accepted, effects, and offsets if there is a log."""
    partitions: Sequence[Mapping[str, Any]] = statement["partitions"]
    if not partitions:
        return ()
    sums = tuple(
        Account(_line(whole, partitions), tuple(_line(term, partitions) for term in terms))
        for whole, terms in SUMS.items()
    )
    offsets = [row["offsets"] for row in partitions]
    return sums if all(line is None for line in offsets) else (*sums, _offsets(partitions))


def _line(name: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    return Line(name, tuple(int(row[name]) for row in rows))


def _offsets(partitions: Sequence[Mapping[str, Any]]) -> Account:
    """Return the log's positions by state; a partition without a log has none, a sparse one only the named ones."""
    states_by_partition = [row["offsets"] or {} for row in partitions]
    not_states = ("from", "to", "is_sparse", "unexplained")
    states = dict.fromkeys(
        name for counts in states_by_partition for name in counts if name not in not_states
    )
    whole = Line("log offsets", tuple(map(_width, states_by_partition)))
    terms = [Line(state, tuple(counts.get(state, 0) for counts in states_by_partition)) for state in states]
    return Account(whole, (*terms, _line("unexplained", partitions)))


def _width(offsets: Mapping[str, Any]) -> int:
    if offsets.get("is_sparse"):
        return sum(int(offsets[state]) for state in OFFSET_STATES)
    return int(offsets.get("to", 0)) - int(offsets.get("from", 0))


def place_of(topic: str | None, partition: int | None) -> str:
    """Return the name of a partition.

    >>> place_of("orders", 0), place_of(None, None)
    ('orders-0', 'no partition')
    """
    if topic is None and partition is None:
        return "no partition"
    return f"{'?' if topic is None else topic}-{'?' if partition is None else partition}"
