"""Leaders that die: with what only they had, with what was never asked for, or with a tail that was cut off.

One sequence of failures strikes all these topics; both brokers are back at its end.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.remote import Remote
from tests.integration.kafka_faults.scene import Case, Scene, breaks_of

_COUNT = 10
"""Messages of each part: sent before the faults, struck by one, and sent after them."""
_FETCH_WAIT = 1.0
"""Seconds until the stopped follower's last fetch is answered: what comes then stays with the leader."""
_TORN_BYTES = 20
_TORN_HEAD = 40
_BASE_OFFSET = struct.Struct(">q")
_FAILOVER = "leader failover or unclean election"

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
_SETTINGS = {
    "acks-one": {"acks": "1", "enable_idempotence": False},
    "acks-none": {"acks": "0", "enable_idempotence": False},
}


def dying_leaders(scenes: Mapping[str, Scene]) -> list[Case]:
    """Kill the second broker when it has what the first has not, then the first when the second was away."""
    cluster = next(iter(scenes.values())).cluster
    first, second = cluster.brokers[1], cluster.brokers[2]
    senders = {name: _started(name, scene) for name, scene in scenes.items()}
    wait_until(lambda: all(_is_everywhere(name, scene) for name, scene in scenes.items()), "the followers")
    for name in ("torn", "torn-replicated"):
        _send(scenes, senders, name)

    first.pause()
    time.sleep(_FETCH_WAIT)
    lost = {"acks-one": _send(scenes, senders, "acks-one")}
    senders["acks-all"].call("send", ids=scenes["acks-all"].ids(_COUNT), partition=0)
    second.pause()
    lost["acks-none"] = _send(scenes, senders, "acks-none")
    second.kill()
    first.resume()
    wait_until(lambda: cluster.leaders("acks-one") == [1], "the first broker to lead")

    lost["torn"] = _cut(scenes["torn"])
    _cut(scenes["torn-replicated"])
    _add_head(scenes["torn-unanswered"])
    senders["acks-all"].call("settle")
    scenes["acks-one"].send(_COUNT, session="sender-2")
    lost["unclean"] = _send(scenes, senders, "unclean")
    _send(scenes, senders, "clean")
    first.kill()
    cluster.start_node(second)
    wait_until(lambda: cluster.leaders("unclean") == [2], "the second broker to lead, uncleanly")

    for name in ("acks-none", "torn", "torn-unanswered", "unclean"):
        scenes[name].send(_COUNT, session="sender-2")
    cluster.start_node(first)
    wait_until(lambda: all(cluster.leaders(name) != [-1] for name in scenes), "leaders of all topics")
    for name in ("clean", "torn-replicated"):
        _send(scenes, senders, name)
    for name, scene in scenes.items():
        scene.end()
        scene.leader = cluster.leaders(name)[0]
        scene.drain(f"{name}-loader")
    return [_case(name, scene, lost.get(name, [])) for name, scene in scenes.items()]


def _started(name: str, scene: Scene) -> Remote:
    """Create the topic, start its producer and send the first messages."""
    settings = {"unclean_leader_election_enable": "true"} if name == "unclean" else {}
    scene.create([REPLICAS[name]], **settings)
    sender = scene.sender(**_SETTINGS.get(name, {}))
    sender.call("send", ids=scene.ids(_COUNT), partition=0)
    sender.call("settle")
    return sender


def _is_everywhere(name: str, scene: Scene) -> bool:
    return all(len(scene.records(broker)) == _COUNT for broker in REPLICAS[name])


def _send(scenes: Mapping[str, Scene], senders: Mapping[str, Remote], name: str) -> list[list[object]]:
    """Send more messages, see them acknowledged, and return partition, offset and id of each."""
    senders[name].call("send", ids=scenes[name].ids(_COUNT), partition=0)
    rows = senders[name].call("settle")
    if {row[-1] for row in rows} != {"acked"}:
        raise AssertionError(f"{name}: expected acknowledgements, found {rows}")
    return [[partition, offset, id_] for id_, partition, offset, _ in rows]


def _segment(scene: Scene) -> Path:
    folder = scene.cluster.brokers[2].data / f"{scene.name}-0"
    return max(folder.glob("*.log"))


def _cut(scene: Scene) -> list[list[object]]:
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


_TOLD = {
    "acks-one": ("follower stopped, leader killed, follower leads", "acks=1"),
    "acks-all": ("follower stopped, leader killed, follower leads", "acks=all"),
    "acks-none": ("broker stopped and killed", "acks=0"),
    "unclean": ("leader killed after the follower was away", "acks=all, unclean election"),
    "clean": ("leader killed after the follower was away", "acks=all, no unclean election"),
    "torn": ("broker restarted with a torn segment", "the only replica"),
    "torn-unanswered": ("broker restarted with a torn segment", "the tail was never acknowledged"),
    "torn-replicated": ("broker restarted with a torn segment", "another replica"),
}


def _case(name: str, scene: Scene, lost: Sequence[Sequence[object]]) -> Case:
    fault, configuration = _TOLD[name]
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
        breaks = breaks_of(lost, "LOST", "broker", _FAILOVER)
        breaks += breaks_of(lost, "LOG_IDENTITY_CONFLICT", "broker", _FAILOVER)
        classes["LOG_IDENTITY_CONFLICT"] = len(lost)
    return scene.case(
        fault, configuration, f"{name}-loader", "BROKEN", classes, breaks, guarantee="at_least_once"
    )
