"""Positions that are moved, deleted or overrun, and a topic that is made anew under its name."""

from __future__ import annotations

from typing import Any

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Case, Place, Scene, breaks_of

_MESSAGES = 40
_READ = 25
_MORE = 10
_UNREAD = _MESSAGES - _READ


def reset_to_earliest(scene: Scene) -> list[Case]:
    """An operator sets a group back to the beginning: everything is output again, or into a table that knows it."""
    scene.create()
    sent = scene.send(_MESSAGES)
    for group, sink in (("rewound", "file"), ("rewound-table", "table")):
        scene.drain(group, sink=sink)
        scene.cluster.reset_offsets(group, scene.name, {0: 0})
        scene.drain(group, life=2, sink=sink)
    scene.end()
    fault = "offsets reset to earliest"
    reset: list[dict[str, Any]] = [
        {
            "class": "COMMIT_REGRESSION",
            "message_id": None,
            "partition": 0,
            "offset": 0,
            "locus": "offset store",
            "cause": "unknown",
            "flags": [],
        }
    ]
    doubled = breaks_of(sent, "OUTPUT_DUPLICATE", "consumer or sink")
    return [
        scene.case(
            fault,
            "a file",
            "rewound",
            "BROKEN",
            {"OUTPUT_DUPLICATE": _MESSAGES, "COMMIT_REGRESSION": 1},
            [*doubled, *reset],
        ),
        scene.case(
            fault,
            "a table keyed by position",
            "rewound-table",
            "KEPT",
            {"DELIVERED": _MESSAGES, "COMMIT_REGRESSION": 1},
            reset,
        ),
    ]


def reset_to_latest(scene: Scene) -> list[Case]:
    """An operator sets a group to the end, over what it has not read; set to where it is, nothing is lost."""
    scene.create()
    sent = scene.send(_MESSAGES)
    for group in ("jumped", "stayed"):
        _read_first(scene, group)
    scene.cluster.reset_offsets("jumped", scene.name, {0: _MESSAGES})
    scene.cluster.reset_offsets("stayed", scene.name, scene.cluster.committed("stayed"))
    scene.send(_MORE, session="sender-2")
    scene.end()
    for group in ("jumped", "stayed"):
        scene.drain(group, life=2)
    fault = "offsets reset to latest"
    lost = breaks_of(sent[_READ:], "LOST", "consumer", flags=["COMMIT_AHEAD"])
    return [
        scene.case(
            fault,
            "to the log's end",
            "jumped",
            "BROKEN",
            {"DELIVERED": _READ + _MORE, "LOST": _UNREAD},
            lost,
            guarantee="at_least_once",
        ),
        scene.case(
            fault,
            "to the current position",
            "stayed",
            "KEPT",
            {"DELIVERED": _MESSAGES + _MORE},
        ),
    ]


def group_deleted(scene: Scene) -> list[Case]:
    """A group's offsets are deleted: it goes on at the end, over what came meanwhile, or begins anew."""
    scene.create()
    scene.send(_MESSAGES)
    scene.drain("forgets")
    scene.drain("begins-anew", sink="table")
    for group in ("forgets", "begins-anew"):
        scene.cluster.delete_group(group)
    unread = scene.send(_MORE, session="sender-2")
    reader = scene.reader("forgets", 2, auto_offset_reset="latest")
    reader.call("drain")
    scene.send(_MORE, session="sender-3")
    scene.end()
    reader.call("read", count=_MORE)
    reader.call("write")
    reader.call("commit")
    reader.kill()
    scene.drain("begins-anew", life=2, sink="table")
    fault = "group offsets deleted"
    lost = breaks_of(unread, "LOST", "consumer", flags=["COMMIT_AHEAD"])
    return [
        scene.case(
            fault,
            "auto.offset.reset=latest",
            "forgets",
            "BROKEN",
            {"DELIVERED": _MESSAGES + _MORE, "LOST": _MORE},
            lost,
            guarantee="at_least_once",
        ),
        scene.case(
            fault,
            "earliest, and a table keyed by position",
            "begins-anew",
            "KEPT",
            {"DELIVERED": _MESSAGES + 2 * _MORE},
        ),
    ]


def recreated(scene: Scene) -> list[Case]:
    """A topic is deleted before all of it was read, and created anew.

    What was unread is gone with the old topic: the log has another topic's id, and the commits show both.
    """
    return _recreated(scene, _READ)


def recreated_when_read(scene: Scene) -> list[Case]:
    """The same, after the group had read everything."""
    return _recreated(scene, _MESSAGES)


def _recreated(scene: Scene, read: int) -> list[Case]:
    scene.create()
    sent = scene.send(_MESSAGES)
    group = f"{scene.name}-loader"
    _read_first(scene, group, read)
    scene.cluster.delete_topic(scene.name)
    scene.create()
    scene.send(_MORE, session="sender-2")
    scene.end()
    scene.drain(group, life=2)
    lost = breaks_of(sent[read:], "LOST", "broker", "topic recreated")
    classes = {"DELIVERED": read + _MORE} | ({"LOST": len(lost)} if lost else {})
    return [
        scene.case(
            "topic deleted and recreated",
            "before all was read" if lost else "after all was read",
            group,
            "BROKEN" if lost else "KEPT",
            classes,
            lost,
            guarantee="at_least_once",
        )
    ]


def overrun(scene: Scene) -> list[Case]:
    """Retention deletes what a paused consumer has not read; one that was quicker loses nothing."""
    scene.create()
    sent = scene.send(_MESSAGES)
    _read_first(scene, "paused")
    scene.drain("quick")
    scene.cluster.configure(scene.name, retention_ms="1")
    wait_until(lambda: scene.cluster.start_offset(scene.name) == _MESSAGES, "retention")
    scene.cluster.configure(scene.name, retention_ms="-1")
    scene.send(_MORE, session="sender-2")
    scene.end()
    for group in ("paused", "quick"):
        scene.drain(group, life=2)
    fault = "retention overruns a paused consumer"
    lost = breaks_of(sent[_READ:], "LOST", "after the acknowledgement", flags=["EXPIRED"])
    return [
        scene.case(
            fault,
            "paused for longer than retention",
            "paused",
            "BROKEN",
            {"DELIVERED": _READ + _MORE, "LOST": _UNREAD},
            lost,
            guarantee="at_least_once",
        ),
        scene.case(fault, "read before retention", "quick", "KEPT", {"DELIVERED": _MESSAGES + _MORE}),
    ]


def _read_first(scene: Scene, group: str, count: int = _READ) -> list[Place]:
    """Have the group read, write and commit so many records, and stop."""
    reader = scene.reader(group)
    reader.call("read", count=count)
    handed: list[Place] = reader.call("write")
    reader.call("commit")
    reader.call("close")
    reader.kill()
    return handed
