"""What a fault is played with: the cluster, clients to start and kill, and the evidence that they leave."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.integration.kafka_faults.cluster import Cluster
from tests.integration.kafka_faults.remote import Remote
from tools.record.messages import id_in, message_ids, now_text

Place = Sequence[Any]
"""Partition, offset and id of a record."""
BY_POSITION = ("topic_id", "partition", "offset")


@dataclass(frozen=True)
class Case:
    """One judgement: where the evidence is, under which guarantee, and what must be found, to the message.

    `seconds` is how long the fault was played: no effect can have come later than that, so none is late.
    """

    fault: str
    configuration: str
    topic: str
    group: str
    guarantee: str
    folder: str
    window: tuple[str, str]
    seconds: int
    log: str
    verdict: str
    classes: Mapping[str, int]
    breaks: Sequence[Mapping[str, Any]] = ()
    contract: Mapping[str, Any] = field(default_factory=dict)
    produced: Mapping[str, Any] | None = None
    message_id: str | None = None
    producers: Sequence[str] = ("sender",)
    cleanup_policy: str = "delete"


@dataclass
class Scene:
    """One topic and what happens to it; `name` is the topic's and begins its messages' ids."""

    cluster: Cluster
    name: str
    folder: Path
    stack: ExitStack
    leader: int = 1
    started_at: str = field(default_factory=now_text)
    ended_at: str = ""
    topic_id: str = ""
    _sent: int = 0

    def create(self, replicas: Sequence[Sequence[int]] = ((1,),), **settings: str) -> None:
        """Create the topic with these brokers for each partition; underscores in settings stand for dots."""
        self.folder.mkdir(parents=True, exist_ok=True)
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.topic_id = self.cluster.create_topic(self.name, replicas, named)
        self.leader = replicas[0][0]

    def ids(self, count: int) -> list[str]:
        """Return so many new message ids."""
        first, self._sent = self._sent, self._sent + count
        return message_ids(self.name, first, count)

    def sender(self, session: str = "sender-1", **settings: Any) -> Remote:
        """Start a producer: idempotent and with acks=all, unless the settings say otherwise; underscores are dots."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        config = {
            "settings": {
                "bootstrap.servers": self.cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                **named,
            },
            "topic": self.name,
            "topic_id": self.topic_id,
            "producer_id": session.rpartition("-")[0],
            "session": session,
            "ledger": str(self._file("produced", session)),
        }
        return Remote("sender", f"{self.name}-{session}", config, self.folder, self.stack)

    def send(self, count: int, partition: int = 0, session: str = "sender-1") -> list[Place]:
        """Send so many new messages from a session of their own; return partition, offset and id of each."""
        sender = self.sender(session)
        sender.call("send", ids=self.ids(count), partition=partition)
        rows = sender.call("settle")
        sender.kill()
        return [[number, offset, id_] for id_, number, offset, _ in rows]

    def reader(
        self,
        group: str,
        life: int = 1,
        *,
        sink: str = "file",
        key: Sequence[str] = BY_POSITION,
        drains: bool = False,
        **settings: Any,
    ) -> Remote:
        """Start a life of the group's consumer, whose output is a file, or a table with this key; see `reader.py`.

        Underscores in settings stand for dots.
        """
        named = {name.replace("_", "."): value for name, value in settings.items()}
        path = self._file("delivered", group).with_suffix(".jsonl" if sink == "file" else ".db")
        config = {
            "settings": {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                **named,
            },
            "topic": self.name,
            "topic_id": self.topic_id,
            "consumer_id": f"{group}-{life}",
            "sink": {"kind": sink, "path": str(path), "key": list(key)},
            "drains": drains,
        }
        return Remote("reader", f"{group}-{life}", config, self.folder, self.stack)

    def drain(self, group: str, life: int = 1, **settings: Any) -> None:
        """Have a life of the group's consumer read, write and commit whatever is there, and leave."""
        reader = self.reader(group, life, **settings)
        reader.call("drain")
        reader.call("close")
        reader.kill()

    def records(self, broker: int | None = None, partition: int = 0) -> list[tuple[int, str]]:
        """Return offset and id of each data record that a broker's files hold, the leader's by default."""
        batches = self.cluster.log(broker or self.leader, self.name, partition)
        return [
            (record.offset, id_in(record.value))
            for batch in batches
            if not batch.is_control
            for record in batch.records
            if record.value is not None
        ]

    def end(self) -> None:
        """Note that the window is over: nothing is sent any more, nor done that is a break by itself."""
        self.ended_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def case(
        self,
        fault: str,
        configuration: str,
        group: str,
        verdict: str,
        classes: Mapping[str, int],
        breaks: Sequence[Mapping[str, Any]] = (),
        *,
        guarantee: str = "exactly_once",
        **more: Any,
    ) -> Case:
        """Return what must be found of the group's output; a table is written out as rows."""
        self._export(group)
        return Case(
            fault=fault,
            configuration=configuration,
            topic=self.name,
            group=group,
            guarantee=guarantee,
            folder=self.name,
            window=(self.started_at, self.ended_at),
            seconds=math.ceil((datetime.now(UTC) - datetime.fromisoformat(self.started_at)).total_seconds()),
            log=f"broker-{self.leader}",
            verdict=verdict,
            classes=classes,
            breaks=breaks,
            **more,
        )

    def _export(self, group: str) -> None:
        table = self._file("delivered", group).with_suffix(".db")
        if table.exists():
            with sqlite3.connect(table) as connection:
                rows = [json.loads(row) for (row,) in connection.execute("select row from output")]
            lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            table.with_suffix(".jsonl").write_text(lines)

    def _file(self, ledger: str, name: str) -> Path:
        (self.folder / ledger).mkdir(exist_ok=True)
        return self.folder / ledger / f"{name}.jsonl"


def breaks_of(
    places: Sequence[Place],
    break_class: str,
    locus: str,
    cause: str = "unknown",
    flags: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return one expected break for each of the records."""
    return [
        {
            "class": break_class,
            "message_id": id_,
            "partition": partition,
            "offset": offset,
            "locus": locus,
            "cause": cause,
            "flags": sorted(flags),
        }
        for partition, offset, id_ in places
    ]
