"""Producers whose successors send again, with deduplication and without, and transactions that end in every way."""

from __future__ import annotations

from typing import Final

from tests.integration.kafka_faults.scene import breaks_of
from tests.integration.systems.pulsar.topic import Topic, overdue
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.processes import RecordingError

_AGAIN: Final = "producer replaced by one of its name, which sends again"
_TRANSACTIONS: Final = "transactions committed, aborted and left open"


def sent_again(stage: Stage) -> list[Case]:
    """Without deduplication the broker stores what it has stored under the same name and sequence id."""
    topic = Topic.on_new_broker(stage)
    sent = topic.send(0, 4, sequence_first=0)
    topic.send(3, 7, sequence_first=3)
    _received(topic, 10)
    breaks = breaks_of(
        sent[3:],
        "OUTPUT_DUPLICATE",
        "producer → broker",
        "producer restart or application resend",
        ["LOG_DUPLICATE", "inherited"],
    )
    classes, how = {"DELIVERED": 6, "OUTPUT_DUPLICATE": 2}, "brokerDeduplicationEnabled=false"
    settings = topic.settings(producerName="web", output="keyed by position")
    return [
        topic.case(_AGAIN, how, Expected(verdict, classes, breaks), guarantee, settings=settings)
        for verdict, guarantee in (("BROKEN", "exactly_once"), ("KEPT", "at_least_once"))
    ]


def deduplicated(stage: Stage) -> list[Case]:
    """With it nothing is stored twice, also by a broker that was killed meanwhile."""
    topic = Topic.on_new_broker(stage, brokerDeduplicationEnabled="true")
    topic.send(0, 4, sequence_first=0)
    stored = topic.send(3, 7, sequence_first=3)
    topic.broker.kill()
    topic.broker.start()
    stored += topic.send(6, 9, sequence_first=6)
    if len(stored) != 5:
        raise RecordingError(f"{stage.name}: expected 5 further messages to be stored, found {len(stored)}")
    _received(topic, 10)
    how = "brokerDeduplicationEnabled=true, the broker killed between two lives"
    settings = topic.settings(producerName="web", sendTimeoutMs=0, output="keyed by position")
    return [topic.case(_AGAIN, how, Expected("KEPT", {"DELIVERED": 10}), settings=settings)]


def transactions(stage: Stage) -> list[Case]:
    """What is aborted was not sent; what is open, and what is behind it, is in flight."""
    topic = Topic.on_new_broker(stage)
    for number, end in enumerate(("commit", "abort", "open")):
        topic.send(2 * number, 2 * number + 1, f"tx-{end}", transaction=end)
    behind = topic.send(6, 6)
    _received(topic, 2, acknowledged=2)
    classes = {"DELIVERED": 2, "NOT_SENT": 2, "IN_FLIGHT": 3}
    expected = Expected("PENDING", classes, overdue(behind))
    return [topic.case(_TRANSACTIONS, "one left open", expected)]


def committed(stage: Stage) -> list[Case]:
    """Without an open one all that is committed is put out."""
    topic = Topic.on_new_broker(stage)
    for number, end in enumerate(("commit", "abort", "commit")):
        topic.send(2 * number, 2 * number + 1, f"tx-{number}", transaction=end)
    topic.send(6, 6)
    _received(topic, 5)
    expected = Expected("KEPT", {"DELIVERED": 5, "NOT_SENT": 2})
    return [topic.case(_TRANSACTIONS, "none left open", expected)]


def _received(topic: Topic, count: int, acknowledged: int | None = None) -> None:
    """Have a consumer put out so many messages, and end the window."""
    receiver = topic.receiver()
    topic.await_rows(count)
    topic.end()
    topic.await_acknowledged(acknowledged)
    receiver.kill()


PLAYS: Final = {
    "pulsar-sent-again": sent_again,
    "pulsar-deduplicated": deduplicated,
    "pulsar-transactions": transactions,
    "pulsar-committed": committed,
}
