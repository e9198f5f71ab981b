"""Where in a run the faults strike: each at a place of its own, so that none disturbs another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tieout.errors import UsageError
from tieout.simulation.faults import Fault

_TRIES = 100


@dataclass(frozen=True)
class Plan:
    """Which fault begins in which line and round."""

    faults: Mapping[tuple[int, int], Fault]

    def at(self, line: int, turn: int) -> Fault | None:
        """Return the fault that begins there, None where none does."""
        return self.faults.get((line, turn))


@dataclass
class _Grid:
    """The rounds of every line, and which of them are taken."""

    lines: int
    rounds: int
    rng: Random
    taken: list[bytearray] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = [bytearray(self.rounds + 1) for _ in range(self.lines)]

    def places(self, fault: Fault, length: int, lines: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield places that the fault could have: first at random, then all."""
        first = 0 if fault.when == "first" else 1
        last = self.rounds - length if fault.when != "first" else 0
        if last < first or not lines:
            return
        if fault.when == "anywhere":
            for _ in range(_TRIES):
                yield self.rng.choice(lines), self.rng.randint(first, last)
        starts = (last,) if fault.when == "last" else range(first, last + 1)
        for line in self.rng.sample(lines, len(lines)):
            for start in starts:
                yield line, start

    def take(self, fault: Fault, length: int, lines: Sequence[int]) -> tuple[int, int] | None:
        """Take a free place for the fault and a round without faults after it; return it, None where there is none."""
        for line, start in self.places(fault, length, lines):
            span = slice(start, start + length + 1)
            if not any(self.taken[line][span]):
                self.taken[line][span] = b"\x01" * len(self.taken[line][span])
                return line, start
        return None


def planned(
    faults: Mapping[Fault, float], policies: Sequence[str], rounds: int, latency_rounds: int, rng: Random
) -> Plan:
    """Return a plan in which each fault strikes its share of the batches, and at least once.

    `faults` are rates by fault, `policies` the cleanup policy of each line's topic, `latency_rounds` how many rounds a
    message may stay without effect. A fault that begins or ends a partition strikes its share of the partitions.

    Raises:
        UsageError: where there is no room for all of them; it says what would make room.
    """
    grid = _Grid(len(policies), rounds, rng)
    chosen: dict[tuple[int, int], Fault] = {}
    # The ends of lines have least room, then the longest stories.
    rigid = sorted(faults, key=lambda one: (one.when == "anywhere", -one.rounds(latency_rounds), one.name))
    for fault in rigid:
        lines = [line for line, policy in enumerate(policies) if fault.policy in (None, policy)]
        length = fault.rounds(latency_rounds)
        room = len(lines) * (rounds if fault.when == "anywhere" else 1)
        for _ in range(max(1, round(faults[fault] * room))):
            place = grid.take(fault, length, lines)
            if place is None:
                raise UsageError(
                    f"faults.{fault.name}: no room for it in {len(lines)} fitting partitions of {rounds} batches "
                    f"beside the other faults (it takes {length} batches in a row); simulate more messages or "
                    "partitions, or lower the rates"
                )
            chosen[place] = fault
    return Plan(chosen)
