"""A Flink job that copies a topic, on a cluster in a process of its own: started, checkpointed, paused and killed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import HASHED, log_of
from tests.integration.kafka_faults.scene import Place, Scene
from tests.integration.systems.engine import Application
from tests.integration.systems.scene import Stage
from tools.record.processes import RecordingError, pause
from tools.record.segments import Marker

SETTINGS: Final = {
    "execution.checkpointing.interval": "1 h",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.num-retained": 50,
    "restart-strategy.type": "none",
    "taskmanager.memory.network.min": "16m",
    "taskmanager.memory.network.max": "16m",
    "taskmanager.memory.managed.size": "16m",
    "transaction.timeout.ms": 900_000,
    "pause.ms": 0,
}
"""Checkpoints are taken when a play asks for one, so that it knows what is in each."""
_GLANCE: Final = 0.0003
"""Seconds between two looks for the file that makes a checkpoint complete: what it prepared is committed right then."""
_PATIENCE, _TRIES = 60, 5


@dataclass(frozen=True)
class Job:
    """One life of the application."""

    application: Application
    checkpoints: Path
    commands: Path

    def checkpoint(self) -> Path:
        """Take a checkpoint, and return its folder once all that it prepared was told to be committed."""
        known = set(self.completed())
        self._carry_out("checkpoint")
        (taken,) = set(self.completed()) - known
        return taken

    def pause_at_checkpoint(self) -> Path:
        """Take a checkpoint, and stop the process the moment that it is complete."""
        return self._pause_when(self.completed)

    def kill_in_checkpoint(self) -> Path:
        """Begin a checkpoint, end the process before it is complete, and return its folder."""
        for _ in range(_TRIES):
            taken = self._pause_when(self._begun)
            if taken not in self.completed():
                self.kill()
                return taken
            self.resume()
            self.await_end("checkpoint")
        raise RecordingError("each checkpoint was complete before the job stood still")

    def _pause_when(self, folders: Callable[[], list[Path]]) -> Path:
        """Ask for a checkpoint, and stop the process once there is one more of these folders, which is returned."""
        known = set(folders())
        (self.commands / "checkpoint").touch()
        for _ in range(int(_PATIENCE / _GLANCE)):
            if new := set(folders()) - known:
                pause(self.application.process)
                return new.pop()
            time.sleep(_GLANCE)
        raise RecordingError("no checkpoint was taken")

    def resume(self) -> None:
        """Let the stopped process go on."""
        self.application.process.send_signal(SIGCONT)

    def stop(self) -> Path:
        """Stop the job with a savepoint, and return that."""
        self._carry_out("stop")
        self.application.wait()
        (taken,) = self.checkpoints.glob("savepoints/savepoint-*")
        return taken

    def cancel(self) -> None:
        """Cancel the job, which keeps its checkpoints."""
        self._carry_out("cancel")
        self.application.wait()

    def kill(self) -> None:
        """End the process as a failing machine would."""
        self.application.kill()

    def completed(self) -> list[Path]:
        """Return the folders of the checkpoints that are complete."""
        return [path.parent for path in self.checkpoints.glob("*/chk-*/_metadata")]

    def _begun(self) -> list[Path]:
        return list(self.checkpoints.glob("*/chk-*"))

    def await_end(self, command: str) -> None:
        """Wait until the job has done what it was told.

        Raises:
            RecordingError: where it ends instead, with what it said.
        """
        file = self.commands / command
        wait_until(lambda: not file.exists() or self._has_ended(), f"the job to {command}")
        if file.exists():
            raise RecordingError(
                f"{self.application.name} ended:\n{self.application.log.read_text()[-2000:]}"
            )

    def _carry_out(self, command: str) -> None:
        (self.commands / command).touch()
        self.await_end(command)

    def _has_ended(self) -> bool:
        return self.application.process.poll() is not None


def start(stage: Stage, source: Scene, restore: Path | None = None, **settings: object) -> Job:
    """Start a life of the job, from a checkpoint or savepoint where one is given; underscores stand for dots."""
    checkpoints, commands = checkpoints_of(stage), stage.folder / "commands"
    shutil.rmtree(commands, ignore_errors=True)
    commands.mkdir(parents=True)
    named = {name.replace("_", "."): value for name, value in settings.items()}
    all_settings = {
        **SETTINGS,
        "bootstrap.servers": stage.cluster.bootstrap,
        "input": source.name,
        "group": stage.name,
        "commands": commands,
        "execution.checkpointing.dir": checkpoints.as_uri(),
        "execution.checkpointing.savepoint-dir": (checkpoints / "savepoints").as_uri(),
        **({} if restore is None else {"execution.state-recovery.path": restore.as_uri()}),
        **named,
    }
    return Job(stage.start("Copy", all_settings, "job"), checkpoints, commands)


def checkpoints_of(stage: Stage) -> Path:
    """Return the folder of the checkpoints of all lives."""
    return stage.folder / "checkpoints"


def await_records(output: Scene, count: int) -> None:
    """Wait until the topic has so many records, whatever becomes of their transactions."""
    wait_until(lambda: len(output.records()) >= count, f"{count} records in {output.name}")


def committed_in(output: Scene) -> int:
    """Return how many records of the topic are of committed transactions, as its markers say."""
    open_records: dict[int, int] = {}
    committed = 0
    for batch in output.cluster.log(output.leader, output.name):
        if batch.is_control:
            found = open_records.pop(batch.producer_id, 0)
            committed += found if batch.marker is Marker.COMMIT else 0
        else:
            open_records[batch.producer_id] = open_records.get(batch.producer_id, 0) + len(batch.records)
    return committed


def send(source: Scene, sender: Any, count: int) -> list[Place]:
    """Send so many new messages with a client that runs already."""
    sender.call("send", ids=source.ids(count), partition=0)
    return [[partition, offset, id_] for id_, partition, offset, _ in sender.call("settle")]


def positions(stage: Stage) -> dict[str, Any]:
    """Return the ledger `committed`: the checkpoints of all lives of the job."""
    path = str(checkpoints_of(stage))
    return {"source": {"kind": "flink_checkpoints", "path": path, "taken_at": "now"}}


def topic_output(stage: Stage, output: Scene) -> dict[str, Any]:
    """Return the ledger `delivered`: the output topic, each record of the job that a header names."""
    columns = {
        **HASHED,
        "processed_at": "source_timestamp",
        "consumer_id": "cast(filter(headers, h -> h.key = 'job')[0].value as string)",
    }
    return {**log_of(stage.data, output.name), "columns": columns}


def prepared(stage: Stage, output: Scene) -> dict[str, Any]:
    """Return the ledger `staged`: what the checkpoints say was prepared, as the output topic has it."""
    source = {
        "kind": "flink_prepared",
        "path": str(checkpoints_of(stage)),
        "segments": str(stage.data),
        "topic": output.name,
        "taken_at": "now",
    }
    return {"source": source, "columns": {"message_id": HASHED["message_id"]}}
