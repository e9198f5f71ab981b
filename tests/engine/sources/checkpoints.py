"""Checkpoints of a query that reads Kafka, as Structured Streaming writes them."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def began_at(batch: int) -> datetime:
    """When a batch of `write_checkpoint` began: one each minute, committed ten seconds later."""
    return BEGAN + timedelta(minutes=batch)


def write_checkpoint(
    folder: Path, ends: Sequence[dict[str, int]], commits: int, first: dict[str, int] | None
) -> None:
    """Write so many batches of the topic orders, the first `commits` of them committed."""
    for batch, end in enumerate(ends):
        millis = int(began_at(batch).timestamp() * 1000)
        metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": millis, "conf": {}})
        written(folder / "offsets" / str(batch), f"v1\n{metadata}\n{json.dumps({'orders': end})}".encode())
        if batch < commits:
            path = written(folder / "commits" / str(batch), b'v1\n{"nextBatchWatermarkMs":0}')
            set_time(path, began_at(batch) + timedelta(seconds=10))
    if first is not None:
        written(folder / "sources" / "0" / "0", b"\0v1\n" + json.dumps({"orders": first}).encode())


def written(path: Path, content: bytes) -> Path:
    """Write a file with its checksums beside it, as Hadoop's local file system does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    sums = b"".join(
        zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512)
    )
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)
    return path


def set_time(path: Path, at: datetime) -> None:
    """Set when a file was written."""
    os.utime(path, (at.timestamp(), at.timestamp()))
