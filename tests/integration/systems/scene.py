"""What a fault of an engine is played with, and the judgement that is expected of what it leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tests.integration.kafka_faults.cluster import Cluster
from tests.integration.kafka_faults.contract import log_of, sent_of
from tests.integration.kafka_faults.scene import Scene
from tests.integration.systems.engine import Application, Engine
from tools.record.messages import iso


@dataclass(frozen=True)
class Expected:
    """What must be found, to the message."""

    verdict: str
    classes: Mapping[str, int]
    breaks: Sequence[Mapping[str, Any]] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows ledgers have, where what they set apart is to be seen."""


@dataclass(frozen=True)
class Case:
    """One judgement: the contract of the evidence, and what must be found.

    `seconds` is how long the fault was played, until `ended_at`: no effect can have come later, so none is late.
    """

    fault: str
    configuration: str
    guarantee: str
    window: tuple[str, str]
    ended_at: str
    seconds: int
    contract: Mapping[str, Any]
    verdict: str
    classes: Mapping[str, int]
    breaks: Sequence[Mapping[str, Any]]
    rows: Mapping[str, int]


class Sent(Protocol):
    """A topic that messages were sent to: its name, the folder of what its senders wrote down, and the window."""

    name: str
    folder: Path
    started_at: str
    ended_at: str


@dataclass
class Stage:
    """One play: the broker, an engine whose applications are started and killed, and a folder for what they leave.

    `name` begins the names of its topics, and so of its messages. `database` is the URL of a PostgreSQL.
    """

    name: str
    cluster: Cluster
    engine: Engine
    folder: Path
    stack: ExitStack
    database: str = ""
    _lives: dict[str, int] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Return where the broker keeps its logs."""
        return self.cluster.brokers[1].data

    def topic(self, role: str, partitions: int = 1, **settings: str) -> Scene:
        """Create a topic of this play and return it, with clients to send to it and to read it."""
        name = f"{self.name}-{role}"
        scene = Scene(self.cluster, name, self.folder / name, self.stack)
        scene.create([[1]] * partitions, **settings)
        return scene

    def start(self, main_class: str, settings: Mapping[str, object], name: str) -> Application:
        """Start a life of the application of that name."""
        self._lives[name] = self._lives.get(name, 0) + 1
        return self.engine.start(main_class, settings, self.folder, f"{name}-{self._lives[name]}", self.stack)

    def case(
        self,
        fault: str,
        configuration: str,
        source: Sent,
        ledgers: Mapping[str, Any],
        expected: Expected,
        *,
        group: str,
        guarantee: str = "exactly_once",
        **more: Any,
    ) -> Case:
        """Return the case of an output whose messages were sent to the topic `source`.

        `ledgers` stand beside, or instead of, the sender's own ledger and the topic's log; `more` are fields of the
        contract.
        """
        ended_at = datetime.now(UTC)
        seconds = math.ceil((ended_at - datetime.fromisoformat(source.started_at)).total_seconds())
        contract = {
            "version": 1,
            "pipeline": self.name.replace("-", "_"),
            "guarantee": guarantee,
            "group": group,
            "max_latency": f"{seconds}s",
            "margin": "1m",
            "grace": f"{seconds}s",
            "look_back": "1h",
            "ledgers": {
                "produced": sent_of(source.folder),
                "log": log_of(self.data, source.name),
                **ledgers,
            },
            **more,
        }
        window = (source.started_at, source.ended_at)
        return Case(
            fault, configuration, guarantee, window, iso(ended_at), seconds, contract, **vars(expected)
        )
