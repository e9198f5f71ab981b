"""A small receiver of alerts: appends every POST to a file, so that delivery can be seen and counted."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

_BODY_LIMIT = 1_000_000


def make_server(port: int, file: Path) -> ThreadingHTTPServer:
    """Return a server on 127.0.0.1 that appends its requests to `file`, one JSON object per line.

    A line holds `received_at`, `path`, the lower-case `headers` and the `body`, parsed if it is JSON.
    """
    writing = Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, b"receiving alerts\n")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > _BODY_LIMIT:
                self._answer(413, b"too large\n")
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = {
                "received_at": datetime.now(UTC).isoformat(),
                "path": self.path,
                "headers": headers,
                "body": _parsed(self.rfile.read(length)),
            }
            with writing, file.open("a") as log:
                log.write(json.dumps(received) + "\n")
            self._answer(200, b"ok\n")

        def _answer(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            sys.stderr.write(f"{format % args}\n")

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def received(file: Path) -> list[dict[str, Any]]:
    """Return what was received so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True)
    arguments = parser.parse_args()
    make_server(arguments.port, arguments.file).serve_forever()


if __name__ == "__main__":
    main()
