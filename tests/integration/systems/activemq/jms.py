"""Clients of JMS: consumers with AUTO_ACKNOWLEDGE that are killed, senders whose sends return too early."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import breaks_of
from tests.integration.systems.activemq.queue import Queue
from tests.integration.systems.engine import Application
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_COUNT: Final = 10
_PROCESSED: Final = 3
_ANSWERED: Final = 5
_MANY: Final = 5_000
_KILLED: Final = "JMS consumer killed, AUTO_ACKNOWLEDGE"
_BROKER: Final = "broker killed, messages sent by JMS"


def received(stage: Stage) -> list[Case]:
    """What `receive` has returned is acknowledged, whatever becomes of it; what was prefetched comes again."""
    queue, ids = _killed(stage, is_listening=False)
    queue.await_output(_COUNT - 1)
    queue.await_idle()
    queue.broker.kill()
    lost = queue.lost([ids[_PROCESSED]], "consumer")
    expected = Expected("BROKEN", {"DELIVERED": _COUNT - 1, "LOST": 1}, lost, {"committed": _COUNT})
    settings = {"activemq": {"acknowledgement": "auto receive", "output": "keyed by id"}}
    return [queue.case(_KILLED, "receive()", expected, settings=settings)]


def listened(stage: Stage) -> list[Case]:
    """A listener's message is acknowledged when the call returns: what was put out in it comes again."""
    queue, ids = _killed(stage, is_listening=True)
    queue.await_output(_COUNT + 1)
    queue.await_idle()
    queue.broker.kill()
    again = breaks_of(queue.places([ids[_PROCESSED - 1]]), "OUTPUT_DUPLICATE", "consumer or sink")
    classes = {"DELIVERED": _COUNT - 1, "OUTPUT_DUPLICATE": 1}
    broken, kept = Expected("BROKEN", classes, again), Expected("KEPT", classes, again)
    plain = {"activemq": {"acknowledgement": "auto listener"}}
    return [
        queue.case(_KILLED, "a listener", broken, guarantee="exactly_once", settings=plain),
        queue.case(_KILLED, "a listener", kept),
    ]


def not_persistent(stage: Stage) -> list[Case]:
    """What is not persistent is gone with its broker, although `send` has returned."""
    return _lost(stage, "DeliveryMode.NON_PERSISTENT", _COUNT, persistent="false")


def asynchronous(stage: Stage) -> list[Case]:
    """With `useAsyncSend`, `send` returns before the broker has written the message."""
    return _lost(stage, "useAsyncSend", _MANY, options="?jms.useAsyncSend=true", persistent="true")


PLAYS: Final = {
    "activemq-jms-receive": received,
    "activemq-jms-listener": listened,
    "activemq-jms-not-persistent": not_persistent,
    "activemq-jms-async": asynchronous,
}


def _killed(stage: Stage, *, is_listening: bool) -> tuple[Queue, list[str]]:
    """Kill a consumer that stands still with a message, and start another one; return the ids of what was sent."""
    queue = Queue(stage)
    ids = queue.send(queue.connection(), _COUNT)
    first = _consumer(queue, "first", is_listening, limit=_PROCESSED)
    wait_until(lambda: "HELD" in first.log.read_text(), "the consumer to stand still")
    queue.await_idle()
    first.kill()
    _consumer(queue, "second", is_listening)
    return queue, ids


def _consumer(queue: Queue, name: str, is_listening: bool, **settings: object) -> Application:
    reported: dict[str, Any] = {
        "broker": queue.url,
        "queue": queue.name,
        "output": queue.output,
        "name": name,
        "listens": str(is_listening).lower(),
        **settings,
    }
    return queue.stage.start("JmsConsumer", reported, "consumer")


def _lost(stage: Stage, how: str, count: int, options: str = "", **settings: object) -> list[Case]:
    """Kill the broker as soon as all sends have returned, and start it again."""
    queue = Queue(stage)
    queue.send(queue.connection(), _ANSWERED)
    first = _ANSWERED
    reported = {
        "broker": f"{queue.url}{options}",
        "queue": queue.name,
        "first": first,
        "count": count,
        **settings,
    }
    ids = queue.sent_elsewhere(count)
    sender = stage.start("JmsSender", reported, "sender")
    wait_until(lambda: "SENT" in sender.log.read_text(), "all sends to return")
    queue.broker.kill()
    sender.kill()
    queue.start()
    queue.consume("client-individual", "first")
    queue.await_output(_ANSWERED)
    queue.await_idle()
    queue.broker.kill()
    stored = set(queue.processed())
    missing = [id_ for id_ in ids if id_ not in stored]
    if not missing:
        raise RecordingError("the broker had written all messages before it was killed")
    lost = breaks_of([[None, None, id_] for id_ in missing], "LOST", "after the acknowledgement")
    classes = {"DELIVERED": _ANSWERED + count - len(missing), "LOST": len(missing)}
    return [queue.case(_BROKER, how, Expected("BROKEN", classes, lost))]
