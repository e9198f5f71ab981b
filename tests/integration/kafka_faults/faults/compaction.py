"""A compacted topic: what the cleaner took is no loss, and the last value of a key is one."""

from __future__ import annotations

import time

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Case, Scene, breaks_of

_KEYS = 6
_VALUES = 5
_SEGMENT_MS = 1_000
_WRITTEN = 2


def compacted(scene: Scene) -> list[Case]:
    """The cleaner leaves the last value of each key before anybody reads; one consumer then loses some of those."""
    scene.create(cleanup_policy="compact", segment_ms=str(_SEGMENT_MS), min_cleanable_dirty_ratio="0.01")
    sender = scene.sender()
    for _ in range(_VALUES):
        for key in range(_KEYS):
            sender.call("send", ids=scene.ids(1), partition=0, key=f"key-{key}")
    sent = sender.call("settle")
    time.sleep(2 * _SEGMENT_MS / 1000)
    sender.call("send", ids=scene.ids(1), partition=0, key="next-segment")
    sender.call("settle")
    scene.end()
    last = [[partition, offset, id_] for id_, partition, offset, _ in sent[-_KEYS:]]
    wait_until(lambda: len(scene.records()) == _KEYS + 1, "the cleaner to leave one record a key")

    scene.drain("reads-last-values")
    reader = scene.reader("loses-last-values")
    reader.call("read", count=_KEYS)
    reader.call("write", count=1)
    reader.call("commit")
    reader.call("write", count=_WRITTEN - 1)
    reader.kill()
    scene.drain("loses-last-values", life=2)
    lost = breaks_of(last[_WRITTEN:], "LOST", "consumer", "commit before process", ["COMMIT_AHEAD"])
    gone = len(sent) - _KEYS
    return [
        scene.case(
            "compacted topic",
            "the last value of every key arrives",
            "reads-last-values",
            "KEPT",
            {"DELIVERED": _KEYS + 1, "COMPACTED": gone},
            cleanup_policy="compact",
        ),
        scene.case(
            "compacted topic",
            "the last value of some keys is committed and not output",
            "loses-last-values",
            "BROKEN",
            {"DELIVERED": _WRITTEN + 1, "COMPACTED": gone, "LOST": len(lost)},
            lost,
            guarantee="at_least_once",
            cleanup_policy="compact",
        ),
    ]
