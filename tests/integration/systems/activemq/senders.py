"""Senders that do not wait for an answer, or take back what they sent."""

from __future__ import annotations

from typing import Final

from tests.integration.systems.activemq.queue import Queue
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_ANSWERED: Final = 5
_UNANSWERED: Final = 2_000


def unanswered(stage: Stage) -> list[Case]:
    """What the broker had not written when it was killed was never sent; whoever believes that it was has lost it."""
    queue = Queue(stage)
    sender = queue.connection()
    queue.send(sender, _ANSWERED)
    ids = queue.send(sender, _UNANSWERED, is_answered=False)
    queue.broker.kill()
    queue.start()
    queue.consume("client-individual", "first")
    queue.await_output(_ANSWERED)
    queue.await_idle()
    queue.broker.kill()
    stored = queue.processed()
    missing = [id_ for id_ in ids if id_ not in set(stored)]
    if not missing:
        raise RecordingError("the broker had written all messages before it was killed")
    proven = len(stored) - _ANSWERED
    unknown = Expected("KEPT", {"DELIVERED": _ANSWERED, "RECOVERED": proven, "NOT_SENT": len(missing)})
    fault = "broker killed, messages sent without a receipt"
    return [queue.case(fault, "outcome: unknown", unknown)]


def rolled_back(stage: Stage) -> list[Case]:
    """What a sender takes back is in no output; what it commits is."""
    queue = Queue(stage)
    sender = queue.connection()
    queue.send(sender, 2)
    sender.send("BEGIN", {"transaction": "first"})
    queue.send(sender, 3, is_answered=False, outcome="failed", transaction="first")
    sender.ask("ABORT", {"transaction": "first"})
    sender.send("BEGIN", {"transaction": "second"})
    queue.send(sender, 2, is_answered=False, outcome="acked", transaction="second")
    sender.ask("COMMIT", {"transaction": "second"})
    queue.consume("client-individual", "first")
    queue.await_output(4)
    queue.await_idle()
    queue.broker.kill()
    expected = Expected("KEPT", {"DELIVERED": 4, "NOT_SENT": 3}, rows={"log": 7})
    return [queue.case("transaction rolled back", "STOMP, BEGIN and ABORT", expected)]


PLAYS: Final = {"activemq-unanswered": unanswered, "activemq-rolled-back": rolled_back}
