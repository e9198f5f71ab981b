"""Record batches put into a topic as they are: a Kafka client refuses times that brokers take."""

from __future__ import annotations

import socket
import struct

_PRODUCE, _VERSION, _ALL = 0, 3, -1
_PATIENCE = 30


def append(
    bootstrap: str, topic: str, partition: int, batch: bytes, transactional_id: str | None = None
) -> None:
    """Have the broker append the batch.

    Source: Apache Kafka's protocol guide, "Produce API", version 3.
    """
    reported = _text(transactional_id) + struct.pack(">hi", _ALL, _PATIENCE * 1000)
    data = struct.pack(">iii", 1, partition, len(batch)) + batch
    body = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text("raw") + reported
    request = body + struct.pack(">i", 1) + _text(topic) + data
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), _PATIENCE) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    place = 4 + 4 + len(_text(topic)) + 4 + 4
    (error,) = struct.unpack_from(">h", answer, place)
    assert error == 0, f"the broker refused the batch: error {error}"


def _text(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode()
