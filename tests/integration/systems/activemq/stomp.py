"""A client that speaks STOMP 1.2, of the standard library alone, so that nothing is sent or acknowledged unasked."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_CHUNK: Final = 1 << 16


@dataclass(frozen=True)
class Frame:
    """What a broker sent: its command, headers and body."""

    command: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """A connection to a broker on this machine."""

    def __init__(self, port: int, seconds: float = 20) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        self._left = b""
        self._receipts = 0
        self._handed: deque[Frame] = deque()
        self.send("CONNECT", {"accept-version": "1.2", "host": "localhost"})
        self.receive()

    def send(self, command: str, headers: Mapping[str, object], body: bytes = b"") -> None:
        """Send a frame, and wait for nothing."""
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        self._socket.sendall(f"{command}\n{lines}\n".encode() + body + b"\0")

    def ask(self, command: str, headers: Mapping[str, object], body: bytes = b"") -> None:
        """Send a frame, and wait until the broker says that it is done; messages that come meanwhile are kept.

        Raises:
            ConnectionError: where it says something else, or ends.
        """
        self._receipts += 1
        self.send(command, {**headers, "receipt": self._receipts}, body)
        while (found := self._next()).command == "MESSAGE":
            self._handed.append(found)
        if found.command != "RECEIPT":
            raise ConnectionError(f"expected a receipt for {command}, found {found}")

    def receive(self) -> Frame:
        """Return the next frame.

        Raises:
            ConnectionError: where the broker is gone.
            TimeoutError: where none comes.
        """
        return self._handed.popleft() if self._handed else self._next()

    def _next(self) -> Frame:
        while b"\0" not in self._left.lstrip(b"\n"):
            found = self._socket.recv(_CHUNK)
            if not found:
                raise ConnectionError("the broker has ended the connection")
            self._left += found
        raw, _, self._left = self._left.lstrip(b"\n").partition(b"\0")
        head, _, body = raw.partition(b"\n\n")
        command, *lines = head.decode().split("\n")
        headers = dict(line.partition(":")[::2] for line in reversed(lines))
        return Frame(command, headers, body)

    def close(self) -> None:
        """End the connection without a word."""
        self._socket.close()
