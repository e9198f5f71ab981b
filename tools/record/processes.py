"""Child processes, each ended by its id whatever happens to the recording."""

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
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pause(process: subprocess.Popen[Any]) -> None:
    """Pause the process, and return once it has stopped: on a busy machine it continues for a while."""
    process.send_signal(signal.SIGSTOP)
    if process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def end(process: subprocess.Popen[Any], timeout: float = 20) -> None:
    """End the process with SIGTERM, and with SIGKILL if it has not ended `timeout` seconds later."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGCONT)
    process.terminate()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout)


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

    def wait_for(self, event: str, timeout: float = 90) -> dict[str, Any]:
        """Return the next event of that name.

        Raises:
            RecordingError: if the client ended before, or did not send the event for `timeout` seconds.
        """
        while True:
            try:
                message = self._events.get(timeout=timeout)
            except queue.Empty:
                raise RecordingError(f"{self.name} did not come to `{event}` within {timeout} s") from None
            if message is _END:
                raise RecordingError(f"{self.name} ended before `{event}`:\n{self._log.read_text()[-2000:]}")
            if message["event"] == event:
                event_fields: dict[str, Any] = message
                return event_fields

    def kill(self) -> None:
        """End the client as a failing machine would: SIGKILL, no chance to commit, close or flush."""
        self.process.kill()
        self.process.wait(20)

    def finish(self, timeout: float = 60) -> None:
        """Ask the client to finish and wait until it has.

        Raises:
            RecordingError: if it failed.
        """
        self.process.terminate()
        self.wait_for("done", timeout)
        if self.process.wait(timeout) != 0:
            raise RecordingError(f"{self.name} failed:\n{self._log.read_text()[-2000:]}")
