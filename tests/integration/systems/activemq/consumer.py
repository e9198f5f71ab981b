"""A process that takes messages of a queue over STOMP, writes each down as processed, and acknowledges it.

`python -m tests.integration.systems.activemq.consumer PORT QUEUE ACK OUTPUT NAME LIMIT`: with `auto` the broker counts
a message as acknowledged when it is handed out. After LIMIT messages it processes no more and stands still with what it
was given; `held` beside the output then says how many that are.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.integration.systems.activemq.stomp import Connection, Frame


def main(port: int, queue: str, ack: str, output: Path, name: str, limit: int) -> None:
    """Take messages until the process is killed."""
    connection = Connection(port, seconds=600)
    prefetch = {"activemq.prefetchSize": 100}
    connection.send("SUBSCRIBE", {"id": 1, "destination": f"/queue/{queue}", "ack": ack, **prefetch})
    held = 0
    for number in range(1 << 30):
        message = connection.receive()
        if number >= limit:
            held += 1
            (output.parent / "held").write_text(str(held))
            continue
        if message.headers.get("poison") == "yes":
            connection.ask("NACK", {"id": message.headers["ack"]})
            continue
        _process(message, output, name)
        if ack != "auto":
            connection.ask("ACK", {"id": message.headers["ack"]})


def _process(message: Frame, output: Path, name: str) -> None:
    row = {
        "message_id": message.headers["order_id"],
        "payload_hash": hashlib.sha256(message.body).hexdigest(),
        "processed_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "consumer_id": name,
    }
    with output.open("a") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    with suppress(ConnectionError):  # a broker that is killed
        main(int(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5], int(sys.argv[6]))
