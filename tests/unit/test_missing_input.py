"""What is not there of the evidence that Spark, Kafka Connect and Flink keep, looked at before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tieout.contracts import (
    ConnectFilesSource,
    ConnectOffsetsSource,
    FlinkCheckpointsSource,
    FlinkPreparedSource,
    SparkCheckpointSource,
    SparkFilesSource,
)
from tieout.readiness.files import missing_input


def test_a_query_that_has_not_begun_is_waited_for(tmp_path: Path) -> None:
    """Its folder may be there; remote paths are not looked at."""
    checkpoint, sink = SparkCheckpointSource(path="c"), SparkFilesSource(path="out", format="jsonl")
    (tmp_path / "c" / "sources").mkdir(parents=True)

    assert list(missing_input(checkpoint, tmp_path)) == [
        "no folder offsets of a Structured Streaming checkpoint in c"
    ]
    assert list(missing_input(sink, tmp_path)) == [
        "no folder _spark_metadata of a file sink of Structured Streaming in out"
    ]
    assert not list(missing_input(SparkCheckpointSource(path="s3a://bucket/c"), tmp_path))

    (tmp_path / "c" / "offsets").mkdir()
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    assert not list(missing_input(checkpoint, tmp_path))
    assert not list(missing_input(sink, tmp_path))


def test_a_worker_s_positions_and_a_sink_s_files_are_waited_for(tmp_path: Path) -> None:
    """In the file, in the broker's segments, below the folder; a topic is asked for elsewhere."""
    named: dict[str, Any] = {"connector": "src", "topic": "connect-offsets"}
    kept = ConnectOffsetsSource(connector="src", path="connect.offsets")
    segments = ConnectOffsetsSource(segments=("log",), **named)
    files = ConnectFilesSource(path="topics")

    for source, path in ((kept, "connect.offsets"), (segments, "log"), (files, "topics")):
        assert list(missing_input(source, tmp_path)) == [f"no file at {path}"]
    assert not list(missing_input(ConnectOffsetsSource(connection="events", **named), tmp_path))

    (tmp_path / "connect.offsets").touch()
    assert not list(missing_input(kept, tmp_path))


def test_a_job_s_first_checkpoint_is_waited_for(tmp_path: Path) -> None:
    """Until it is complete, its folder is not enough; remote paths are not looked at."""
    (tmp_path / "checkpoints" / "job" / "chk-1").mkdir(parents=True)
    prepared = FlinkPreparedSource(path="checkpoints", segments=("log",), topic="out")

    for source in (FlinkCheckpointsSource(path="checkpoints"), prepared):
        assert list(missing_input(source, tmp_path)) == [
            "no checkpoint of a Flink job, a folder with _metadata, in checkpoints"
        ]
    assert not list(missing_input(FlinkCheckpointsSource(path="s3a://bucket/c"), tmp_path))

    (tmp_path / "checkpoints" / "job" / "chk-1" / "_metadata").touch()
    assert not list(missing_input(prepared, tmp_path))
