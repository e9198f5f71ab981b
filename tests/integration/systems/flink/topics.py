"""Jobs that write a topic: transactions that expired, jobs that were killed, restored, and restored again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import committed_of
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.flink.job import (
    SETTINGS,
    await_records,
    committed_in,
    positions,
    prepared,
    send,
    start,
    topic_output,
)
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

FIRST, MORE = 20, 10
_SHORT_MS, _LONG_MS, _STOPPED = 15_000, 900_000, 18.0
"""The two timeouts of transactions, and for how many seconds the job stands still between preparing and committing."""
_TRIES: Final = 5
_EXPIRED: Final = "job stopped for 18 s between a checkpoint and its commit"
_KILLED: Final = "job killed between two checkpoints"
_SOURCE_SETTINGS: Final = {
    "client": "flink-2.2",
    "properties.isolation.level": "read_committed",
    "execution.checkpointing.interval": SETTINGS["execution.checkpointing.interval"],
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}
TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink")


def expired(stage: Stage) -> list[Case]:
    """The broker aborts what the checkpoint counts as written, and the job goes on as if it had been committed."""
    source, output, lost = _stopped(stage, _SHORT_MS)
    breaks = breaks_of(lost, "LOST", "sink", "prepared transaction not committed", ["COMMIT_AHEAD"])
    classes = {"DELIVERED": len(source.records()) - len(lost), "LOST": len(lost)}
    how = f"exactly-once, transaction.timeout.ms={_SHORT_MS}"
    expected, settings = Expected("BROKEN", classes, breaks), _exactly_once(stage, _SHORT_MS)
    return [
        case_of(stage, _EXPIRED, how, source, output, expected, guarantee, settings)
        for guarantee in ("exactly_once", "at_least_once")
    ]


def not_expired(stage: Stage) -> list[Case]:
    """A transaction that outlasts the pause is committed after it."""
    source, output, _ = _stopped(stage, _LONG_MS)
    expected = Expected("KEPT", {"DELIVERED": len(source.records())})
    how = f"exactly-once, transaction.timeout.ms={_LONG_MS}"
    settings = _exactly_once(stage, _LONG_MS)
    return [case_of(stage, _EXPIRED, how, source, output, expected, settings=settings)]


def killed_at_least_once(stage: Stage) -> list[Case]:
    """What was written since the checkpoint is written again."""
    source, output, again = _killed(stage, "AT_LEAST_ONCE")
    breaks = breaks_of(again, *TWICE, "process before commit")
    classes = {"DELIVERED": FIRST, "OUTPUT_DUPLICATE": len(again)}
    settings = {"sink.delivery-guarantee": "at-least-once"}
    return [
        case_of(
            stage,
            _KILLED,
            "at-least-once",
            source,
            output,
            Expected(verdict, classes, breaks),
            guarantee,
            settings,
        )
        for verdict, guarantee in (("BROKEN", "exactly_once"), ("KEPT", "at_least_once"))
    ]


def killed_exactly_once(stage: Stage) -> list[Case]:
    """What was written since the checkpoint is aborted, and written again."""
    source, output, _ = _killed(stage, "EXACTLY_ONCE")
    expected = Expected("KEPT", {"DELIVERED": FIRST + MORE})
    settings = _exactly_once(stage, _LONG_MS)
    return [case_of(stage, _KILLED, "exactly-once", source, output, expected, settings=settings)]


PLAYS: Final = {
    "flink-expired": expired,
    "flink-not-expired": not_expired,
    "flink-at-least-once": killed_at_least_once,
    "flink-exactly-once": killed_exactly_once,
}


def _exactly_once(stage: Stage, timeout_ms: int) -> dict[str, Any]:
    return {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": stage.name,
        "properties.transaction.timeout.ms": timeout_ms,
    }


def _stopped(stage: Stage, timeout_ms: int) -> tuple[Scene, Scene, list[Place]]:
    """Stop a job between the completion of a checkpoint and the commit of what it prepared; return what that was.

    The commit may be quicker than the stop: then the fault did not happen, and is played again on further messages.
    """
    source, output = stage.topic("in"), stage.topic("out", message_timestamp_type="LogAppendTime")
    sender = source.sender()
    job = start(
        stage, source, output=output.name, guarantee="EXACTLY_ONCE", transaction_timeout_ms=timeout_ms
    )
    send(source, sender, FIRST)
    await_records(output, FIRST)
    job.checkpoint()
    struck: list[Place] = []
    for _ in range(_TRIES):
        await_committed(output, len(source.records()))
        written = send(source, sender, MORE)
        await_records(output, len(source.records()))
        job.pause_at_checkpoint()
        time.sleep(_STOPPED)
        struck = written if committed_in(output) < len(source.records()) else []
        job.resume()
        if struck:
            break
    if not struck:
        raise RecordingError(f"{stage.name}: each transaction was committed before the job stood still")
    job.await_end("checkpoint")
    lost = MORE if timeout_ms == _SHORT_MS else 0
    send(source, sender, MORE)
    await_records(output, len(source.records()))
    source.end()
    job.checkpoint()
    await_committed(output, len(source.records()) - lost)
    await_group(stage, source)
    job.cancel()
    sender.kill()
    return source, output, struck


def _killed(stage: Stage, guarantee: str) -> tuple[Scene, Scene, list[Place]]:
    """Kill the job when its output is ahead of its checkpoint, restore it, and return what was ahead."""
    source, output = stage.topic("in"), stage.topic("out", message_timestamp_type="LogAppendTime")
    sender = source.sender()
    job = start(stage, source, output=output.name, guarantee=guarantee)
    send(source, sender, FIRST)
    await_records(output, FIRST)
    checkpoint = job.checkpoint()
    ahead = send(source, sender, MORE)
    source.end()
    await_records(output, FIRST + MORE)
    job.kill()
    sender.kill()
    succeed(stage, source, checkpoint, output, guarantee)
    return source, output, ahead


def succeed(stage: Stage, source: Scene, checkpoint: Path, output: Scene, guarantee: str) -> None:
    """Let another job go on from the checkpoint, behind which MORE records were written, until all is committed."""
    successor = start(stage, source, checkpoint, output=output.name, guarantee=guarantee)
    await_records(output, FIRST + 2 * MORE)
    successor.checkpoint()
    if guarantee == "EXACTLY_ONCE":
        await_committed(output, FIRST + MORE)
    await_group(stage, source)
    successor.cancel()


def await_committed(output: Scene, count: int) -> None:
    """Wait until so many records of the topic are of committed transactions."""
    wait_until(lambda: committed_in(output) == count, f"{count} committed records in {output.name}")


def await_group(stage: Stage, source: Scene) -> None:
    """Wait until the group stands where the checkpoint does: Flink has it committed behind the checkpoint."""
    wait_until(
        lambda: stage.cluster.committed(stage.name) == {0: len(source.records())}, f"the group {stage.name}"
    )


def case_of(
    stage: Stage,
    fault: str,
    how: str,
    source: Scene,
    output: Scene,
    expected: Expected,
    guarantee: str = "exactly_once",
    settings: dict[str, Any] | None = None,
) -> Case:
    """Return the case of a job that wrote a topic; `settings` are those of its sink."""
    more = {} if settings is None else {"settings": {"flink": {**_SOURCE_SETTINGS, **settings}}}
    ledgers = {
        "delivered": topic_output(stage, output),
        "committed": positions(stage),
        "staged": prepared(stage, output),
        "mirrored": committed_of(stage.data, stage.name),
    }
    return stage.case(fault, how, source, ledgers, expected, group=stage.name, guarantee=guarantee, **more)
