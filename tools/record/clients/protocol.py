"""The protocol between a client and the recorder: configuration in a file, events as JSON lines on stdout."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any


def configuration() -> dict[str, Any]:
    """Return the configuration in the JSON file that the first argument names."""
    loaded: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    return loaded


def announce(event: str, **facts: object) -> None:
    """Send an event to the recorder."""
    print(json.dumps({"event": event, **facts}), flush=True)


def wait_to_be_killed() -> None:
    """Wait until the recorder kills this process with SIGKILL, as a failing machine would."""
    while True:
        signal.pause()


def stop_on_sigterm() -> threading.Event:
    """Return an event that SIGTERM sets."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped


class LedgerFile:
    """A file of JSON lines; a row has reached the operating system when `write` returns, so it survives SIGKILL."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", buffering=1)  # noqa: SIM115 - open as long as the process lives

    def write(self, row: dict[str, object]) -> None:
        """Append one row."""
        self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
