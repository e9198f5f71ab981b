"""A headless browser, driven by its debugging protocol: load times and requests of pages."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

TIMEOUT_SECONDS = 60.0
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
_LOADED = "JSON.stringify(performance.getEntriesByType('navigation')[0])"


class BrowserError(Exception):
    """The browser does not start, or does not answer."""


@dataclass(frozen=True)
class Loaded:
    """A loaded page: seconds until its load event ended, and every address that it requested."""

    seconds: float
    requests: tuple[str, ...]


@dataclass
class Browser:
    """One tab of the browser."""

    connection: ClientConnection
    last_id: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def load(self, address: str) -> Loaded:
        """Load a page and return its timing."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        self._await("Page.loadEventFired")
        # The event is reported while it lasts; its end is known right after.
        entry: dict[str, Any] = {}
        while not entry.get("loadEventEnd"):
            timing = self.call("Runtime.evaluate", expression=_LOADED)
            entry = json.loads(timing["result"]["value"])
        requests = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return Loaded(entry["loadEventEnd"] / 1000, tuple(requests))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one command.

        Raises:
            BrowserError: if it is refused.
        """
        self.last_id += 1
        self.connection.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            answer = self._next()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _await(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            self._next()

    def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.connection.recv(timeout=TIMEOUT_SECONDS))
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Yield a tab of a Chromium with an empty profile, which is closed afterwards.

    Raises:
        BrowserError: if it does not start.
    """
    profile = Path(tempfile.mkdtemp(prefix="tieout-browser-"))
    output: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"], **output)
    try:
        port = _port(profile, process)
        with connect(f"ws://127.0.0.1:{port}{_target(port)}", max_size=None) as connection:
            tab = Browser(connection)
            tab.call("Page.enable")
            tab.call("Network.enable")
            yield tab
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    file = profile / "DevToolsActivePort"
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return int(lines[0])
        time.sleep(0.1)
    raise BrowserError("the browser did not start")


def _target(port: int) -> str:
    """Return the path of the first tab."""
    import httpx  # noqa: PLC0415 - beside the browser only

    tabs = httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False).json()
    address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
    return "/" + str(address).split("/", 3)[3]
