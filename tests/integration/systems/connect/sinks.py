"""Sinks of files: Kafka's own, which appends, and one that names its files by the offsets in them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import UNTIL_READ, committed_of
from tests.integration.kafka_faults.scene import Scene, breaks_of
from tests.integration.systems.connect.worker import (
    COLUMNS,
    KILLED,
    await_commit,
    group_of,
    hold_to,
    lines_of,
    settings_of,
    sink,
    standalone,
)
from tests.integration.systems.scene import Case, Expected, Stage

_PAUSE_MS: Final = 20
_TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink")
_RESIZED: Final = f"{KILLED}, flush size 4 then 5"
_OVERLAPS: Final = (8, 12, 13, 16, 18)
"""Where files of five records that begin at 8 intersect those of four: each file that begins within another."""


def appended(stage: Stage) -> list[Case]:
    """Kafka's own sink of a file appends again what it had appended since the last commit."""
    source, output = stage.topic("in"), stage.folder / "out.jsonl"
    settings = sink("FileStreamSink", source.name, file=output)
    source.send(5)
    worker = standalone(stage)
    worker.run(stage.name, settings)
    await_commit(stage, 5)
    again = source.send(5, session="sender-2")
    source.end()
    wait_until(lambda: len(lines_of(output)) == 10, "ten lines")
    worker.kill()
    hold_to(stage, 5)
    successor = standalone(stage)
    successor.run(stage.name, settings)
    wait_until(lambda: len(lines_of(output)) == 15, "fifteen lines")
    successor.stop()
    ledgers = {
        "delivered": {
            "source": {"kind": "files", "format": "jsonl", "path": str(output)},
            "columns": {"message_id": "order_id", "processed_at": f"timestamp '{_written_at(output)}'"},
            "coverage": UNTIL_READ,
        },
        "committed": committed_of(stage.data, group_of(stage)),
    }
    classes = {"DELIVERED": 5, "OUTPUT_DUPLICATE": 5}
    expected = Expected("BROKEN", classes, breaks_of(again, *_TWICE))
    return [
        stage.case(
            KILLED,
            "FileStreamSink",
            source,
            ledgers,
            expected,
            group=group_of(stage),
            settings=settings_of(stage),
        )
    ]


def resumed_by_names(stage: Stage) -> list[Case]:
    """A sink that goes on after its last file's name writes every record once, wherever its group stands."""
    source, folder = stage.topic("in"), stage.folder / "files"
    settings = _ranges(source, folder, resume="names", flush_size=4)
    source.send(8)
    worker = standalone(stage)
    worker.run(stage.name, settings)
    await_commit(stage, 8)
    source.send(8, session="sender-2")
    _await_files(folder, 4)
    worker.kill()
    source.send(8, session="sender-3")
    source.end()
    successor = standalone(stage)
    successor.run(stage.name, settings)
    _await_files(folder, 6)
    successor.kill()
    hold_to(stage, 8)
    return [_kept(stage, source, folder), _deleted(stage, source, folder)]


def _kept(stage: Stage, source: Scene, folder: Path) -> Case:
    behind = _commit_break("POSITION_DISAGREEMENT", 8, ["behind"])
    expected = Expected("KEPT", {"DELIVERED": 24, behind["class"]: 1}, [behind])
    ledgers = {**_files(folder), "mirrored": committed_of(stage.data, group_of(stage))}
    how = "files named by offsets, resume=names"
    settings = settings_of(stage, commits="with the output")
    return stage.case(KILLED, how, source, ledgers, expected, group=group_of(stage), settings=settings)


def _deleted(stage: Stage, source: Scene, folder: Path) -> Case:
    """The same files without one of them: its records are in no output, and the names have a hole."""
    rest = stage.folder / "rest"
    shutil.copytree(folder, rest)
    next(rest.glob("*+0000000008+*")).unlink()
    lost = [[0, offset, id_] for offset, id_ in source.records() if 8 <= offset < 12]
    hole = _commit_break("COMMIT_GAP", 8)
    breaks = [*breaks_of(lost, "LOST", "consumer"), hole]
    expected = Expected("BROKEN", {"DELIVERED": 20, "LOST": 4, hole["class"]: 1}, breaks)
    return stage.case(
        "a file of the output deleted",
        "files named by offsets",
        source,
        _files(rest),
        expected,
        group=group_of(stage),
        guarantee="at_least_once",
    )


def resumed_by_group(stage: Stage) -> list[Case]:
    """A sink that goes on where its group stands, with files of another size, writes what its files have."""
    source, folder = stage.topic("in"), stage.folder / "files"
    source.send(8)
    worker = standalone(stage)
    worker.run(stage.name, _ranges(source, folder, resume="group", flush_size=4))
    await_commit(stage, 8)
    again = source.send(12, session="sender-2")
    _await_files(folder, 5)
    worker.kill()
    hold_to(stage, 8)
    source.send(3, session="sender-3")
    successor = standalone(stage)
    successor.run(stage.name, _ranges(source, folder, resume="group", flush_size=5))
    _await_files(folder, 8)
    source.end()
    successor.stop()
    return [_by_group(stage, source, folder, again), _by_names(stage, source, folder, again)]


def _by_group(stage: Stage, source: Scene, folder: Path, again: Sequence[Any]) -> Case:
    """The group is where this sink goes on, and it had not committed what is there twice."""
    breaks = breaks_of(again, *_TWICE, "process before commit")
    expected = Expected("BROKEN", {"DELIVERED": 11, "OUTPUT_DUPLICATE": 12}, breaks)
    ledgers = {**_files(folder), "committed": committed_of(stage.data, group_of(stage))}
    return stage.case(
        _RESIZED,
        "files named by offsets, resume=group",
        source,
        ledgers,
        expected,
        group=group_of(stage),
        settings=settings_of(stage, commits="after processing"),
    )


def _by_names(stage: Stage, source: Scene, folder: Path, again: Sequence[Any]) -> Case:
    """The names say that ranges intersect, and that all of it had been named before: not why it was written again."""
    overlaps = [_commit_break("COMMIT_REGRESSION", offset) for offset in _OVERLAPS]
    classes = {"DELIVERED": 11, "OUTPUT_DUPLICATE": 12, "COMMIT_REGRESSION": len(overlaps)}
    expected = Expected("BROKEN", classes, [*breaks_of(again, *_TWICE), *overlaps])
    how = "the same, judged by the names alone"
    return stage.case(_RESIZED, how, source, _files(folder), expected, group=group_of(stage))


PLAYS: Final = {
    "connect-file-sink": appended,
    "connect-ranges-names": resumed_by_names,
    "connect-ranges-group": resumed_by_group,
}


def _written_at(file: Path) -> str:
    """Return when the file was last written: its lines do not say when they were, and none of them is later."""
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()


def _ranges(source: Scene, folder: Path, **settings: object) -> dict[str, Any]:
    return sink("RangeFileSink", source.name, folder=folder, pause_ms=_PAUSE_MS, **settings)


def _files(folder: Path) -> dict[str, Any]:
    """Return the files as what was delivered, and their names as the positions that a restart goes by."""
    source = {"kind": "connect_files", "path": str(folder), "taken_at": "now"}
    return {
        "delivered": {"source": {**source, "format": "jsonl"}, "columns": COLUMNS},
        "committed": {"source": source},
    }


def _commit_break(break_class: str, offset: int, flags: list[str] | None = None) -> dict[str, Any]:
    """Return an expected break of positions, of no message."""
    place = breaks_of([[0, offset, None]], break_class, "offset store", flags=flags or [])
    return place[0]


def _await_files(folder: Path, count: int) -> None:
    wait_until(lambda: len(list(folder.glob("*.jsonl"))) == count, f"{count} files in {folder.name}")
