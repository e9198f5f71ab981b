"""Replays into a real cluster: each message once, whenever the producer dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.integration.kafka_topics.conftest import ROOT, Served
from tests.integration.kafka_topics.sent import PASSWORD

from tieout.brokers import producing
from tieout.brokers.cluster import Cluster
from tieout.brokers.producing import Outgoing, produce_once
from tieout.contracts import IDEMPOTENCE_HEADER
from tieout.errors import SourceError, SourceUnreachableError

AGO = datetime.now(UTC) - timedelta(hours=1)
PARTITIONS = 3


def messages(prefix: str, count: int = 40, **changes: Any) -> list[Outgoing]:
    """Return messages, some without key or value, all but some for a partition that is known."""
    return [
        Outgoing(
            **{
                "idempotence_key": f"{prefix}-{number}",
                "topic": "replayed",
                "partition": number % PARTITIONS if number % 5 else None,
                "key": None if number % 7 == 0 else f"k-{number}".encode(),
                "value": None if number == 4 else f"v-{number}".encode(),
                "headers": (("source", b"checkout"), ("nothing", None)),
                **changes,
            }
        )
        for number in range(count)
    ]


def committed(served: Served, prefix: str) -> list[Any]:
    """Return what a reader of committed data finds of these messages."""
    settings = {"bootstrap.servers": served.bootstrap, "group.id": "test", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    parts = [TopicPartition("replayed", number, 0) for number in range(PARTITIONS)]
    # The markers of a commit may be written after it is acknowledged: what is read ends where the log did, no sooner.
    left = {part.partition: consumer.get_watermark_offsets(part, 30)[1] for part in parts}
    consumer.assign(parts)
    found: list[Any] = []
    ends = time.monotonic() + 270
    while left:
        got = consumer.consume(500, 5)
        assert time.monotonic() < ends, f"not read up to {left}"
        for message in got:
            mine = message.error() is None and dict(message.headers())[IDEMPOTENCE_HEADER]
            if mine and mine.startswith(prefix.encode()):
                found.append(message)
            after = message.offset() + (message.error() is None)
            if after >= left.get(message.partition(), 0):
                left.pop(message.partition(), None)
    consumer.close()
    return found


def keys_of(found: list[Any]) -> Counter[str]:
    """Return how often each idempotence key is there."""
    return Counter(dict(message.headers())[IDEMPOTENCE_HEADER].decode() for message in found)


def test_messages_arrive_as_they_are_and_only_once(connected: Served) -> None:
    """Over SASL and TLS: key, value, headers, and the partition where it is known; again, nothing is added."""
    sent = messages("whole")
    cluster = Cluster.of("kafka_secured", "replay.to")

    assert produce_once(cluster, "tieout-replay-whole", sent, AGO) == len(sent)
    assert produce_once(cluster, "tieout-replay-whole", [*sent, *messages("more", 2)], AGO) == 2

    found = {
        dict(message.headers())[IDEMPOTENCE_HEADER].decode(): message
        for message in committed(connected, "whole")
    }
    assert len(found) == len(sent)
    for one in sent:
        message = found[one.idempotence_key]
        assert (message.key(), message.value()) == (one.key, one.value)
        assert one.partition in (None, message.partition())
        assert message.headers()[:-1] == list(one.headers)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_producer_killed_about_its_commit_is_completed(connected: Served, moment: str) -> None:
    """Killed with -9, it has produced nothing or everything; the next try makes it everything, once."""
    prefix = f"killed-{moment}"
    program = f"""
import os
from tests.integration.kafka_topics.test_producing import AGO, Cluster, messages, produce_once, producing
commit = producing._committed
def killed(producer):
    producer.flush(120) if "{moment}" == "before" else commit(producer)
    os.kill(os.getpid(), 9)
producing._committed = killed
produce_once(Cluster.of("kafka_plain", "replay.to"), "tieout-replay-killed", messages("{prefix}"), AGO)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=600, check=False)
    assert done.returncode == -9
    left = {"before": 40, "after": 0}[moment]

    cluster = Cluster.of("kafka_plain", "replay.to")
    assert produce_once(cluster, "tieout-replay-killed", messages(prefix), AGO) == left

    assert keys_of(committed(connected, prefix)) == {f"{prefix}-{number}": 1 for number in range(40)}


def test_what_an_open_transaction_hides_is_waited_for(
    connected: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind it may be what is to be produced; so nothing is, until it has ended."""
    monkeypatch.setattr(producing, "TIMEOUT_SECONDS", 3.0)
    cluster = Cluster.of("kafka_plain", "replay.to")
    with pytest.raises(SourceUnreachableError, match="open transaction of another producer"):
        produce_once(cluster, "tieout-replay-hidden", messages("hidden", 3, topic="orders"), AGO)


def test_a_topic_that_is_not_there_is_not_made(connected: Served) -> None:
    """A misspelt name would else be a new topic, which nobody reads."""
    cluster = Cluster.of("kafka_plain", "replay.to")
    with pytest.raises(SourceError, match="the cluster has no topic misspelt"):
        produce_once(cluster, "tieout-replay-nowhere", messages("nowhere", 1, topic="misspelt"), AGO)
    assert cluster.partitions("misspelt") == ()


def test_a_message_that_the_topic_refuses_leaves_none(connected: Served) -> None:
    """All or nothing: a body that is larger than the broker takes."""
    sent = [*messages("large", 3), *messages("huge", 1, value=b"x" * 2_000_000)]
    cluster = Cluster.of("kafka_plain", "replay.to")
    with pytest.raises(SourceError, match=r"[Ss]ize too large"):
        produce_once(cluster, "tieout-replay-large", sent, AGO)
    assert committed(connected, "large") == []


def test_a_refused_login_says_so_without_the_password(
    connected: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would try for ever."""
    monkeypatch.setattr("tieout.brokers.cluster.TIMEOUT_SECONDS", 5.0)
    cluster = Cluster.of("kafka_secured", "replay.to")
    cluster.settings["sasl.password"] = "falsch-geheim"
    with pytest.raises(SourceError, match="Authentication failed") as caught:
        produce_once(cluster, "tieout-replay-refused", messages("refused", 1), AGO)
    assert not caught.value.is_temporary
    assert "geheim" not in str(caught.value)
    assert PASSWORD not in repr(cluster)


def test_a_cluster_that_does_not_answer_may_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that meets it is tried again."""
    monkeypatch.setattr("tieout.brokers.cluster.TIMEOUT_SECONDS", 2.0)
    monkeypatch.setenv("AIRFLOW_CONN_NOWHERE", "kafka://127.0.0.1:1")
    with pytest.raises(SourceUnreachableError, match=r"127\.0\.0\.1:1 does not answer"):
        Cluster.of("nowhere", "replay.to").partitions("replayed")


def test_what_a_cluster_says_of_a_topic(connected: Served) -> None:
    """Its partitions, how far they reach, and the settings that hold for it."""
    cluster = Cluster.of("kafka_plain", "settings.broker")
    now = datetime.now(UTC)
    assert cluster.partitions("orders") == (0, 1)
    ends, stable = (cluster.ends("orders", (0, 1), is_stable=one) for one in (False, True))
    assert ends[0] == stable[0]
    assert ends[1] == stable[1] + 2
    assert cluster.since("orders", (0, 1), AGO) == {0: 0, 1: 0}
    assert cluster.since("orders", (0, 1), now + timedelta(hours=1)) == {0: None, 1: None}
    assert cluster.topic_settings("latest")["cleanup.policy"] == "compact"
    assert cluster.topic_settings("latest")["replication.factor"] == "1"
    assert cluster.broker_settings()["offsets.topic.replication.factor"] == "1"
