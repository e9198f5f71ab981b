"""A consumer that stops early and continues after the first evidence was extracted: one window, judged twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tools.record.processes import RecordingError, end
from tools.record.scenarios.base import Scenario
from tools.record.scenarios.counting import Sent
from tools.record.scene import Scene
from tools.record.truth import Expectation, Finding, Stage

_MESSAGES = {"1": 800, "2": 700}
"""Messages per value prefix; each prefix is one VerifiableProducer."""
_TOTAL = sum(_MESSAGES.values())
_PER_SECOND = 20
_STOP_AFTER = _TOTAL * 6 // 10
"""The least number of messages that the first consumer reads."""


class InFlight(Scenario):
    """PENDING while unread messages remain in the log, KEPT once they were read: late, but not lost."""

    name = "in_flight"
    topic = "events"
    group = "events-indexer"

    def __init__(self) -> None:
        self._stopped_at: dict[int, int] = {}

    def play(self, scene: Scene) -> None:
        """Run two VerifiableProducers, and a VerifiableConsumer that is stopped before they are done."""
        producers = [
            scene.kafka_client(
                "VerifiableProducer",
                "produced",
                f"verifiable-producer-{prefix}",
                *("--max-messages", str(count), "--throughput", str(_PER_SECOND), "--value-prefix", prefix),
            )
            for prefix, count in _MESSAGES.items()
        ]
        consumer = self._consumer(scene, 1)
        _wait_until(
            lambda: sum(scene.broker.committed(self.group).values()) >= _STOP_AFTER, "the consumer's progress"
        )
        end(consumer)
        for producer in producers:
            if producer.wait(90) != 0:
                raise RecordingError(f"a verifiable producer ended with {producer.returncode}")
        self._stopped_at = scene.broker.committed(self.group)
        if _read_up_to(scene.evidence / "read" / f"{self._consumer_name(1)}.jsonl") != self._stopped_at:
            raise RecordingError("the stopped consumer printed records that it did not commit; record again")

    def play_after_extract(self, scene: Scene, folder: Path) -> None:
        """Restart the consumer, let it read the rest, and extract all changed ledgers."""
        consumer = self._consumer(scene, 2)
        scene.wait_until_read()
        end(consumer)
        scene.extract(folder)
        name = f"{self._consumer_name(2)}.jsonl"
        (folder / "read").mkdir()
        shutil.move(scene.evidence / "read" / name, folder / "read" / name)

    def _consumer_name(self, life: int) -> str:
        return f"verifiable-consumer-{life}"

    def _consumer(self, scene: Scene, life: int) -> subprocess.Popen[bytes]:
        arguments = ("--group-id", self.group, "--group-instance-id", f"{self.group}-1", "--verbose")
        return scene.kafka_client("VerifiableConsumer", "read", self._consumer_name(life), *arguments)

    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Messages beyond the stopped consumer's position are in flight and overdue, and late afterwards."""
        waiting = tuple(
            Finding("IN_FLIGHT", message_id, self.topic, partition, (offset,), flags=("OVERDUE",))
            for message_id, positions in sorted(scene.visible_positions().items())
            for partition, offset in positions
            if offset >= self._stopped_at.get(partition, 0)
        )
        if not waiting:
            raise RecordingError("the consumer was stopped too late: nothing was in flight; record again")
        late = tuple(replace(finding, break_class="LATE", flags=()) for finding in waiting)
        prompt = _TOTAL - len(waiting)
        pending = Expectation(
            verdict="PENDING",
            counts=_sent().counts(in_flight=len(waiting)),
            classes={"DELIVERED": prompt, "IN_FLIGHT": len(waiting)},
            breaks=waiting,
        )
        kept = Expectation(
            verdict="KEPT",
            counts=_sent().counts(after_window=len(waiting)),
            classes={"DELIVERED": prompt, "LATE": len(waiting)},
            breaks=late,
        )
        return (
            Stage("stopped", {"contract.yml": pending}),
            Stage("arrived", {"contract.yml": kept}, overlay="evidence_later"),
        )


def _sent() -> Sent:
    """Return the attempts of the verifiable producers: values are the prefix and a number, counted from 0."""
    plans = (
        [{"ids": [f"{prefix}.{n}" for n in range(count)], "end": "flush"}]
        for prefix, count in _MESSAGES.items()
    )
    return Sent.by(*plans)


def _read_up_to(output: Path) -> dict[int, int]:
    """Return, per partition, the offset after the last record that a verifiable consumer printed."""
    position: dict[int, int] = {}
    for line in output.read_text().splitlines():
        event = json.loads(line)
        if event["name"] == "record_data":
            position[event["partition"]] = event["offset"] + 1
    return position


def _wait_until(happened: Callable[[], bool], description: str, timeout: float = 80) -> None:
    deadline = time.monotonic() + timeout
    while not happened():
        if time.monotonic() > deadline:
            raise RecordingError(f"waited {timeout} s for {description}")
        time.sleep(0.3)
