"""Whole windows on what Spark, Connect, Flink and Trident keep: KEPT where it is whole, never where it is damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import contract_of
from tests.engine.sources.checkpoints import BEGAN, write_checkpoint, written
from tests.engine.sources.flink import JOB, metadata
from tests.engine.sources.flink import write_checkpoint as write_flink_checkpoint
from tests.engine.sources.maps import serialised_map
from tests.engine.sources.zookeeper import current, entry, log, ranged

from tieout.engine.reconciling import reconcile
from tieout.model import Window

_WINDOW = Window(BEGAN, BEGAN + timedelta(hours=1))
_NOW = datetime(2026, 11, 20, 13, tzinfo=UTC)
_KEY = b'["src",{"filename":"orders"}]'


def _rows(*offsets: int) -> bytes:
    at = "2026-11-20T10:05:00Z"
    rows = (
        {"message_id": f"m{n}", "attempted_at": at, "processed_at": at, "outcome": "acked"} for n in offsets
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _sent(folder: Path) -> dict[str, Any]:
    rows = _rows(*range(6)).decode().splitlines()
    placed = [
        {**json.loads(row), "topic": "orders", "partition": 0, "offset": n} for n, row in enumerate(rows)
    ]
    (folder / "sent.jsonl").write_text("".join(json.dumps(row) + "\n" for row in placed))
    return {"source": {"kind": "files", "format": "jsonl", "path": "sent.jsonl"}, "coverage": "declared"}


def _spark(folder: Path) -> dict[str, Any]:
    """A query that read two batches, and the folder of its sink."""
    write_checkpoint(folder / "checkpoint", [{"0": 3}, {"0": 6}], commits=2, first={"0": 0})
    for batch, offsets in enumerate(((0, 1, 2), (3, 4, 5))):
        part = written(folder / "out" / f"part-{batch}.json", _rows(*offsets))
        line = {"path": part.as_uri(), "size": part.stat().st_size, "isDir": False, "action": "add"}
        written(folder / "out" / "_spark_metadata" / str(batch), b"v1\n" + json.dumps(line).encode())
    output = {"kind": "spark_files", "path": "out", "format": "jsonl", "taken_at": "now"}
    positions = {"kind": "spark_checkpoint", "path": "checkpoint", "taken_at": "now"}
    columns = {"outcome": "'ok'"}
    return {"delivered": {"source": output, "columns": columns}, "committed": {"source": positions}}


def _sink(folder: Path) -> dict[str, Any]:
    """Files of a sink connector that are named by their offsets."""
    for first in (0, 3):
        written(
            folder / "out" / f"orders+0+{first:010}+{first + 2:010}.json", _rows(*range(first, first + 3))
        )
    known = {"kind": "connect_files", "path": "out", "taken_at": "now"}
    output = {"source": {**known, "format": "jsonl"}, "columns": {"outcome": "'ok'"}}
    return {"delivered": output, "committed": {"source": known}}


def _source(folder: Path) -> dict[str, Any]:
    """A source connector's positions in its worker's file."""
    (folder / "out.jsonl").write_bytes(_rows(*range(6)))
    (folder / "connect.offsets").write_bytes(serialised_map((_KEY, b'{"position":6}')))
    positions = {"kind": "connect_offsets", "path": "connect.offsets", "connector": "src", "taken_at": "now"}
    output = {"kind": "files", "format": "jsonl", "path": "out.jsonl"}
    delivered = {"source": output, "columns": {"outcome": "'ok'"}, "coverage": "declared"}
    return {"delivered": delivered, "committed": {"source": positions}}


def _job(folder: Path, version: int = 6) -> dict[str, Any]:
    """A Flink job's two checkpoints, and the folder of its file sink with a file in progress."""
    for number, offset in ((1, 3), (2, 6)):
        at = BEGAN + timedelta(minutes=10 * number)
        write_flink_checkpoint(folder / "checkpoints", number, {0: offset}, at, version=version)
    written(folder / "out" / "part-0.json", _rows(*range(6)))
    written(folder / "out" / ".part-1.json.inprogress.0a1b", _rows(5))
    positions = {"kind": "flink_checkpoints", "path": "checkpoints", "taken_at": "now"}
    output = {"kind": "files", "format": "jsonl", "path": "out"}
    delivered = {"source": output, "columns": {"outcome": "'ok'"}, "coverage": "declared"}
    return {"delivered": delivered, "committed": {"source": positions}}


def _older_job(folder: Path) -> dict[str, Any]:
    """The same of Flink 1.20, whose metadata has no names."""
    return _job(folder, version=4)


def _stream(folder: Path) -> dict[str, Any]:
    """Two batches of Trident in two files of ZooKeeper's log, and the messages that are counted in its state."""
    millis = int(BEGAN.timestamp() * 1000) + 600_000
    changes = (ranged(1, 0, 2), current(2), ranged(2, 3, 5), current(3))
    entries = [entry(zxid, change, millis=millis + zxid) for zxid, change in enumerate(changes, start=1)]
    written(folder / "zookeeper" / "log.1", log(entries[:2]))
    written(folder / "zookeeper" / "log.3", log(entries[2:], padding=0))
    (folder / "out.jsonl").write_bytes(_rows(*range(6)))
    positions = {"kind": "trident", "path": "zookeeper", "stream": "orders", "taken_at": "now"}
    output = {"kind": "files", "format": "jsonl", "path": "out.jsonl"}
    delivered = {"source": output, "columns": {"outcome": "'ok'"}, "coverage": "declared"}
    return {"delivered": delivered, "committed": {"source": positions}}


def _cut(name: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:-1])

    return cut


def _gone(name: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def _content(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        written(folder / name, content)

    return write


def _whole(folder: Path) -> None:
    assert folder.is_dir()


def _verdict(spark: SparkSession, folder: Path, made: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    ledgers = {"produced": _sent(folder), **made(folder)}
    contract = contract_of(folder, ledgers)
    return reconcile(spark, contract, _WINDOW, run_id="r", now=_NOW).statement


@pytest.mark.parametrize(
    ("made", "damage"),
    [
        (_spark, _gone("checkpoint/offsets/0")),
        (_spark, _gone("checkpoint/offsets")),
        (_spark, _cut("checkpoint/commits/0")),
        (_spark, _content("checkpoint/offsets/1", b"v2\n{}\n0:{}")),
        (_spark, _gone("out/_spark_metadata")),
        (_spark, _gone("out/_spark_metadata/0")),
        (_spark, _cut("out/part-1.json")),
        (_sink, _content("out/strange.json", b"{}\n")),
        (_sink, _gone("out")),
        (_source, _cut("connect.offsets")),
        (_source, _gone("connect.offsets")),
        (_job, _cut(f"checkpoints/{JOB}/chk-1/_metadata")),
        (_job, _content(f"checkpoints/{JOB}/chk-2/_metadata", metadata(2, {}, version=7))),
        (_job, _gone(f"checkpoints/{JOB}/chk-1")),
        (_job, _gone("checkpoints")),
        (_older_job, _cut(f"checkpoints/{JOB}/chk-1/_metadata")),
        (_older_job, _gone(f"checkpoints/{JOB}/chk-1")),
        (_stream, _gone("zookeeper/log.1")),
        (_stream, _gone("zookeeper")),
        (_stream, _content("zookeeper/log.1", log((), version=3))),
        (_stream, _content("zookeeper/log.4", log((entry(9, current(4)),)))),
        (_stream, _content("zookeeper/log.1", log((entry(1, current(2)), entry(2, current(2)))))),
        (
            _stream,
            _content("zookeeper/log.3", log((entry(3, ("/transactional/refunds/a", b"")),), version=1)),
        ),
    ],
)
def test_damaged_evidence_is_never_kept(
    spark: SparkSession,
    tmp_path: Path,
    made: Callable[[Path], dict[str, Any]],
    damage: Callable[[Path], None],
) -> None:
    """A verdict of another kind, with the file in the notes of its ledger."""

    def damaged(folder: Path) -> dict[str, Any]:
        ledgers = made(folder)
        damage(folder)
        return ledgers

    found = _verdict(spark, tmp_path, damaged)

    assert found["verdict"] == "UNKNOWN", (found["verdict"], found["reasons"])


@pytest.mark.parametrize("made", [_spark, _sink, _source, _job, _older_job, _stream])
def test_whole_evidence_is_kept(
    spark: SparkSession, tmp_path: Path, made: Callable[[Path], dict[str, Any]]
) -> None:
    """Nothing is left unexplained."""
    found = _verdict(spark, tmp_path, made)

    assert (found["verdict"], found["classes"]) == ("KEPT", {"DELIVERED": 6}), found["reasons"]
