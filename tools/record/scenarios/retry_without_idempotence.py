"""A producer that retries without idempotence while the broker is stopped: one message, twice in the log."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from tools.record.processes import RecordingError
from tools.record.scenarios.base import Scenario
from tools.record.scene import Scene
from tools.record.truth import Expectation, Finding, Stage

_MESSAGES = 2000
_PER_SECOND = 60
_STOPS_AT = (10, 22)
"""Seconds after the producer's start at which the broker is paused."""
_STOPPED_FOR = 5
"""Seconds; longer than the producer's request timeout, shorter than its delivery timeout."""
DUPLICATE_BUDGET = 0.1
"""The budget of contract_at_least_once.yml."""
_PRODUCER_SETTINGS = {
    "enable.idempotence": "false",
    "retries": "10",
    "request.timeout.ms": "2000",
    "delivery.timeout.ms": "60000",
    "retry.backoff.ms": "100",
    "linger.ms": "600",
    "max.in.flight.requests.per.connection": "5",
}


class RetryWithoutIdempotence(Scenario):
    """OUTPUT_DUPLICATE and LOG_DUPLICATE: the log has some messages twice, and each record is output."""

    name = "retry_without_idempotence"
    topic = "clicks"
    group = "clicks-counter"
    contracts = ("contract.yml", "contract_at_least_once.yml")

    def play(self, scene: Scene) -> None:
        """Run Kafka's VerifiableProducer; pause the broker twice, longer than the producer waits for an answer."""
        settings = scene.work / "producer.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in _PRODUCER_SETTINGS.items()))
        consumer = scene.consumer(1, "process_then_commit")
        producer = scene.kafka_client(
            "VerifiableProducer",
            "produced",
            "verifiable-producer",
            *("--max-messages", str(_MESSAGES), "--throughput", str(_PER_SECOND)),
            *("--repeating-keys", "29", "--command-config", str(settings)),
        )
        started = time.monotonic()
        for stop_at in _STOPS_AT:
            time.sleep(max(0.0, started + stop_at - time.monotonic()))
            scene.broker.pause()
            time.sleep(_STOPPED_FOR)
            scene.broker.resume()
        _wait(producer)
        scene.wait_until_read()
        consumer.finish()

    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Every message that is twice in the log has two effects; retries were reordered."""
        positions = scene.visible_positions()
        if set(positions) != {str(number) for number in range(_MESSAGES)}:
            raise RecordingError(f"expected {_MESSAGES} messages in the log, found {len(positions)}")
        breaks = tuple(
            Finding(
                break_class="OUTPUT_DUPLICATE",
                message_id=message_id,
                topic=self.topic,
                partition=places[0][0],
                offsets=tuple(offset for _, offset in places),
                locus="producer → broker",
                cause="retry without idempotence",
                flags=("LOG_DUPLICATE", "inherited"),
            )
            for message_id, places in sorted(positions.items(), key=lambda item: int(item[0]))
            if len(places) > 1
        )
        further = sum(len(finding.offsets) - 1 for finding in breaks)
        ratio = further / _MESSAGES
        if not 0 < ratio < DUPLICATE_BUDGET:
            raise RecordingError(
                f"expected some duplicates, fewer than {DUPLICATE_BUDGET:.0%}; found {further}"
            )
        reordered = tuple(_reordered(self.topic, positions))
        classes = {"DELIVERED": _MESSAGES - len(breaks), "OUTPUT_DUPLICATE": len(breaks)}
        broken = Expectation(
            verdict="BROKEN",
            counts=_counts(further),
            classes=classes | ({"REORDER_PRODUCER": len(reordered)} if reordered else {}),
            breaks=breaks + reordered,
            ratios={"duplicate_ratio": ratio},
        )
        return (
            Stage(
                "recorded",
                {"contract.yml": broken, "contract_at_least_once.yml": broken.with_verdict("KEPT")},
            ),
        )


def _reordered(topic: str, positions: Mapping[str, Sequence[tuple[int, int]]]) -> Iterator[Finding]:
    """Yield each pair of adjacent messages in a partition whose first positions are in the reverse order of sending."""
    last: dict[int, int] = {}
    for number in range(_MESSAGES):
        partition, offset = positions[str(number)][0]
        before = last.get(partition, -1)
        if offset < before:
            yield Finding(
                break_class="REORDER_PRODUCER",
                message_id=None,
                topic=topic,
                partition=partition,
                offsets=(offset, before),
                locus="producer → broker",
                cause="several requests in flight without idempotence",
            )
        last[partition] = offset


def _counts(further_effects: int) -> dict[str, int]:
    sums = {"attempts": _MESSAGES, "acked_attempts": _MESSAGES, "failed_attempts": 0, "messages": _MESSAGES}
    sums |= {
        "resends": 0,
        "accepted": _MESSAGES,
        "failed": 0,
        "delivered": _MESSAGES,
        "lost": 0,
        "in_flight": 0,
    }
    effects = {
        "effects": _MESSAGES + further_effects,
        "first_effects": _MESSAGES,
        "further_effects": further_effects,
    }
    return {**sums, **effects}


def _wait(producer: subprocess.Popen[bytes], timeout: float = 90) -> None:
    if producer.wait(timeout) != 0:
        raise RecordingError(f"the verifiable producer ended with {producer.returncode}")
