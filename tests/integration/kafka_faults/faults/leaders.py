"""Leaders that die: with what only they had, with what was never asked for, or with a tail that was cut off.

One sequence of failures strikes all these topics; both brokers are back at its end.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.remote import Remote
from tests.integration.kafka_faults.scene import Case, Place, Scene, breaks_of

_COUNT = 10
"""Messages of each part: sent before the faults, struck by one, and sent after them."""
_FEW = 4
"""Messages that the unclean leader is sent: fewer than it did not have."""
_FETCH_WAIT = 1.0
"""Seconds until the stopped follower's last fetch is answered: what comes then stays with the leader."""
_AT_A_TIME = 4
"""Clients that start at once."""
_TORN_BYTES = 20
_TORN_HEAD = 40
_BASE_OFFSET = struct.Struct(">q")
_FAILOVER = "leader failover or unclean election"
_READ_ON = "unclean-reader"
"""The group that reads, and commits, what the unclean leader will not have."""

REPLICAS: Mapping[str, Sequence[int]] = {
    "acks-one": (2, 1),
    "acks-all": (2, 1),
    "acks-none": (2,),
    "unclean": (1, 2),
    "clean": (1, 2),
    "torn": (2,),
    "torn-unanswered": (2,),
    "torn-replicated": (2, 1),
}
"""The topics, and the brokers of their one partition, the leader first."""
TOPICS = tuple(REPLICAS)
NEEDED = ("acks-one", "unclean")
"""Topics whose leaders tell how far the failures have come; the others are there where they are asked for."""
_SETTINGS = {
    "acks-one": {"acks": "1", "enable_idempotence": False},
    "acks-none": {"acks": "0", "enable_idempotence": False},
}


def dying_leaders(scenes: Mapping[str, Scene]) -> list[Case]:
    """Kill the second broker when it has what the first has not, then the first when the second was away."""
    cluster = next(iter(scenes.values())).cluster
    first, second = cluster.brokers[1], cluster.brokers[2]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        senders = dict(zip(scenes, pool.map(_started, scenes, scenes.values()), strict=True))
    wait_until(lambda: all(_is_everywhere(name, scene) for name, scene in scenes.items()), "the followers")
    for name in _among(scenes, "torn", "torn-replicated"):
        _send(scenes, senders, name)

    first.pause()
    time.sleep(_FETCH_WAIT)
    lost = {"acks-one": _send(scenes, senders, "acks-one")}
    for name in _among(scenes, "acks-all"):
        senders[name].call("send", ids=scenes[name].ids(_COUNT), partition=0)
    second.pause()
    for name in _among(scenes, "acks-none"):
        lost[name] = _send(scenes, senders, name)
    second.kill()
    first.resume()
    wait_until(lambda: cluster.leaders("acks-one") == [1], "the first broker to lead")

    lost |= _torn(scenes)
    for name in _among(scenes, "acks-all"):
        senders[name].call("settle")
    scenes["acks-one"].send(_COUNT, session="sender-2")
    lost["unclean"] = _send(scenes, senders, "unclean")
    scenes["unclean"].drain(_READ_ON)
    for name in _among(scenes, "clean"):
        _send(scenes, senders, name)
    first.kill()
    cluster.start_node(second)
    wait_until(lambda: cluster.leaders("unclean") == [2], "the second broker to lead, uncleanly")

    for name in _among(scenes, "acks-none", "torn", "torn-unanswered"):
        scenes[name].send(_COUNT, session="sender-2")
    unread = scenes["unclean"].send(_FEW, session="sender-2")
    cluster.start_node(first)
    wait_until(lambda: all(cluster.leaders(name) != [-1] for name in scenes), "leaders of all topics")
    for name in _among(scenes, "clean", "torn-replicated"):
        _send(scenes, senders, name)
    for name, scene in scenes.items():
        scene.end()
        scene.leader = cluster.leaders(name)[0]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(lambda name: scenes[name].drain(f"{name}-loader"), scenes))
    cases = [_case(name, scene, lost.get(name, [])) for name, scene in scenes.items()]
    return [*cases, _case_of_one_that_had_read(scenes["unclean"], lost["unclean"], unread)]


def _among(scenes: Mapping[str, Scene], *names: str) -> list[str]:
    """Return those of the topics that are there."""
    return [name for name in names if name in scenes]


def _torn(scenes: Mapping[str, Scene]) -> dict[str, list[Place]]:
    """Damage the dead broker's segments, and return what that takes from topics without another replica."""
    for name in _among(scenes, "torn-unanswered"):
        _add_head(scenes[name])
    cut = {name: _cut(scenes[name]) for name in _among(scenes, "torn", "torn-replicated")}
    return {name: places for name, places in cut.items() if name == "torn"}


def _settings(name: str) -> dict[str, Any]:
    """Return the settings of a topic's producer."""
    return dict(_SETTINGS.get(name, {}))


def _started(name: str, scene: Scene) -> Remote:
    """Create the topic, start its producer and send the first messages."""
    settings = {"unclean_leader_election_enable": "true"} if name == "unclean" else {}
    scene.create([REPLICAS[name]], **settings)
    sender = scene.sender(**_settings(name))
    sender.call("send", ids=scene.ids(_COUNT), partition=0)
    sender.call("settle")
    return sender


def _is_everywhere(name: str, scene: Scene) -> bool:
    return all(len(scene.records(broker)) == _COUNT for broker in REPLICAS[name])


def _send(scenes: Mapping[str, Scene], senders: Mapping[str, Remote], name: str) -> list[Place]:
    """Send more messages, see them acknowledged, and return partition, offset and id of each."""
    senders[name].call("send", ids=scenes[name].ids(_COUNT), partition=0)
    rows = senders[name].call("settle")
    if {row[-1] for row in rows} != {"acked"}:
        raise AssertionError(f"{name}: expected acknowledgements, found {rows}")
    return [[partition, offset, id_] for id_, partition, offset, _ in rows]


def _segment(scene: Scene) -> Path:
    folder = scene.cluster.brokers[2].data / f"{scene.name}-0"
    return max(folder.glob("*.log"))


def _cut(scene: Scene) -> list[Place]:
    """Cut the end off the dead broker's last batch, as if its machine had not written it; return what that takes."""
    before = scene.records(2)
    with _segment(scene).open("r+b") as segment:
        segment.truncate(_segment(scene).stat().st_size - _TORN_BYTES)
    left = {offset for offset, _ in scene.records(2)}
    return [[0, offset, id_] for offset, id_ in before if offset not in left]


def _add_head(scene: Scene) -> None:
    """Add the beginning of a batch to the dead broker's log, of which no producer was ever told."""
    data = _segment(scene).read_bytes()
    following = _BASE_OFFSET.pack(scene.records(2)[-1][0] + 1)
    with _segment(scene).open("ab") as segment:
        segment.write(following + data[_BASE_OFFSET.size : _TORN_HEAD])


_CASES = {
    "acks-one": ("follower stopped, leader killed, follower leads", "acks=1"),
    "acks-all": ("follower stopped, leader killed, follower leads", "acks=all"),
    "acks-none": ("broker stopped and killed", "acks=0"),
    "unclean": ("leader killed after the follower was away", "acks=all, unclean election"),
    "clean": ("leader killed after the follower was away", "acks=all, no unclean election"),
    "torn": ("broker restarted with a torn segment", "the only replica"),
    "torn-unanswered": ("broker restarted with a torn segment", "the tail was never acknowledged"),
    "torn-replicated": ("broker restarted with a torn segment", "another replica"),
}


def _case(name: str, scene: Scene, lost: Sequence[Place]) -> Case:
    fault, configuration = _CASES[name]
    delivered = len({id_ for _, id_ in scene.records()})
    if not lost:
        return scene.case(
            fault,
            configuration,
            f"{name}-loader",
            "KEPT",
            {"DELIVERED": delivered},
            guarantee="at_least_once",
        )
    classes = {"DELIVERED": delivered, "LOST": len(lost)}
    if lost[0][1] is None:
        breaks = breaks_of(lost, "LOST", "after the acknowledgement")
    else:
        breaks = [*breaks_of(lost, "LOST", "broker", _FAILOVER), *_of_the_log(scene, lost)]
        classes |= Counter(one["class"] for one in breaks)
    return scene.case(
        fault, configuration, f"{name}-loader", "BROKEN", classes, breaks, guarantee="at_least_once"
    )


def _case_of_one_that_had_read(scene: Scene, lost: Sequence[Place], unread: Sequence[Place]) -> Case:
    """Return the case of the group that had been where the unclean leader wrote: nobody knows if it will come back."""
    breaks = breaks_of(unread, "IN_FLIGHT", "unknown", flags=["OVERDUE"]) + _of_the_log(scene, lost)
    end = lost[-1][1] + 1
    breaks += breaks_of([[0, end, None]], "COMMIT_OUT_OF_RANGE", "offset store", "commit after truncation")
    return scene.case(
        _CASES["unclean"][0],
        "acks=all, unclean election, and a group that had read what is gone",
        _READ_ON,
        "BROKEN",
        {"DELIVERED": _COUNT + len(lost), **Counter(one["class"] for one in breaks)},
        breaks,
        guarantee="at_least_once",
    )


def _of_the_log(scene: Scene, lost: Sequence[Place]) -> list[dict[str, object]]:
    """Return the breaks of the positions that were lost: others are there now, or the log ends before them."""
    end = scene.records()[-1][0] + 1
    reused = [[partition, offset, None] for partition, offset, _ in lost if offset < end]
    cut = [place for place in lost if place[1] >= end]
    return [
        *breaks_of(reused, "LOG_IDENTITY_CONFLICT", "broker", _FAILOVER),
        *breaks_of(cut, "LOG_TRUNCATION", "broker", _FAILOVER),
    ]
