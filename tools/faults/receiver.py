"""A receiver of alerts that refuses the first tries of each, and can keep a sender waiting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

REFUSALS = 2
"""The number of tries of each alert that are answered with 503 before one is accepted."""
_LONGEST_DELAY_SECONDS = 120.0


class Receiver:
    """The tries and the accepted alerts, by idempotency key."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()
        self.taken: list[dict[str, Any]] = []
        self.is_down = False
        """Whether all tries are refused."""
        self.is_holding = Event()
        """Set while a sender waits for the answer to an accepted alert."""
        self._hold = False
        self._released = Event()
        self._writing = Lock()

    def forget(self) -> None:
        """Delete all tries and alerts, and accept new ones."""
        with self._writing:
            self.tries.clear()
            self.taken.clear()
        self.is_down, self._hold = False, False
        self.is_holding.clear()
        self._released.clear()

    def delay_next(self) -> None:
        """Accept the next alert, and answer only when `release` is called."""
        self._hold = True

    def release(self) -> None:
        """Answer the waiting sender."""
        self._hold = False
        self._released.set()

    def status_of(self, key: str, body: dict[str, Any]) -> int:
        """Return the status for one try, and record an accepted alert."""
        with self._writing:
            self.tries[key] += 1
            if self.is_down or self.tries[key] <= REFUSALS:
                return 503
            self.taken.append({"key": key, **body})
            waits, self._hold = self._hold, False
        if waits:
            self.is_holding.set()
            self._released.wait(_LONGEST_DELAY_SECONDS)
        return 200

    def keys(self) -> Counter[str]:
        """Return how often each alert was accepted, by key."""
        with self._writing:
            return Counter(str(alert["key"]) for alert in self.taken)


@contextmanager
def serving(receiver: Receiver, port: int) -> Iterator[None]:
    """Serve the receiver on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            status = receiver.status_of(str(self.headers.get("Idempotency-Key")), body)
            try:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                return  # The sender is dead, which is what this receiver is for.

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
