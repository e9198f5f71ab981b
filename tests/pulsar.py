"""A broker's REST interface without a broker: it says what was recorded of a real one, or misbehaves."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tieout.pulsar import SavedAnswers

ANSWERS: Final = Path(__file__).parent / "pulsar_answers"
ORDERS: Final = "persistent/public/default/orders"
STATISTICS: Final = f"{ORDERS}/internalStats"
_ROOT: Final = "/admin/v2/"

Behaviour = Callable[[BaseHTTPRequestHandler, str], bool]
"""Does something of its own with a question below `/admin/v2`, and returns whether that was all."""


@contextmanager
def served(
    behaviour: Behaviour = lambda *_: False, folder: Path = ANSWERS, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Serve the answers in a folder; give the address, and the paths that were asked so far."""
    requested: list[str] = []
    copied = SavedAnswers(folder, "")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.removeprefix(_ROOT)
            requested.append(path)
            if behaviour(self, path):
                return
            answer = copied.get(path)
            self.send_response(answer.status)
            for name, value in answer.headers:
                if name.lower().startswith("x-pulsar-"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}", requested
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
