"""A consumer that commits first and is killed with SIGKILL before it has written the rest of its batch."""

from __future__ import annotations

from typing import Any

from tools.record.messages import message_ids
from tools.record.processes import RecordingError
from tools.record.scenarios.base import Scenario
from tools.record.scenarios.counting import Sent
from tools.record.scene import Scene
from tools.record.truth import Expectation, Finding, Stage

_PLANS: dict[str, list[dict[str, Any]]] = {
    "meter-a": [{"ids": message_ids("a", 0, 1050), "end": "flush"}],
    "meter-b": [{"ids": message_ids("b", 0, 950), "end": "flush"}],
}


class CommitBeforeProcess(Scenario):
    """LOST at the consumer: the committed offset covers messages that the output never received."""

    name = "commit_before_process"
    topic = "readings"
    group = "readings-archiver"

    def __init__(self) -> None:
        self._lost: set[tuple[int, int]] = set()

    def play(self, scene: Scene) -> None:
        """Produce 2,000 messages; kill the consumer between its commit and its output; start it again."""
        producers = [scene.producer(name, 1, plan, rate=40) for name, plan in _PLANS.items()]
        fault = {"after": 900, "at_least": 60}
        consumer = scene.consumer(1, "commit_then_process", fault=fault)
        event = consumer.wait_for("fault_point")
        consumer.kill()
        self._lost = {(partition, offset) for partition, offset in event["unwritten"]}
        consumer = scene.consumer(2, "commit_then_process")
        for producer in producers:
            producer.wait_for("done")
        scene.wait_until_read()
        consumer.finish()

    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Every message of the batch that was committed and not written is LOST, all others are delivered."""
        breaks = tuple(
            Finding(
                break_class="LOST",
                message_id=message_id,
                topic=self.topic,
                partition=partition,
                offsets=(offset,),
                locus="consumer",
                cause="commit before process",
                flags=("COMMIT_AHEAD",),
            )
            for message_id, positions in sorted(scene.visible_positions().items())
            for partition, offset in positions
            if (partition, offset) in self._lost
        )
        if not breaks or len(breaks) != len(self._lost):
            raise RecordingError(
                f"expected the log to hold the {len(self._lost)} lost messages, found {len(breaks)}"
            )
        sent = Sent.by(*_PLANS.values())
        expectation = Expectation(
            verdict="BROKEN",
            counts=sent.counts(lost=len(breaks)),
            classes={"DELIVERED": len(sent.accepted) - len(breaks), "LOST": len(breaks)},
            breaks=breaks,
        )
        return (Stage("recorded", {"contract.yml": expectation}),)
