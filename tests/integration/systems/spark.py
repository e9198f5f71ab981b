"""Spark Structured Streaming: a query that writes tables or files, halted or killed in a batch."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.engine import Engine, class_path_of
from tests.integration.systems.scene import Case, Expected, Stage
from tests.integration.systems.tables import rows_of, table_settings

_OPENED: Final = (
    *(
        "java.base/java.lang",
        "java.base/java.lang.invoke",
        "java.base/java.lang.reflect",
        "java.base/java.io",
    ),
    *("java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent"),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch"),
    *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
)
"""What Spark needs opened on Java 17, as its launcher passes it: `JavaModuleOptions` of apache/spark."""
_MESSAGES, _PER_BATCH, _HALTED = 40, 10, 137
_PLAIN: Final = "foreachBatch inserts into a table without a key"
_KEYED: Final = "foreachBatch inserts into a table keyed by position"


def engine(folder: Path) -> Engine:
    """Return Spark with the project's own applications, compiled into the folder."""
    return engine_of_spark(folder)


def engine_of_spark(folder: Path) -> Engine:
    """Return Spark: PySpark's jars, in the folder that TIEOUT_SYSTEMS_SPARK names, and those of `make engines`."""
    jars = (Path(os.environ["TIEOUT_SYSTEMS_SPARK"]),)
    options = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    return Engine(class_path_of("spark", folder, jars, ["Tables"]), "512m", options)


def halted_after_write(stage: Stage) -> list[Case]:
    """The second batch was written, and the query is halted before it commits the batch."""
    source = stage.topic("in")
    sent = source.send(_MESSAGES)
    source.end()
    settings = _settings(stage, source)
    stage.start("Batches", {**settings, "life": "query-1", "halt.after.batch": 1}, "query").wait(_HALTED)
    stage.start("Batches", {**settings, "life": "query-2"}, "query").wait()
    twice = sent[_PER_BATCH : 2 * _PER_BATCH]
    return _both_tables(
        stage, "query halted after the write of a batch", source, twice, "process before commit"
    )


def checkpoint_deleted(stage: Stage) -> list[Case]:
    """The checkpoint is deleted between two lives: the second begins at the first record."""
    source = stage.topic("in")
    sent = source.send(_MESSAGES)
    source.end()
    settings = _settings(stage, source)
    stage.start("Batches", {**settings, "life": "query-1"}, "query").wait()
    shutil.rmtree(settings["checkpoint"])
    stage.start("Batches", {**settings, "life": "query-2"}, "query").wait()
    return _both_tables(stage, "checkpoint deleted", source, sent, "unknown")


def overrun(stage: Stage) -> list[Case]:
    """Retention deletes what a stopped query has not read; failOnDataLoss=false has it go on behind that.

    Another query had read it before.
    """
    source = stage.topic("in")
    paused, quick = (_settings(stage, source, name) for name in ("paused", "quick"))
    source.send(_PER_BATCH)
    stage.start("Batches", {**paused, "life": "paused-1"}, "paused").wait()
    unread = source.send(2 * _PER_BATCH, session="sender-2")
    stage.start("Batches", {**quick, "life": "quick-1"}, "quick").wait()
    stage.cluster.configure(source.name, retention_ms="1")
    gone = _PER_BATCH + len(unread)
    wait_until(lambda: stage.cluster.start_offset(source.name) == gone, "retention")
    stage.cluster.configure(source.name, retention_ms="-1")
    source.send(_PER_BATCH, session="sender-3")
    source.end()
    for name, settings in (("paused", paused), ("quick", quick)):
        last = {**settings, "life": f"{name}-2", "fail.on.data.loss": "false"}
        stage.start("Batches", last, name).wait()
    lost = breaks_of(unread, "LOST", "after the acknowledgement", flags=["EXPIRED"])
    classes = {"DELIVERED": _MESSAGES - len(lost), "LOST": len(lost)}
    fault = "retention overruns a query, failOnDataLoss=false"
    broken, kept = Expected("BROKEN", classes, lost), Expected("KEPT", {"DELIVERED": _MESSAGES})
    paused_rows, quick_rows = (rows_of(stage, "plain", name) for name in ("paused", "quick"))
    return [
        _case(
            stage,
            fault,
            "stopped for longer than retention",
            source,
            paused_rows,
            broken,
            "at_least_once",
            query="paused",
        ),
        _case(stage, fault, "read before retention", source, quick_rows, kept, query="quick"),
    ]


def killed_before_manifest(stage: Stage) -> list[Case]:
    """A file of the second batch is there, the batch's manifest is not: its rows are no output."""
    source = stage.topic("in", partitions=2)
    for partition in (0, 1):
        source.send(_MESSAGES // 2, partition, session=f"sender-{partition + 1}")
    source.end()
    output = stage.folder / "output"
    settings = {**_settings(stage, source), "output": output, "per.batch": _MESSAGES // 2, "pause.ms": 50}
    query = stage.start("Files", {**settings, "life": "query-1"}, "query")
    wait_until(lambda: bool(_orphans(output, batch=0)), f"a file of the second batch in {output}")
    query.kill()
    if (output / "_spark_metadata" / "1").exists():
        raise AssertionError("expected the query to be killed before the manifest of its second batch")
    stage.start("Files", {**settings, "life": "query-2"}, "query").wait()
    orphaned = sum(len(path.read_text().splitlines()) for path in _orphans(output, batch=1))
    if not orphaned:
        raise AssertionError("expected rows in a file that no manifest names")
    files = {"source": {"kind": "spark_files", "path": str(output), "format": "jsonl", "taken_at": "now"}}
    return [
        _case(
            stage,
            "query killed between a file and its manifest",
            "the file sink, read by its manifest",
            source,
            files,
            Expected("KEPT", {"DELIVERED": _MESSAGES}, rows={"staged": orphaned}),
            staged=files,
        )
    ]


PLAYS: Final = {
    "spark-halted": halted_after_write,
    "spark-checkpoint": checkpoint_deleted,
    "spark-overrun": overrun,
    "spark-files": killed_before_manifest,
}


def _settings(stage: Stage, source: Scene, query: str = "") -> dict[str, Any]:
    return {
        **table_settings(stage, query),
        "brokers": stage.cluster.bootstrap,
        "topic": source.name,
        "per.batch": _PER_BATCH,
        "checkpoint": stage.folder / query / "checkpoint",
    }


def _both_tables(stage: Stage, fault: str, source: Scene, twice: list[Place], cause: str) -> list[Case]:
    again = breaks_of(twice, "OUTPUT_DUPLICATE", "consumer or sink", cause)
    classes = {"DELIVERED": _MESSAGES - len(again), "OUTPUT_DUPLICATE": len(again)}
    classes = {name: count for name, count in classes.items() if count}
    plain, keyed = rows_of(stage, "plain"), rows_of(stage, "keyed")
    once = Expected("KEPT", {"DELIVERED": _MESSAGES})
    return [
        _case(stage, fault, _PLAIN, source, plain, Expected("BROKEN", classes, again)),
        _case(stage, fault, _KEYED, source, keyed, once),
    ]


def _case(
    stage: Stage,
    fault: str,
    how: str,
    source: Scene,
    delivered: Mapping[str, Any],
    expected: Expected,
    guarantee: str = "exactly_once",
    query: str = "",
    **ledgers: Any,
) -> Case:
    path = str(stage.folder / query / "checkpoint")
    checkpoint = {"kind": "spark_checkpoint", "path": path, "taken_at": "now"}
    known = {"delivered": delivered, "committed": {"source": checkpoint}, **ledgers}
    return stage.case(fault, how, source, known, expected, group="query", guarantee=guarantee)


def _orphans(output: Path, batch: int) -> list[Path]:
    """Return the files with rows that the manifests up to that of the batch do not name, once those are there."""
    manifests = [output / "_spark_metadata" / str(number) for number in range(batch + 1)]
    if not all(path.exists() for path in manifests):
        return []
    lines = [line for path in manifests for line in path.read_text().splitlines()[1:] if line]
    named = {Path(json.loads(line)["path"]).name for line in lines}
    return [path for path in output.glob("part-*") if path.name not in named and path.stat().st_size]
