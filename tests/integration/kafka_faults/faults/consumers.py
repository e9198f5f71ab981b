"""Consumers that die between their output and their commit, or commit what a queue still holds."""

from __future__ import annotations

from typing import Any

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Case, Scene, breaks_of

_MESSAGES = 60
_COMMITTED, _READ, _WRITTEN = 5, 40, 15
_MORE = 10
"""Messages that the successor reads after what its predecessor committed."""


def killed_after_commit(scene: Scene) -> list[Case]:
    """A consumer commits its batch, writes a part of it, and is killed: the rest is lost."""
    scene.create()
    scene.send(_MESSAGES)
    scene.end()
    group = "commits-first"
    reader = scene.reader(group)
    handed = reader.call("read", count=_READ)
    reader.call("write", count=_COMMITTED)
    reader.call("commit")
    reader.call("write", count=_WRITTEN - _COMMITTED)
    reader.kill()
    scene.drain(group, life=2)
    lost = breaks_of(handed[_WRITTEN:], "LOST", "consumer", "commit before process", ["COMMIT_AHEAD"])
    return [
        scene.case(
            "consumer killed between commit and output",
            "commits before it writes",
            group,
            "BROKEN",
            {"DELIVERED": _MESSAGES - len(lost), "LOST": len(lost)},
            lost,
            guarantee="at_least_once",
        )
    ]


def killed_before_commit(scene: Scene) -> list[Case]:
    """A consumer writes a part of its batch and is killed before it commits: a file has that twice, a table once."""
    scene.create()
    scene.send(_MESSAGES)
    scene.end()
    for group, sink in (("writes-first", "file"), ("writes-once", "table")):
        reader = scene.reader(group, sink=sink)
        reader.call("read", count=_COMMITTED)
        reader.call("write")
        reader.call("commit")
        reader.call("read", count=_READ)
        twice = reader.call("write", count=_WRITTEN)
        reader.kill()
        scene.drain(group, life=2, sink=sink)
    doubled = breaks_of(twice, "OUTPUT_DUPLICATE", "consumer or sink", "process before commit")
    fault = "consumer killed between output and commit"
    classes = {"DELIVERED": _MESSAGES - len(doubled), "OUTPUT_DUPLICATE": len(doubled)}
    return [
        scene.case(fault, "commits after it wrote", "writes-first", "BROKEN", classes, doubled),
        scene.case(
            fault,
            "the same, under at_least_once",
            "writes-first",
            "KEPT",
            classes,
            doubled,
            guarantee="at_least_once",
        ),
        scene.case(fault, "a table keyed by position", "writes-once", "KEPT", {"DELIVERED": _MESSAGES}, []),
    ]


def killed_with_a_queue(scene: Scene) -> list[Case]:
    """A consumer hands records to a worker and commits by itself, every so often; the queue dies with it.

    One commits whatever it was handed, the other what its worker has stored as written.
    """
    scene.create()
    scene.send(_MESSAGES)
    forgets, keeps = "commits-what-it-read", "commits-what-it-wrote"
    reader = scene.reader(forgets, enable_auto_commit=True, auto_commit_interval_ms=200)
    handed = reader.call("read", count=_MESSAGES)
    _await_commit(scene, forgets, _MESSAGES)
    reader.call("write", count=_WRITTEN)
    reader.kill()
    careful: dict[str, Any] = {"enable_auto_commit": True, "enable_auto_offset_store": False}
    reader = scene.reader(keeps, auto_commit_interval_ms=200, **careful)
    reader.call("read", count=_MESSAGES)
    reader.call("write", count=_WRITTEN)
    _await_commit(scene, keeps, _WRITTEN)
    reader.kill()
    scene.send(_MORE, session="sender-2")
    scene.end()
    for group in (forgets, keeps):
        scene.drain(group, life=2)
    fault = "consumer killed with a queue"
    lost = breaks_of(handed[_WRITTEN:], "LOST", "consumer", "commit before process", ["COMMIT_AHEAD"])
    return [
        scene.case(
            fault,
            "auto-commit of what was read",
            forgets,
            "BROKEN",
            {"DELIVERED": _WRITTEN + _MORE, "LOST": len(lost)},
            lost,
            guarantee="at_least_once",
        ),
        scene.case(
            fault,
            "auto-commit of what was written (enable.auto.offset.store=false)",
            keeps,
            "KEPT",
            {"DELIVERED": _MESSAGES + _MORE},
            guarantee="at_least_once",
        ),
    ]


def _await_commit(scene: Scene, group: str, offset: int) -> None:
    wait_until(lambda: scene.cluster.committed(group) == {0: offset}, f"{group} to commit {offset}")
