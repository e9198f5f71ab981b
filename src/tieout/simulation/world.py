"""What all partitions of a simulated pipeline share: the evidence being written, the truth, and the consumer group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from tieout.model import Ledger
from tieout.simulation.records import Message, Reader, Session
from tieout.simulation.truth import Truth

Row = dict[str, Any]
ProducerKind = Literal["plain", "idempotent", "transactional"]


def digest(text: str) -> str:
    """Return 16 hex digits that stand for the text's hash in the ledgers."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass
class Producers:
    """The sending applications and the session each of them is in."""

    kinds: dict[str, ProducerKind]
    sessions: dict[str, Session] = field(default_factory=dict)
    started: int = 0

    def of_kind(self, *kinds: ProducerKind) -> list[str]:
        """Return the names of the producers of these kinds; of all where none is named."""
        return [name for name, kind in self.kinds.items() if kind in kinds or not kinds]

    def session(self, name: str) -> Session:
        """Return the producer's present session."""
        return self.sessions.get(name) or self.restarted(name)

    def restarted(self, name: str) -> Session:
        """Return a new session of the producer, which crashed or has not run yet."""
        self.started += 1
        number = self.sessions[name].number + 1 if name in self.sessions else 1
        kind = self.kinds[name]
        broker_id = -1 if kind == "plain" else 1_000 + self.started
        self.sessions[name] = Session(name, number, kind, broker_id)
        return self.sessions[name]


@dataclass
class Group:
    """The consumer group: its members, and the generation that every rebalance begins."""

    name: str
    members: int
    generation: int = 1

    def reader(self, seat: int) -> Reader:
        """Return the member in a seat, in the present generation."""
        return Reader(f"{self.name}-{seat % self.members}", self.generation)


@dataclass
class World:
    """The shared side of one simulation. Times are whole milliseconds since 1970."""

    rng: Random
    write: Callable[[Ledger, Row], None]
    truth: Truth
    producers: Producers
    group: Group
    keys: int
    keyless: float
    max_latency_ms: int
    horizon: int
    """Until when the evidence is complete, in ms."""
    partitions: int
    round_ms: int
    drawn: int = 0
    annotations: list[int] = field(default_factory=list)

    def message(self, topic: str, partition: int, *, has_key: bool) -> Message:
        """Return the next message; its key is one of those that the partitioner sends to the partition."""
        self.drawn += 1
        name = f"{topic}-{self.drawn:09d}"
        key = None
        if has_key or self.rng.random() >= self.keyless:
            key = digest(f"{topic}/{partition}/{self.rng.randrange(max(1, self.keys // self.partitions))}")
        return Message(name, key, digest(name), digest(f"{name}/headers"))
