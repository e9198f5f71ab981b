"""The environment of a scenario: the broker, clients to start and kill, and the extraction of evidence."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.record.broker import OFFSETS_TOPIC, Broker
from tools.record.log_ledger import log_rows, transaction_states
from tools.record.messages import id_in, now_text
from tools.record.offset_table import commit_rows
from tools.record.processes import Client, RecordingError, end

VISIBLE = ("none", "committed")


@dataclass(frozen=True)
class Scene:
    """One recording in progress; `evidence` is the example's folder."""

    topic: str
    group: str
    broker: Broker
    evidence: Path
    work: Path
    stack: ExitStack

    def producer(self, producer_id: str, session: int, plan: list[dict[str, Any]], **settings: Any) -> Client:
        """Start one session of the recorder's own producer; see `clients.producer` for plan and settings."""
        name = f"{producer_id}-{session}"
        config = {
            "bootstrap": self.broker.bootstrap,
            "topic": self.topic,
            "producer_id": producer_id,
            "session": name,
            "ledger": str(self._file("produced", name)),
            "transactional_id": None,
            "plan": plan,
            **settings,
        }
        return Client("producer", config, self.work, f"producer-{name}", self.stack)

    def consumer(self, session: int, order: str, **settings: Any) -> Client:
        """Start one session of the recorder's own consumer; see `clients.consumer` for order and settings."""
        name = f"{self.group}-{session}"
        config = {
            "bootstrap": self.broker.bootstrap,
            "topic": self.topic,
            "group": self.group,
            "consumer_id": name,
            "isolation": "read_committed",
            "batch": 100,
            "order": order,
            "sink": {"kind": "file", "path": str(self.evidence / "delivered.jsonl")},
            "fault": None,
            **settings,
        }
        client = Client("consumer", config, self.work, f"consumer-{name}", self.stack)
        client.wait_for("started")
        return client

    def _file(self, ledger: str, name: str) -> Path:
        folder = self.evidence / ledger
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.jsonl"

    def kafka_client(self, tool: str, ledger: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of Kafka's verifiable clients; its unchanged output is the ledger's file."""
        main_class = f"org.apache.kafka.tools.{tool}"
        target = ["--bootstrap-server", self.broker.bootstrap, "--topic", self.topic]
        with self._file(ledger, name).open("wb") as output, (self.work / f"{name}.err").open("wb") as errors:
            process = subprocess.Popen(
                self.broker.jars.java(main_class, *target, *arguments),
                stdout=output,
                stderr=errors,
            )
        self.stack.callback(end, process)
        return process

    def wait_until_read(self, timeout: float = 60) -> None:
        """Wait until the group's position has passed the last visible record of every partition.

        Raises:
            RecordingError: if it has not after `timeout` seconds.
        """
        last = {number: max(offsets, default=-1) for number, offsets in self.visible_offsets().items()}
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            committed = self.broker.committed(self.group)
            if all(committed.get(number, 0) > offset for number, offset in last.items()):
                return
            time.sleep(0.5)
        raise RecordingError(f"{self.group} has not come to the end of {self.topic} within {timeout} s")

    def visible_offsets(self) -> dict[int, list[int]]:
        """Return the offsets of each partition's visible data records, in order."""
        by_partition: dict[int, list[int]] = {number: [] for number in self.broker.log(self.topic)}
        for positions in self.visible_positions().values():
            for number, offset in positions:
                by_partition[number].append(offset)
        return {number: sorted(offsets) for number, offsets in by_partition.items()}

    def visible_positions(self) -> dict[str, list[tuple[int, int]]]:
        """Return every visible (partition, offset) of each message id, as the segment files hold them."""
        positions: dict[str, list[tuple[int, int]]] = {}
        for number, batches in self.broker.log(self.topic).items():
            states = transaction_states(batches)
            data = (record for batch in batches if not batch.is_control for record in batch.records)
            for record in data:
                if record.value is not None and states[record.offset] in VISIBLE:
                    positions.setdefault(id_in(record.value), []).append((number, record.offset))
        return positions

    def extract(self, folder: Path) -> None:
        """Write the broker's ledgers and the time until which the evidence is complete."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "extracted_at.txt").write_text(now_text() + "\n")
        bounds = self.broker.bounds(self.topic)
        logs = self.broker.log(self.topic)
        _write_rows(
            folder / "log.jsonl",
            (
                row
                for number, batches in logs.items()
                for row in log_rows(self.topic, number, batches, bounds[number])
            ),
        )
        offsets = [batch for batches in self.broker.log(OFFSETS_TOPIC).values() for batch in batches]
        _write_rows(folder / "committed.jsonl", commit_rows(offsets, self.group))
        (folder / "consumer_offsets.txt").write_text(self.broker.formatted_offsets())


def _write_rows(path: Path, rows: Iterable[dict[str, object]]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
