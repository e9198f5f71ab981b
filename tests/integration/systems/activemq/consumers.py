"""Consumers that are killed with messages in hand, refuse some, or come too late for them."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.integration.systems.activemq.queue import Queue, kill
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_COUNT: Final = 10
_PROCESSED: Final = 3
_LATER: Final = 2
_JOURNAL: Final = 1 << 16
"""How many bytes the broker sets aside for a file of its journal, which an example takes along."""
_KILLED: Final = "consumer killed with messages in hand"


def auto(stage: Stage) -> list[Case]:
    """What was handed out counts as acknowledged: nobody gets it again, the next consumer gets later messages alone."""
    queue, ids = _killed(stage, "auto")
    queue.consume("auto", "second")
    queue.send(queue.connection(), _LATER)
    queue.await_output(_PROCESSED + _LATER)
    queue.await_idle()
    queue.broker.kill()
    classes = {"DELIVERED": _PROCESSED + _LATER, "LOST": _COUNT - _PROCESSED}
    expected = Expected("BROKEN", classes, queue.lost(ids, "consumer"))
    settings = {"activemq": {"acknowledgement": "stomp auto", "output": "keyed by id"}}
    return [queue.case(_KILLED, "STOMP, ack: auto", expected, settings=settings)]


def client_individual(stage: Stage) -> list[Case]:
    """What was not acknowledged is given to the next consumer."""
    queue, _ = _killed(stage, "client-individual")
    queue.consume("client-individual", "second")
    queue.await_output(_COUNT)
    queue.await_idle()
    queue.broker.kill()
    expected = Expected("KEPT", {"DELIVERED": _COUNT}, rows={"committed": _COUNT})
    settings = {"activemq": {"acknowledgement": "stomp client-individual", "output": "keyed by id"}}
    return [queue.case(_KILLED, "STOMP, ack: client-individual", expected, settings=settings)]


def poison(stage: Stage) -> list[Case]:
    """What a consumer refuses is parked in the dead letter queue; whoever does not say so has lost it."""
    queue = Queue(stage)
    sender = queue.connection()
    queue.send(sender, 4)
    refused = queue.send(sender, 2, poison="yes")
    queue.send(sender, 2)
    queue.consume("client-individual", "first")
    queue.await_output(6)
    queue.await_idle()
    queue.broker.kill()
    parked = Expected("KEPT", {"DELIVERED": 6, "DEAD_LETTERED": 2}, rows={"dead_letters": 2})
    gone = Expected("BROKEN", {"DELIVERED": 6, "LOST": 2}, queue.lost(refused, "consumer"))
    fault = "consumer refuses messages"
    return [
        queue.case(fault, "dead letter queue, declared", parked, ledgers={"dead_letters": queue.journal()}),
        queue.case(fault, "dead letter queue, not declared", gone),
    ]


def expiry(stage: Stage) -> list[Case]:
    """What nobody took in time is removed by the broker; whoever does not say that it may be has lost it."""
    queue = Queue(stage)
    sender = queue.connection()
    queue.send(sender, 3)
    expired = queue.send(sender, 2, expires=int(time.time() * 1000) + 500)
    queue.send(sender, 1)
    time.sleep(1)
    queue.consume("client-individual", "first")
    queue.await_output(4)
    queue.await_idle()
    queue.broker.kill()
    legal = Expected("KEPT", {"DELIVERED": 4, "FILTERED": 2}, rows={"filtered": 2})
    gone = Expected("BROKEN", {"DELIVERED": 4, "LOST": 2}, queue.lost(expired, "consumer"))
    fault = "messages with a time to live, no consumer in time"
    return [
        queue.case(fault, "expired, declared", legal, ledgers={"filtered": queue.journal()}),
        queue.case(
            fault,
            "expired, not declared",
            gone,
            settings={"activemq": {"timeToLive": 500, "output": "keyed by id"}},
        ),
    ]


def not_archived(stage: Stage) -> list[Case]:
    """A broker deletes files that it needs no longer: a journal without them covers nothing."""
    queue = Queue(stage, archiveDataLogs="true", journalMaxFileLength=4096)
    sender = queue.connection()
    queue.send(sender, 40)
    queue.consume("client-individual", "first")
    queue.await_output(40)
    deadline = time.monotonic() + 30
    while not list((queue.data / "archive").glob("db-*.log")):
        if time.monotonic() > deadline:
            raise RecordingError("the broker has archived no file of its journal")
        time.sleep(0.1)
    queue.await_idle()
    queue.broker.kill()
    whole = queue.case("journal files are removed", "with the archive", Expected("KEPT", {"DELIVERED": 40}))
    kept = str(queue.data / "kahadb")
    alone: dict[str, Any] = {
        "log": queue.journal({"message_id": "properties['order_id']"}, path=kept),
        "committed": queue.journal({}, path=kept),
    }
    unknown = Expected("UNKNOWN", {"DELIVERED": 40})
    return [whole, queue.case("journal files are removed", "without the archive", unknown, ledgers=alone)]


PLAYS: Final = {
    "activemq-auto": auto,
    "activemq-client-individual": client_individual,
    "activemq-poison": poison,
    "activemq-expiry": expiry,
    "activemq-not-archived": not_archived,
}


def _killed(stage: Stage, ack: str) -> tuple[Queue, list[str]]:
    """Kill a consumer that has all messages and processed some; return the ids of the others."""
    queue = Queue(stage, journalMaxFileLength=_JOURNAL)
    ids = queue.send(queue.connection(), _COUNT)
    consumer = queue.consume(ack, "first", _PROCESSED)
    queue.await_held(_COUNT - _PROCESSED)
    queue.await_idle()
    kill(consumer)
    return queue, ids[_PROCESSED:]
