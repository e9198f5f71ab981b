"""A consumer that writes first and is killed with SIGKILL before its commit: it writes its batch twice."""

from __future__ import annotations

from typing import Any

from tools.record.messages import message_ids
from tools.record.processes import RecordingError
from tools.record.scenarios.base import Scenario
from tools.record.scenarios.counting import Sent
from tools.record.scene import Scene
from tools.record.truth import Expectation, Finding, Stage

_PLANS: dict[str, list[dict[str, Any]]] = {
    "till-1": [{"ids": message_ids("one", 0, 1000), "end": "flush"}],
    "till-2": [{"ids": message_ids("two", 0, 1000), "end": "flush"}],
}


class ProcessBeforeCommit(Scenario):
    """OUTPUT_DUPLICATE at the consumer: one position, two effects, from the committed offset on."""

    name = "process_before_commit"
    topic = "sales"
    group = "sales-ledger"

    def __init__(self) -> None:
        self._written_twice: set[tuple[int, int]] = set()

    def play(self, scene: Scene) -> None:
        """Produce 2,000 messages; kill the consumer between its output and its commit; start it again."""
        producers = [scene.producer(name, 1, plan, rate=40) for name, plan in _PLANS.items()]
        fault = {"after": 1000, "at_least": 60}
        consumer = scene.consumer(1, "process_then_commit", fault=fault)
        event = consumer.wait_for("fault_point")
        consumer.kill()
        self._written_twice = {(partition, offset) for partition, offset in event["written"]}
        consumer = scene.consumer(2, "process_then_commit")
        for producer in producers:
            producer.wait_for("done")
        scene.wait_until_read()
        consumer.finish()

    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Every message that was written before the kill and not committed has two effects."""
        breaks = tuple(
            Finding(
                break_class="OUTPUT_DUPLICATE",
                message_id=message_id,
                topic=self.topic,
                partition=partition,
                offsets=(offset,),
                locus="consumer or sink",
                cause="process before commit",
            )
            for message_id, positions in sorted(scene.visible_positions().items())
            for partition, offset in positions
            if (partition, offset) in self._written_twice
        )
        if not breaks or len(breaks) != len(self._written_twice):
            raise RecordingError(
                f"expected the log to hold {len(self._written_twice)} messages, found {len(breaks)}"
            )
        sent = Sent.by(*_PLANS.values())
        expectation = Expectation(
            verdict="BROKEN",
            counts=sent.counts(further_effects=len(breaks)),
            classes={"DELIVERED": len(sent.accepted) - len(breaks), "OUTPUT_DUPLICATE": len(breaks)},
            breaks=breaks,
        )
        return (Stage("recorded", {"contract.yml": expectation}),)
