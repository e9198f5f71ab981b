"""What a fault is: a sequence of steps of one partition, and where in a run it can happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tieout.simulation.line import Line
from tieout.simulation.world import ProducerKind

Story = Iterator[None]
"""Runs one round of a partition up to each `yield`, the last one up to its end."""

SINGLE: Final[tuple[ProducerKind, ...]] = ("plain", "idempotent")
"""Producers whose batches are no transactions: losing a part of one tears nothing."""


@dataclass(frozen=True)
class Fault:
    """One fault of the catalogue.

    `rounds` is how many rounds of a partition it takes, given how many rounds a message may stay without effect.
    Only producers of `producers` and topics of `policy` can have it. It comes `when` a partition has just begun, is
    about to end, or anywhere between.
    """

    name: str
    purpose: str
    run: Callable[[Line], Story]
    rounds: Callable[[int], int]
    producers: tuple[ProducerKind, ...]
    policy: Literal["delete", "compact"] | None
    when: Literal["first", "anywhere", "last"]


@dataclass(frozen=True)
class Catalogue:
    """Faults by name, in the order of their definition."""

    faults: dict[str, Fault]

    def fault(
        self,
        *,
        rounds: int | Callable[[int], int] = 1,
        producers: tuple[ProducerKind, ...] = SINGLE,
        policy: Literal["delete", "compact"] | None = None,
        when: Literal["first", "anywhere", "last"] = "anywhere",
    ) -> Callable[[Callable[[Line], Story]], Callable[[Line], Story]]:
        """Return a decorator that enters a story under its function's name, its docstring's first line as purpose."""

        def entered(run: Callable[[Line], Story]) -> Callable[[Line], Story]:
            self.enter(
                run.__name__, run.__doc__ or "", run, rounds, producers=producers, policy=policy, when=when
            )
            return run

        return entered

    def enter(
        self,
        name: str,
        purpose: str,
        run: Callable[[Line], Story],
        rounds: int | Callable[[int], int] = 1,
        *,
        producers: tuple[ProducerKind, ...] = SINGLE,
        policy: Literal["delete", "compact"] | None = None,
        when: Literal["first", "anywhere", "last"] = "anywhere",
    ) -> None:
        """Enter a story under a name."""
        length = rounds if callable(rounds) else lambda _latency_rounds, fixed=rounds: fixed
        first = purpose.strip().splitlines()[0]
        self.faults[name] = Fault(name, first, run, length, producers, policy, when)


CATALOGUE: Final = Catalogue({})
