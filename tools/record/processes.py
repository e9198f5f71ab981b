"""Child processes, each ended by its own id whatever happens to the recording."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

_END = object()


class RecordingError(Exception):
    """The recording cannot be used: something did not happen as the example says it did."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pause(process: subprocess.Popen[Any]) -> None:
    """Stop the process where it is, and return when it stands still: on a busy machine it runs on for a while."""
    process.send_signal(signal.SIGSTOP)
    if process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def end(process: subprocess.Popen[Any], patience: float = 20) -> None:
    """End the process with SIGTERM, and with SIGKILL where it has not ended `patience` seconds later."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGCONT)
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(patience)


class Client:
    """One of the recorder's own clients, running; its events are read as they come."""

    def __init__(
        self, module: str, config: dict[str, Any], folder: Path, name: str, stack: ExitStack
    ) -> None:
        self.name = name
        self._log = folder / f"{name}.err"
        config_file = folder / f"{name}.json"
        config_file.write_text(json.dumps(config))
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"tools.record.clients.{module}", str(config_file)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        stack.callback(end, self.process)
        self._events: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._events.put(json.loads(line))
        self._events.put(_END)

    def wait_for(self, event: str, patience: float = 90) -> dict[str, Any]:
        """Return the next event of that name.

        Raises:
            RecordingError: where the client ended before, or said nothing of the kind for `patience` seconds.
        """
        while True:
            try:
                got = self._events.get(timeout=patience)
            except queue.Empty:
                raise RecordingError(f"{self.name} did not come to `{event}` within {patience} s") from None
            if got is _END:
                raise RecordingError(f"{self.name} ended before `{event}`:\n{self._log.read_text()[-2000:]}")
            if got["event"] == event:
                found: dict[str, Any] = got
                return found

    def kill(self) -> None:
        """End the client as a failing machine would: SIGKILL, no chance to commit, close or flush."""
        self.process.kill()
        self.process.wait(20)

    def finish(self, patience: float = 60) -> None:
        """Ask the client to finish and wait until it has.

        Raises:
            RecordingError: where it did not end well.
        """
        self.process.terminate()
        self.wait_for("done", patience)
        if self.process.wait(patience) != 0:
            raise RecordingError(f"{self.name} failed:\n{self._log.read_text()[-2000:]}")
