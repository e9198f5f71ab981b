"""Topics of a running cluster that are cut, made anew, held open, closed: no verdict rests on what is not there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession
from tests.engine.sources.builders import contract_of
from tests.integration.kafka_topics.conftest import Served
from tests.integration.kafka_topics.sent import USER

from tieout.contracts import KafkaSource
from tieout.engine.kafka.topics import Topic, described_topic
from tieout.engine.reconciling import reconcile
from tieout.engine.sources import kafka, kafka_cluster
from tieout.engine.sources.source import Reading, Request
from tieout.errors import SourceError, SourceUnreachableError
from tieout.model import Ledger, Window

NOW = datetime.now(UTC).replace(microsecond=0)
WINDOW = Window(NOW - timedelta(hours=2), NOW - timedelta(hours=1))
MESSAGES = [f"m{number}" for number in range(4)]
ID = "get_json_object(string(value), '$.id')"


@pytest.fixture(scope="module")
def admin(served: Served) -> AdminClient:
    """One client for all tests."""
    return AdminClient({"bootstrap.servers": served.bootstrap, "log_level": 0})


@pytest.fixture
def make(connected: Served, admin: AdminClient) -> Iterator[Callable[..., None]]:
    """Make a topic with records, each stamped a minute after the one before, and delete it in the end."""
    made: list[str] = []

    def topic(name: str, messages: list[str] = MESSAGES, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(120)
        made.append(name)
        producer = Producer({"bootstrap.servers": connected.bootstrap})
        for number, message in enumerate(messages):
            producer.produce(name, body(message), message, 0, timestamp=millis(stamp(number)))
        assert producer.flush(120) == 0

    yield topic
    for answer in admin.delete_topics(made).values():
        answer.exception(120)


def body(message: str) -> bytes:
    """Return a record's value."""
    return json.dumps({"id": message}).encode()


def stamp(number: int) -> datetime:
    """Return when a message was sent."""
    return WINDOW.start + timedelta(minutes=1 + number)


def millis(time: datetime) -> int:
    """Return the time as Kafka has it."""
    return int(time.timestamp() * 1000)


def verdict(spark: SparkSession, folder: Path, topic: str, ledger: str) -> dict[str, Any]:
    """Return the statement of messages that were all sent and delivered, or of a loss of all where `produced` is asked.

    That ledger is the topic, the other one a file.
    """
    lost = ledger == "produced"
    rows = [] if lost else [{"message_id": one, "at": stamp(n).isoformat()} for n, one in enumerate(MESSAGES)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reported = {"produced": {"outcome": "'acked'"}, "delivered": {"outcome": "'ok'"}}
    time_column = {"produced": "attempted_at", "delivered": "processed_at"}
    from_topic: Mapping[str, Any] = {
        "source": {"kind": "kafka", "connection": "kafka_plain", "topic": topic},
        "columns": {"message_id": ID, time_column[ledger]: "source_timestamp", **reported[ledger]},
    }
    other = "delivered" if lost else "produced"
    from_file: Mapping[str, Any] = {
        "source": {"kind": "files", "format": "jsonl", "path": "rows.jsonl"},
        "columns": {"message_id": "message_id", time_column[other]: "at", **reported[other]},
        "coverage": "declared",
    }
    contract = contract_of(folder, {ledger: from_topic, other: from_file})
    return reconcile(spark, contract, WINDOW, run_id="r", now=datetime.now(UTC)).statement


def cut_off(admin: AdminClient, topic: str, before: int) -> None:
    """Have the broker delete what lies before the offset, as retention would."""
    for answer in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        answer.result(120)


def made_anew(admin: AdminClient, make: Callable[..., None], topic: str) -> None:
    """Delete the topic and make it again, with other records and more of them."""
    admin.delete_topics([topic])[topic].result(120)
    deadline = time.monotonic() + 120
    while topic in admin.list_topics(timeout=60).topics and time.monotonic() < deadline:
        time.sleep(0.1)
    make(topic, [f"z{number}" for number in range(6)])


def test_a_loss_whose_sends_were_removed_is_not_kept(
    spark: SparkSession, tmp_path: Path, admin: AdminClient, make: Callable[..., None]
) -> None:
    """Nothing came out, and the topic that says what was sent is empty by now: it does not cover the window."""
    make("removed-all")
    cut_off(admin, "removed-all", before=4)

    found = verdict(spark, tmp_path, "removed-all", "produced")

    assert found["verdict"] == "UNKNOWN", found["reasons"]
    assert "records before offset 4 were removed" in found["coverage"]["produced"]["notes"][-1]


def test_output_that_was_removed_is_no_loss(
    spark: SparkSession, tmp_path: Path, admin: AdminClient, make: Callable[..., None]
) -> None:
    """The output's beginning is gone: it is complete since the first record that is left."""
    make("removed-some")
    cut_off(admin, "removed-some", before=2)

    found = verdict(spark, tmp_path, "removed-some", "delivered")

    assert (found["verdict"], found["classes"].get("LOST")) == ("UNKNOWN", None), found["reasons"]
    begins = stamp(2) + timedelta(milliseconds=1)
    assert datetime.fromisoformat(found["coverage"]["delivered"]["covers_from"]) == begins


def test_a_topic_that_is_made_anew_while_it_is_read_is_reported(
    spark: SparkSession,
    tmp_path: Path,
    admin: AdminClient,
    make: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The offsets are the old topic's and the records the new one's: all sends are gone, and nothing fails."""
    make("anew")
    times = iter(range(9))

    def meanwhile(*requested: Any) -> Topic | None:
        found = described_topic(*requested)
        if next(times) == 0:
            made_anew(admin, make, "anew")
        return found

    monkeypatch.setattr(kafka_cluster, "described_topic", meanwhile)
    found = verdict(spark, tmp_path, "anew", "produced")

    assert found["verdict"] == "UNKNOWN", found["reasons"]
    assert "since the run began to read it" in found["coverage"]["produced"]["notes"][0]


def read(spark: SparkSession, topic: str, connection: str = "kafka_plain") -> Reading:
    """Return what the reader finds of an output topic."""
    request = Request(spark, Ledger.DELIVERED, Path(), NOW)
    return kafka.read(KafkaSource(connection=connection, topic=topic), request)


@pytest.mark.parametrize("ahead", [timedelta(minutes=-5), timedelta(minutes=30)])
def test_what_an_open_transaction_hides_is_covered_by_its_own_times(
    connected: Served, spark: SparkSession, make: Callable[..., None], ahead: timedelta
) -> None:
    """Records behind its first one have the times of what they were made of, and its own may be of a clock ahead."""
    name = f"hidden-{'ahead' if ahead > timedelta() else 'behind'}"
    make(name)
    lasting = {"transactional.id": name, "transaction.timeout.ms": 900_000}
    holder = Producer({"bootstrap.servers": connected.bootstrap, **lasting})
    holder.init_transactions(120)
    holder.begin_transaction()
    holder.produce(name, body("open"), timestamp=millis(NOW + ahead))
    holder.flush(120)
    behind = [] if ahead > timedelta() else [stamp(9)]
    producer = Producer({"bootstrap.servers": connected.bootstrap})
    for at in behind:
        producer.produce(name, body("behind"), timestamp=millis(at))
    producer.flush(120)

    found = read(spark, name)

    assert found.complete_until == min([*behind, NOW + ahead, NOW])
    holder.abort_transaction(120)


def test_a_compacted_output_is_complete_behind_its_last_hole(
    connected: Served, spark: SparkSession, make: Callable[..., None]
) -> None:
    """A consumer cannot tell the transaction's marker from a record that compaction took."""
    make("compacted", cleanup_policy="compact")
    assert read(spark, "compacted").presumed_from is None
    sender = Producer({"bootstrap.servers": connected.bootstrap, "transactional.id": "compacted"})
    sender.init_transactions(120)
    sender.begin_transaction()
    sender.produce("compacted", body("m4"), "m4", timestamp=millis(stamp(4)))
    sender.commit_transaction(120)

    at_the_end = read(spark, "compacted")
    producer = Producer({"bootstrap.servers": connected.bootstrap})
    producer.produce("compacted", body("m5"), "m5", timestamp=millis(stamp(5)))
    producer.flush(120)
    between = read(spark, "compacted")

    assert (at_the_end.presumed_from, at_the_end.complete_from) == (NOW, None)
    assert (between.presumed_from, between.complete_from) == (None, stamp(5) + timedelta(milliseconds=1))


def test_a_topic_that_may_be_described_and_not_read_is_somebody_s_to_change(
    connected: Served, admin: AdminClient, spark: SparkSession, make: Callable[..., None]
) -> None:
    """The error names the right that is missing, and trying again does not help."""
    make("closed")
    right = (AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    binding = AclBinding(
        ResourceType.TOPIC, "closed", ResourcePatternType.LITERAL, f"User:{USER}", "*", *right
    )
    for answer in admin.create_acls([binding]).values():
        answer.result(120)

    request = Request(spark, Ledger.LOG, Path(), NOW)
    with pytest.raises(SourceError, match="rights to DESCRIBE and to READ") as caught:
        kafka.read(KafkaSource(connection="kafka_secured", topic="closed"), request)

    assert not isinstance(caught.value, SourceUnreachableError)
