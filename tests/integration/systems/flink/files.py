"""Jobs that write files: what was in progress and what was pending when they were killed is in the output once."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import UNTIL_READ
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.flink.job import positions, send, start
from tests.integration.systems.flink.topics import TWICE, await_group
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_PART: Final = 10
_KILLED: Final = "job killed with files in progress and pending"


def killed(stage: Stage) -> list[Case]:
    """What was pending is finished by the successor, what was in progress is written again, and no output."""
    source, _ = _killed(stage, is_older=False)
    expected = Expected("KEPT", {"DELIVERED": 3 * _PART}, rows={"delivered": 3 * _PART})
    return [_case(stage, "FileSink, the newest checkpoint", source, expected)]


def killed_and_set_back(stage: Stage) -> list[Case]:
    """From an older checkpoint what became output since then is written again."""
    source, finished = _killed(stage, is_older=True)
    breaks = breaks_of(finished, *TWICE, "unknown")
    classes = {"DELIVERED": 2 * _PART, "OUTPUT_DUPLICATE": _PART}
    expected = Expected("BROKEN", classes, breaks, {"delivered": 4 * _PART})
    return [_case(stage, "FileSink, an older checkpoint", source, expected)]


PLAYS: Final = {"flink-files": killed, "flink-files-older": killed_and_set_back}


def _killed(stage: Stage, *, is_older: bool) -> tuple[Scene, list[Place]]:
    """Kill a job twice, go on from the newest checkpoint or the first; return what the file held that was pending."""
    source, files = stage.topic("in"), stage.folder / "files"
    sender = source.sender()
    job = start(stage, source, files=files.as_uri())
    send(source, sender, _PART)
    _await_lines(stage, _PART)
    first = job.checkpoint()
    pending = send(source, sender, _PART)
    _await_lines(stage, 2 * _PART)
    second = job.pause_at_checkpoint()
    job.kill()
    successor = start(stage, source, second, files=files.as_uri())
    send(source, sender, _PART)
    source.end()
    sender.kill()
    _await_lines(stage, 3 * _PART)
    successor.kill()
    if not list(files.glob(".*")):
        raise RecordingError("no file was in progress when the job was killed")
    last = start(stage, source, first if is_older else second, files=files.as_uri())
    _await_lines(stage, (5 if is_older else 4) * _PART)
    last.checkpoint()
    await_group(stage, source)
    last.cancel()
    return source, pending


def _await_lines(stage: Stage, count: int) -> None:
    """Wait until so many lines are in files, finished or not."""
    files = stage.folder / "files"
    wait_until(
        lambda: sum(len(file.read_text().splitlines()) for file in files.rglob("*part*")) >= count,
        f"{count} lines in {files.name}",
    )


def _case(stage: Stage, how: str, source: Scene, expected: Expected) -> Case:
    ledgers: dict[str, Any] = {
        "delivered": {
            "source": {"kind": "files", "format": "jsonl", "path": str(stage.folder / "files")},
            "columns": {"message_id": "value.order_id", "processed_at": "written_at", "consumer_id": "job"},
            "coverage": UNTIL_READ,
        },
        "committed": positions(stage),
    }
    return stage.case(_KILLED, how, source, ledgers, expected, group=stage.name)
