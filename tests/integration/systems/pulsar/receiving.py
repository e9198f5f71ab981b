"""Consumers that are killed between output and acknowledgement, batches of which a part is acknowledged, and expiry."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Place, breaks_of
from tests.integration.systems.pulsar.topic import SUBSCRIPTION, Topic
from tests.integration.systems.scene import Case, Expected, Stage

_KILLED: Final = "consumer killed between its output and its acknowledgement"
_BATCH: Final = "consumer killed that had acknowledged a part of a batch"
_EXPIRED: Final = "messages expired while the consumer was away"
_TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink")
_SENT: Final = 6
_DONE: Final = 4
"""How many messages a consumer has put out when it is killed."""


def unacknowledged(stage: Stage) -> list[Case]:
    """What was put out and not acknowledged comes again."""
    topic, sent = _killed(stage, "rows", stop_after=_DONE)
    breaks = breaks_of(sent[_DONE - 1 : _DONE], *_TWICE)
    classes = {"DELIVERED": _SENT - 1, "OUTPUT_DUPLICATE": 1}
    settings = topic.settings(brokerDeduplicationEnabled="true", producerName="web", sendTimeoutMs=0)
    return [
        topic.case(
            _KILLED, "output appended", Expected(verdict, classes, breaks), guarantee, settings=settings
        )
        for verdict, guarantee in (("BROKEN", "exactly_once"), ("KEPT", "at_least_once"))
    ]


def keyed(stage: Stage) -> list[Case]:
    """An output that is keyed by the message has it once."""
    topic, _ = _killed(stage, "keyed", stop_after=_DONE)
    said = {"brokerDeduplicationEnabled": "true", "producerName": "web", "sendTimeoutMs": 0}
    settings = topic.settings(**said, output="keyed by id")
    expected = Expected("KEPT", {"DELIVERED": _SENT})
    return [topic.case(_KILLED, "output keyed by id", expected, settings=settings)]


def batch(stage: Stage) -> list[Case]:
    """A batch is acknowledged as a whole: what a consumer had acknowledged of it comes again."""
    topic, sent = _killed(stage, "rows", batch=_SENT, idle_after=_DONE)
    breaks = breaks_of(sent[:_DONE], *_TWICE)
    expected = Expected("BROKEN", {"DELIVERED": _SENT - _DONE, "OUTPUT_DUPLICATE": _DONE}, breaks)
    return [topic.case(_BATCH, "enableBatchIndexAcknowledgment=false", expected)]


def batch_index(stage: Stage) -> list[Case]:
    """With acknowledgement by index only the rest of it comes."""
    topic, _ = _killed(stage, "rows", batch=_SENT, idle_after=_DONE, batch_index="true")
    expected = Expected("KEPT", {"DELIVERED": _SENT})
    return [topic.case(_BATCH, "enableBatchIndexAcknowledgment=true", expected)]


def expired(stage: Stage) -> list[Case]:
    """The broker acknowledges what nobody received in time."""
    topic = Topic.on_new_broker(stage, ttlDurationDefaultInSeconds=1)
    topic.send(0, 0)
    first = topic.receiver()
    topic.await_acknowledged()
    first.kill()
    sent = topic.send(1, _SENT - 1)
    topic.end()
    wait_until(lambda: _mark_delete(topic) == _last(topic), "the messages to expire", 180)
    breaks = breaks_of(sent, "LOST", "consumer")
    expected = Expected("BROKEN", {"DELIVERED": 1, "LOST": _SENT - 1}, breaks)
    settings = topic.settings(output="keyed by id")
    how = "ttlDurationDefaultInSeconds=1"
    return [topic.case(_EXPIRED, how, expected, "at_least_once", settings=settings)]


PLAYS: Final = {
    "pulsar-unacknowledged": unacknowledged,
    "pulsar-keyed": keyed,
    "pulsar-batch": batch,
    "pulsar-batch-index": batch_index,
    "pulsar-expired": expired,
}


def _killed(
    stage: Stage, output: str, batch: int = 1, batch_index: str = "false", **stops: Any
) -> tuple[Topic, list[Place]]:
    """Kill a consumer behind some messages, and have a successor go on; return the topic, and what was sent."""
    topic = Topic.on_new_broker(stage)
    sent = topic.send(0, _SENT - 1, batch=batch)
    topic.end()
    first = topic.receiver(output, batch_index=batch_index, **stops)
    topic.await_rows(_DONE)
    if "idle_after" in stops:
        topic.await_idle()
    first.kill()
    successor = topic.receiver(output, batch_index=batch_index)
    topic.await_acknowledged()
    successor.kill()
    return topic, sent


def _mark_delete(topic: Topic) -> str:
    return str(topic.broker.stats(topic.path)["cursors"][SUBSCRIPTION]["markDeletePosition"])


def _last(topic: Topic) -> str:
    return str(topic.broker.stats(topic.path)["lastConfirmedEntry"])
