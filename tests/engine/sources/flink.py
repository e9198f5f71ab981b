"""Files of metadata as Flink 1.18 to 2.3 write them; what Flink itself wrote is in tests/flink_files."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from tieout.engine.systems.flink_operators import id_of_uid

JOB = "1b699261ad76c549c114c20203663c29"
SOURCE, SINK = ("Source: input", "input"), ("output: Committer", "Sink Committer: output")
"""Name and uid of the two operators."""
_PROPERTIES = (
    b"\xac\xed\0\5sr\0\x38org.apache.flink.runtime.checkpoint.CheckpointPropertiesxpt\0\x10FORWARD_BACKWARD"
)
_FIRST_WITH_NAMES = 5
_NO_KEYED_NO_CHANNELS = bytes(2 + 2 * 4)

States = Mapping[tuple[str, str], Mapping[str, Sequence[bytes]]]


def text(value: str) -> bytes:
    """A text with its length."""
    content = value.encode()
    return struct.pack(">H", len(content)) + content


def split(topic: str, partition: int, offset: int) -> bytes:
    """An element of a Kafka source's state."""
    content = text(topic) + struct.pack(">iqq", partition, offset, -(2**63))
    return struct.pack(">ii", 0, len(content)) + content


def transaction(producer: int, epoch: int, name: str = "out-0-1") -> bytes:
    """A transaction of a Kafka sink."""
    return struct.pack(">hq", epoch, producer) + text(name)


def committer(checkpoint: int, *committables: bytes, versions: tuple[int, int] = (1, 2)) -> bytes:
    """An element of a committer's state: what one subtask prepared; the versions are of its checkpoint and subtask."""
    of_checkpoint, of_subtask = versions
    requests = [_sized(1, one) + bytes(8) for one in committables]
    subtask = bytes(4 if of_subtask else 0) + _list(0, requests) + bytes(8 if of_subtask > 1 else 12)
    count = struct.pack(">i", 1) if of_checkpoint else b""
    content = struct.pack(">q", checkpoint) + count + _list(of_subtask, [subtask])
    return _sized(2, bytes.fromhex("b91f252c") + _list(of_checkpoint, [content]))


def state(elements: Mapping[str, Sequence[bytes]]) -> tuple[bytes, bytes]:
    """What the metadata says of the states of a subtask, and their content."""
    said, content = struct.pack(">bi", 4, len(elements)), b""
    for name, parts in elements.items():
        said += text(name) + struct.pack(">bi", 0, len(parts))
        for part in parts:
            said += struct.pack(">q", len(content))
            content += struct.pack(">i", len(part)) + part
    return said, content


def metadata(
    number: int,
    states: States,
    *,
    version: int = 6,
    rest: bytes = _NO_KEYED_NO_CHANNELS,
    file: str | None = None,
    below: str | None = None,
    others: Sequence[Mapping[str, Sequence[bytes]]] = (),
) -> bytes:
    """A file of metadata; `rest` is what each subtask has besides, `others` the states of each operator's others.

    Before version 5 it has no names. `file` has the states' content, where it is named as in a checkpoint, `below`
    where it is as in a savepoint.
    """
    found = bytes.fromhex("4960672d") + struct.pack(">iqii", version, number, 0, len(states))
    for (name, uid), elements in states.items():
        parts = [elements, *others]
        found += text(name) + text(uid) if version >= _FIRST_WITH_NAMES else b""
        found += bytes.fromhex(id_of_uid(uid or name))
        found += struct.pack(">iibi", len(parts), 128, 0, len(parts))
        for subtask, part in enumerate(parts):
            said, content = state(part)
            stream = b"\1" + text("handle") + struct.pack(">i", len(content)) + content
            if file is not None:
                stream = b"\2" + struct.pack(">q", len(content)) + text(f"file:/data/chk-{number}/{file}")
            if below is not None:
                stream = b"\6" + text(below) + struct.pack(">q", len(content))
            found += struct.pack(">ii", subtask, 1) + said + stream + bytes(4) + rest
    return found + _PROPERTIES


def write_checkpoint(
    folder: Path,
    number: int,
    offsets: Mapping[int, int],
    at: datetime,
    *prepared: bytes,
    job: str = JOB,
    version: int = 6,
) -> Path:
    """Write a checkpoint of the topic orders, complete at that time; return its metadata."""
    states = {
        SOURCE: {"SourceReaderState": [split("orders", place, offset) for place, offset in offsets.items()]},
        SINK: {"streaming_committer_raw_states": [committer(number, *prepared)]},
    }
    return written(
        folder / job / f"chk-{number}" / "_metadata", metadata(number, states, version=version), at
    )


def written(path: Path, content: bytes, at: datetime) -> Path:
    """Write a file as of that time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def _sized(version: int, content: bytes) -> bytes:
    return struct.pack(">ii", version, len(content)) + content


def _list(version: int, parts: Sequence[bytes]) -> bytes:
    packed = b"".join(struct.pack(">i", len(part)) + part for part in parts)
    return struct.pack(">ii", version, len(parts)) + packed
