"""Jobs that are started again: anew, from their newest checkpoint, from a savepoint, after a torn checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.flink.job import Job, await_records, send, start
from tests.integration.systems.flink.topics import (
    FIRST,
    MORE,
    TWICE,
    await_committed,
    await_group,
    case_of,
    succeed,
)
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_SLOW_MS: Final = 200
_ANEW: Final = "job cancelled and started again"
_SAVEPOINT: Final = "job cancelled and restored"
_TORN: Final = "job killed in a checkpoint"


def anew(stage: Stage) -> list[Case]:
    """Without a checkpoint to start from, the job begins at the first record."""
    source, output, sent, regressed = _again(stage, is_restored=False)
    breaks = [*breaks_of(sent, *TWICE, "unknown"), *regressed]
    classes = {"DELIVERED": MORE, "OUTPUT_DUPLICATE": FIRST, "COMMIT_REGRESSION": len(regressed)}
    expected = Expected("BROKEN", classes, breaks)
    return [case_of(stage, _ANEW, "without execution.state-recovery.path", source, output, expected)]


def restored(stage: Stage) -> list[Case]:
    """With it, the job goes on."""
    source, output, _, _ = _again(stage, is_restored=True)
    expected = Expected("KEPT", {"DELIVERED": FIRST + MORE})
    return [case_of(stage, _ANEW, "execution.state-recovery.path", source, output, expected)]


def savepoint_twice(stage: Stage) -> list[Case]:
    """What was written and committed since a savepoint is written again by the next job that begins with it."""
    source, output, again = _from_savepoint(stage, is_twice=True)
    breaks = breaks_of(again, *TWICE, "unknown")
    expected = Expected("BROKEN", {"DELIVERED": FIRST, "OUTPUT_DUPLICATE": MORE}, breaks)
    how = "exactly-once, the savepoint that was restored before"
    return [case_of(stage, _SAVEPOINT, how, source, output, expected)]


def savepoint_once(stage: Stage) -> list[Case]:
    """From the checkpoint that came after the savepoint, nothing is written again."""
    source, output, _ = _from_savepoint(stage, is_twice=False)
    expected = Expected("KEPT", {"DELIVERED": FIRST + MORE})
    how = "exactly-once, the newest checkpoint"
    return [case_of(stage, _SAVEPOINT, how, source, output, expected)]


def torn_at_least_once(stage: Stage) -> list[Case]:
    """A checkpoint that is not complete counts for nothing: what was written since the one before is written again."""
    source, output, again = _torn(stage, "AT_LEAST_ONCE")
    breaks = breaks_of(again, *TWICE, "process before commit")
    expected = Expected("BROKEN", {"DELIVERED": FIRST, "OUTPUT_DUPLICATE": MORE}, breaks)
    return [case_of(stage, _TORN, "at-least-once", source, output, expected)]


def torn_exactly_once(stage: Stage) -> list[Case]:
    """Under exactly-once it is aborted, and written again."""
    source, output, _ = _torn(stage, "EXACTLY_ONCE")
    return [
        case_of(stage, _TORN, "exactly-once", source, output, Expected("KEPT", {"DELIVERED": FIRST + MORE}))
    ]


PLAYS: Final = {
    "flink-anew": anew,
    "flink-restored": restored,
    "flink-savepoint-twice": savepoint_twice,
    "flink-savepoint-once": savepoint_once,
    "flink-torn-at-least-once": torn_at_least_once,
    "flink-torn-exactly-once": torn_exactly_once,
}


def _again(stage: Stage, *, is_restored: bool) -> tuple[Scene, Scene, list[Place], list[dict[str, Any]]]:
    """Cancel a job and start it again; return what it had read, and where its positions went back."""
    source, output = _topics(stage)
    sender = source.sender()
    job = start(stage, source, output=output.name, guarantee="AT_LEAST_ONCE")
    sent = send(source, sender, FIRST)
    await_records(output, FIRST)
    checkpoint = job.checkpoint()
    await_group(stage, source)
    job.cancel()
    send(source, sender, MORE)
    sender.kill()
    successor = start(
        stage,
        source,
        checkpoint if is_restored else None,
        output=output.name,
        guarantee="AT_LEAST_ONCE",
        pause_ms=_SLOW_MS,
    )
    await_records(output, FIRST + 3)
    successor.checkpoint()
    regressed = [] if is_restored else _regression(stage)
    await_records(output, FIRST + MORE + (0 if is_restored else FIRST))
    successor.checkpoint()
    source.end()
    await_group(stage, source)
    successor.cancel()
    return source, output, sent, regressed


def _regression(stage: Stage) -> list[dict[str, Any]]:
    """Return the break of a position that went back: to where the group stands, as Flink has it committed as well."""
    before = {0: FIRST}
    wait_until(lambda: stage.cluster.committed(stage.name) != before, "the group to go back")
    offset = stage.cluster.committed(stage.name)[0]
    if offset > FIRST:
        raise RecordingError(f"{stage.name}: its first checkpoint came too late for its position to go back")
    return breaks_of([[0, offset, None]], "COMMIT_REGRESSION", "offset store")


def _from_savepoint(stage: Stage, *, is_twice: bool) -> tuple[Scene, Scene, list[Place]]:
    """Stop a job with a savepoint, go on from it, and start once more; return what came behind the savepoint."""
    source, output = _topics(stage)
    sender = source.sender()
    job = start(stage, source, output=output.name, guarantee="EXACTLY_ONCE")
    send(source, sender, FIRST)
    await_records(output, FIRST)
    savepoint = job.stop()
    behind = send(source, sender, MORE)
    source.end()
    sender.kill()
    second = start(stage, source, savepoint, output=output.name, guarantee="EXACTLY_ONCE")
    newest = _checkpointed(stage, source, output, second, FIRST + MORE)
    begin = savepoint if is_twice else newest
    third = start(stage, source, begin, output=output.name, guarantee="EXACTLY_ONCE")
    _checkpointed(stage, source, output, third, FIRST + MORE + (MORE if is_twice else 0))
    return source, output, behind


def _checkpointed(stage: Stage, source: Scene, output: Scene, job: Job, count: int) -> Path:
    """Wait for so many records, take a checkpoint, wait until they are committed, and cancel the job."""
    await_records(output, count)
    taken = job.checkpoint()
    await_committed(output, count)
    await_group(stage, source)
    job.cancel()
    return taken


def _torn(stage: Stage, guarantee: str) -> tuple[Scene, Scene, list[Place]]:
    """Kill a job in its second checkpoint, and restore it from the first; return what lies between them."""
    source, output = _topics(stage)
    sender = source.sender()
    job = start(stage, source, output=output.name, guarantee=guarantee)
    send(source, sender, FIRST)
    await_records(output, FIRST)
    checkpoint = job.checkpoint()
    await_group(stage, source)
    between = send(source, sender, MORE)
    source.end()
    sender.kill()
    await_records(output, FIRST + MORE)
    job.kill_in_checkpoint()
    succeed(stage, source, checkpoint, output, guarantee)
    return source, output, between


def _topics(stage: Stage) -> tuple[Scene, Scene]:
    return stage.topic("in"), stage.topic("out", message_timestamp_type="LogAppendTime")
