"""Subscriptions that share a topic, and consumers that share a subscription."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.integration.kafka_faults.scene import breaks_of
from tests.integration.systems.pulsar.topic import Topic, overdue
from tests.integration.systems.scene import Case, Expected, Stage

_QUEUED: Final = "messages in a consumer's hands below acknowledged ones"
_TWO: Final = "two subscriptions, of which one is behind"
_SLOW: Final = "one of two consumers slow with a message"
_SENT: Final = 8
_WORK: Final = 2.0
"""Seconds in which a consumer that is not held up has put out everything."""


def shared(stage: Stage) -> list[Case]:
    """What a consumer holds is in flight, whatever was acknowledged beyond it; its successor puts it out."""
    topic = Topic.on_new_broker(stage)
    sent = topic.send(0, _SENT - 1)
    topic.end()
    first = topic.receiver(type="Shared", held=f"{stage.name}-[14]")
    topic.await_rows(_SENT - 2)
    topic.await_acknowledged(_SENT - 2)
    classes = {"DELIVERED": _SENT - 2, "IN_FLIGHT": 2}
    expected = Expected("PENDING", classes, overdue([sent[1], sent[4]]))
    held = topic.case(_QUEUED, "Shared, still in hand", expected, "at_least_once", is_queue=True)
    first.kill()
    successor = topic.receiver(type="Shared")
    topic.await_acknowledged()
    successor.kill()
    expected = Expected("KEPT", {"DELIVERED": _SENT})
    return [held, topic.case(_QUEUED, "Shared, handed to another", expected, is_queue=True)]


def subscriptions(stage: Stage) -> list[Case]:
    """Each subscription has its own position and its own output."""
    topic = Topic.on_new_broker(stage)
    sent = topic.send(0, _SENT - 1)
    topic.end()
    for name, rows in (("loader", -1), ("auditor", _SENT // 2)):
        receiver = topic.receiver(subscription=name, idle_after=rows)
        topic.await_acknowledged(None if rows < 0 else rows, name)
        receiver.kill()
    kept = Expected("KEPT", {"DELIVERED": _SENT})
    half = _SENT // 2
    classes = {"DELIVERED": half, "IN_FLIGHT": _SENT - half}
    behind = Expected("PENDING", classes, overdue(sent[half:]))
    return [
        topic.case(_TWO, "the one that is at the end", kept),
        topic.case(_TWO, "the one that is behind", behind, subscription="auditor"),
    ]


def order_shared(stage: Stage) -> list[Case]:
    """Messages of one key go to both consumers."""
    topic, sent = _held_up(stage, "Shared")
    breaks = breaks_of([sent[0]], "REORDER_OUTPUT", "sink")
    expected = Expected("BROKEN", {"DELIVERED": _SENT, "REORDER_OUTPUT": 1}, breaks)
    settings = topic.settings(subscriptionType="Shared", output="keyed by id")
    return [
        topic.case(_SLOW, "Shared", expected, is_queue=True, ordering="key", settings=settings),
    ]


def order_key_shared(stage: Stage) -> list[Case]:
    """Messages of one key go to one of them."""
    topic, _ = _held_up(stage, "Key_Shared")
    expected = Expected("KEPT", {"DELIVERED": _SENT})
    settings = topic.settings(subscriptionType="Key_Shared", output="keyed by id")
    return [topic.case(_SLOW, "Key_Shared", expected, is_queue=True, ordering="key", settings=settings)]


PLAYS: Final = {
    "pulsar-shared": shared,
    "pulsar-subscriptions": subscriptions,
    "pulsar-order-shared": order_shared,
    "pulsar-order-key-shared": order_key_shared,
}


def _held_up(stage: Stage, kind: str) -> tuple[Topic, list[list[object]]]:
    """Have two consumers, of which the one that is handed the first message stands still with it for a while."""
    topic = Topic.on_new_broker(stage)
    held = f"{stage.name}-0"
    own: dict[str, Any] = {"type": kind, "held": held, "holds_up": "true", "receiver_queue": 0}
    consumers = [topic.receiver(**own) for _ in range(2)]
    sent = topic.send(0, _SENT - 1, keys=1)
    if kind == "Shared":
        topic.await_rows(_SENT - 1)
    time.sleep(_WORK)
    topic.release_file.touch()
    topic.await_acknowledged()
    topic.end()
    for one in consumers:
        one.kill()
    return topic, [list(place) for place in sent]
