"""A client in a process of its own, told what to do step by step, and killed where the scenario says so."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from signal import SIGCONT
from typing import Any

from tools.record.processes import RecordingError, pause


class Remote:
    """One running client; `call` waits for the answer, `begin` and `answer` let others act in between."""

    def __init__(self, kind: str, name: str, config: dict[str, Any], folder: Path, stack: ExitStack) -> None:
        self.name = name
        self._log = folder / f"{name}.err"
        (folder / f"{name}.json").write_text(json.dumps(config))
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", f"tests.integration.kafka_faults.clients.{kind}"),
                    str(folder / f"{name}.json"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        stack.callback(self.kill)

    def call(self, command: str, **arguments: Any) -> Any:
        """Have the client do something and return its answer.

        Raises:
            RecordingError: where the client ended instead, with what it said.
        """
        self.begin(command, **arguments)
        return self.answer()

    def begin(self, command: str, **arguments: Any) -> None:
        """Have the client do something without waiting for it."""
        if self.process.stdin is None or self.process.poll() is not None:
            raise self._ended()
        print(json.dumps({"command": command, **arguments}), file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        """Wait for the answer to what was begun.

        Raises:
            RecordingError: where the client ended instead, with what it said.
        """
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise self._ended()
        return json.loads(line)

    def kill(self) -> None:
        """End the client as a failing machine would: no chance to commit, close or flush."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def pause(self) -> None:
        """Stop the client where it is, as a machine does that swaps or collects garbage."""
        pause(self.process)

    def resume(self) -> None:
        """Let the stopped client go on."""
        self.process.send_signal(SIGCONT)

    def _ended(self) -> RecordingError:
        return RecordingError(f"{self.name} ended:\n{self._log.read_text()[-2000:]}")
