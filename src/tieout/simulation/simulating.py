"""The run: round after round every partition gets a batch, the planned faults strike, and all of it is written.

A round is one batch of every partition. A partition is busy with one story at a time, so what is kept in memory is a
batch or a few a partition, however many messages flow. The same description and seed give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from random import Random
from typing import Final

from tieout.model import Ledger, Window
from tieout.simulation.description import Description
from tieout.simulation.faults import FAULTS
from tieout.simulation.faults.fault import Story
from tieout.simulation.line import Line, ordinary
from tieout.simulation.planning import Plan, planned
from tieout.simulation.truth import Truth
from tieout.simulation.world import Group, Producers, Row, World

Progress = Callable[[str], None]

_SLACK: Final = timedelta(minutes=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Simulated:
    """One finished run: what to judge, and what is known of it besides the rows.

    `producers` are those that sent: of one that never did, no evidence shows that its silence is none of a lost file.
    """

    window: Window
    grace: timedelta
    annotations: tuple[datetime, ...]
    producers: tuple[str, ...]

    @property
    def horizon(self) -> datetime:
        """Until when all evidence is complete."""
        return self.window.end + self.grace


def simulate(
    description: Description,
    seed: int,
    write: Callable[[Ledger, Row], None],
    truth: Truth,
    progress: Progress = lambda _step: None,
) -> Simulated:
    """Run the described pipeline and hand every row of evidence to `write`; return what there is to judge.

    Raises:
        UsageError: where there is no room for the faults.
    """
    rng = Random(seed)  # noqa: S311 - repeatable, not secret
    window = window_of(description)
    grace = description.max_latency + _SLACK
    world = World(
        rng=rng,
        write=write,
        truth=truth,
        producers=Producers({one.name: one.kind for one in description.producers}),
        group=Group(description.group, description.consumers),
        keys=description.keys,
        keyless=description.keyless,
        max_latency_ms=description.max_latency // _MILLISECOND,
        horizon=_ms(window.end + grace),
        partitions=description.partitions,
        round_ms=description.round_ms,
    )
    run = _Run(description, world, _lines(description, world), _plan(description, rng))
    run.play(progress)
    annotations = tuple(_time(at) for at in world.annotations)
    return Simulated(window, grace, annotations, tuple(sorted(world.producers.sessions)))


def window_of(description: Description) -> Window:
    """Return the window that holds every attempt of the simulation."""
    lasting = timedelta(milliseconds=description.rounds * description.round_ms) + _SLACK
    return Window(description.start, description.start + timedelta(seconds=ceil(lasting.total_seconds())))


def _lines(description: Description, world: World) -> list[Line]:
    start = _ms(description.start)
    lines: list[Line] = []
    for topic in description.topics:
        for partition in range(topic.partitions):
            seat = len(lines)
            lines.append(
                Line(
                    world=world,
                    topic=topic.name,
                    partition=partition,
                    cleanup_policy=topic.cleanup_policy,
                    clock=start,
                    seat=seat,
                    reader=world.group.reader(seat),
                )
            )
    return lines


def _plan(description: Description, rng: Random) -> Plan:
    policies = [topic.cleanup_policy for topic in description.topics for _ in range(topic.partitions)]
    rates = {FAULTS[name]: rate for name, rate in description.rates.items()}
    latency_rounds = ceil(description.max_latency / timedelta(milliseconds=description.round_ms))
    return planned(rates, policies, description.rounds, latency_rounds, rng)


@dataclass
class _Run:
    """The lines with what is going on in each of them."""

    description: Description
    world: World
    lines: list[Line]
    plan: Plan

    def play(self, progress: Progress) -> None:
        """Play every round, then close the ledgers."""
        start, rounds = _ms(self.description.start), self.description.rounds
        shares = self._shares()
        stories: dict[int, Story] = {}
        reported_tenths = 0
        for line in self.lines:
            line.assigned("assign")
        for turn in range(rounds):
            began_at = start + turn * self.description.round_ms
            self._rebalance(began_at)
            for number, line in enumerate(self.lines):
                line.clock = max(line.clock, began_at) + self.world.rng.randrange(3)
                line.round_began_at = began_at
                line.allotted = next(shares)
                self._step(number, line, turn, stories)
            if self.world.drawn * 10 // self.description.messages > reported_tenths:
                reported_tenths = self.world.drawn * 10 // self.description.messages
                progress(f"{self.world.drawn} of {self.description.messages} messages")
        self._close(_ms(window_of(self.description).end))

    def _shares(self) -> Iterator[int]:
        """Yield how many messages each line gets in each round, so that they add up to the description's."""
        cells = self.description.rounds * len(self.lines)
        ends = ((cell + 1) * self.description.messages // cells for cell in range(cells))
        previous = 0
        for end in ends:
            yield end - previous
            previous = end

    def _step(self, number: int, line: Line, turn: int, stories: dict[int, Story]) -> None:
        """Play one line's round: its story goes on, a new one begins, or nothing goes wrong."""
        fault = self.plan.at(number, turn)
        if fault is not None:
            line.fault = fault.name
            self.world.truth.episodes[fault.name] += 1
            stories[number] = fault.run(line)
        story = stories.get(number)
        if story is not None and next(story, _OVER) is _OVER:
            del stories[number]
            story = None
        if story is None:
            ordinary(line)
            line.write_records(line.position)
        if line.allotted:
            raise RuntimeError(f"{line.fault} left {line.allotted} messages of its round unsent")

    def _rebalance(self, at: int) -> None:
        """Begin a generation where a reader has crashed or stalled; only its partitions change hands."""
        if not any(line.wants_rebalance for line in self.lines):
            return
        at = max(at, *(line.clock + 1 for line in self.lines))
        self.world.group.generation += 1
        for line in self.lines:
            if line.wants_rebalance:
                line.wants_rebalance = False
                line.seat += 1
                line.position = line.committed
            line.reader = self.world.group.reader(line.seat)
            line.clock = at
            line.assigned("assign", at=at)

    def _close(self, at: int) -> None:
        """Write what the logs still hold and how far they reach, and see that nothing was forgotten."""
        for line in self.lines:
            line.write_records()
            line.clock = at
            line.observe()
        truth = self.world.truth
        if truth.messages != self.world.drawn:
            raise RuntimeError(f"{self.world.drawn} messages, but the truth knows {truth.messages}")


_OVER: Final = object()


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND


def _time(milliseconds: int) -> datetime:
    return _EPOCH + milliseconds * _MILLISECOND
