"""The missing entries of a Pulsar topic: a count, and the names of a few, as statistics may claim any number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tieout.engine.systems.pulsar_positions import Place

_NAMED: Final = 5
"""How many of a partition's missing entries are named."""
_KEPT: Final = 1_000
"""How many keep their numbers, so that some can still be named once the first ledgers are deleted."""


@dataclass
class Missing:
    """How many entries of each ledger are missing, and the first of them."""

    _counts: dict[int, int] = field(default_factory=dict)
    _first: list[Place] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return whether any is missing."""
        return bool(self._counts)

    def add(self, ledger: int, entries: Iterable[int], count: int) -> None:
        """Add missing entries of a ledger: their number, and the first few of them."""
        if count == 0:
            return
        self._counts[ledger] = self._counts.get(ledger, 0) + count
        self._first += ((ledger, entry) for entry in islice(entries, min(_NAMED, _KEPT - len(self._first))))

    def forget_before(self, ledger: int) -> bool:
        """Drop the missing entries of earlier ledgers, and return whether there were any."""
        passed_ledgers = [number for number in self._counts if number < ledger]
        for number in passed_ledgers:
            del self._counts[number]
        self._first = [place for place in self._first if place[0] >= ledger]
        return bool(passed_ledgers)

    @property
    def shown(self) -> str:
        """The first missing entries, and the count of the others.

        >>> missing = Missing()
        >>> missing.add(5, range(3, 1000), 997)
        >>> missing.shown
        'no entry 5:3, 5:4, 5:5, 5:6, 5:7 and 992 more'
        """
        named = [f"{ledger}:{entry}" for ledger, entry in self._first[:_NAMED]]
        more = sum(self._counts.values()) - len(named)
        if not named:
            return f"{more} entries are not there"
        return f"no entry {', '.join(named)}" + (f" and {more} more" if more else "")
