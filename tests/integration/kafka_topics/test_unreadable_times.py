"""Records of a running cluster whose times Spark's connector cannot read are unreadable rows; the others are judged."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.integration.judging import engine_on
from tests.integration.kafka_topics.conftest import Served
from tests.integration.kafka_topics.producing_raw import append
from tests.integration.kafka_topics.sent import LATEST_STAMP
from tests.kafka_batches import batch, record

from tieout.cli.main import main
from tieout.contracts import KafkaSource
from tieout.engine.sources import kafka, kafka_cluster
from tieout.engine.sources.source import FAULT, Reading, Request
from tieout.errors import UnreadableTimeError
from tieout.model import Ledger

NOW = datetime.now(UTC).replace(microsecond=0)
START, END = NOW - timedelta(hours=2), NOW - timedelta(hours=1)
LONG_AGO = -(2**55)
MESSAGES = [f"m{number}" for number in range(6)]

CONTRACT = """\
version: 1
pipeline: orders
guarantee: {guarantee}
group: loader
margin: 1m
grace: 1s
max_latency: 1s
clock_skew: 0s
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    columns: {{message_id: id, attempted_at: at, outcome: "'acked'"}}
    coverage: declared
{ledgers}
"""
OUTPUT = """\
  delivered:
    source: {{kind: kafka, connection: kafka_plain, topic: {topic}, isolation: {isolation}}}
    columns: {{message_id: "get_json_object(string(value), '$.id')", processed_at: source_timestamp, outcome: "'ok'"}}
    tolerance: {{unparsed_ratio: {ratio}}}
"""
LOG = """\
  log:
    source: {{kind: kafka, connection: kafka_plain, topic: {topic}}}
    columns: {{message_id: "get_json_object(string(value), '$.id')"}}
  delivered:
    source: {{kind: files, format: jsonl, path: done.jsonl}}
    columns: {{message_id: id, processed_at: at, outcome: "'ok'"}}
    coverage: declared
"""


def at(number: int) -> datetime:
    """When a message was sent."""
    return START + timedelta(minutes=1 + number)


def millis(number: int) -> int:
    """The same as Kafka has it."""
    return int(at(number).timestamp() * 1000)


def made(served: Served, topic: str, **config: str) -> None:
    """Make a topic of two partitions that takes every time."""
    admin = AdminClient({"bootstrap.servers": served.bootstrap, "log_level": 0})
    settings = {"message.timestamp.after.max.ms": str(LATEST_STAMP), **config}
    admin.create_topics([NewTopic(topic, 2, 1, config=settings)])[topic].result(120)


def filled(served: Served, topic: str) -> None:
    """Make the topic and give each partition two messages, a record of a hostile time, and another message."""
    made(served, topic)
    send(served, topic, range(4))
    for partition, at in enumerate((LONG_AGO, LATEST_STAMP)):
        append(served.bootstrap, topic, partition, batch(record(body("hostile")), first_ms=at))
    send(served, topic, range(4, 6))


def send(served: Served, topic: str, numbers: range) -> None:
    """Send messages by turns to the two partitions."""
    producer = Producer({"bootstrap.servers": served.bootstrap})
    for number in numbers:
        producer.produce(topic, body(MESSAGES[number]), None, number % 2, timestamp=millis(number))
    assert producer.flush(120) == 0


def body(message: str) -> bytes:
    """A record's value."""
    return json.dumps({"id": message}).encode()


def judged(spark: SparkSession, folder: Path, guarantee: str, ledgers: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the statement of the messages and one more, which was sent and is nowhere."""
    sent = [{"id": name, "at": at(number).isoformat()} for number, name in enumerate([*MESSAGES, "m9"])]
    done = [*sent[:-1], sent[0]]
    for name, rows in {"sent": sent, "done": done}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "contract.yml").write_text(CONTRACT.format(guarantee=guarantee, ledgers=ledgers))

    words = ["reconcile", str(folder / "contract.yml"), "--from", START.isoformat(), "--to", END.isoformat()]
    words += ["--output", str(folder / "out")]
    err = io.StringIO()
    code = main(words, engine=engine_on(spark), out=io.StringIO(), err=err)
    assert (folder / "out" / "statement.json").exists(), err.getvalue()
    return code, json.loads((folder / "out" / "statement.json").read_text())


def named(statement: dict[str, Any], ledger: str) -> list[str]:
    """The places that the statement names as those of unreadable times."""
    notes = statement["coverage"][ledger]["notes"]
    return [note.split(": record_timestamp")[0] for note in notes if "292,000 years" in note]


def read(spark: SparkSession, topic: str, ledger: Ledger, **spec: Any) -> Reading:
    """What the reader finds, as a run would read it where the rows are read later than the source."""
    request = Request(spark, ledger, Path(), datetime.now(UTC))
    found = kafka.read(KafkaSource(connection="kafka_plain", topic=topic, **spec), request)
    return found if found.reread is None else found.reread()


def rows_of(found: Reading, *columns: str) -> list[Any]:
    """The rows that have the first column, in its order: that of the log."""
    assert found.rows is not None
    rows = [tuple(row) for row in found.rows.selectExpr(*columns).collect()]
    return sorted(row for row in rows if row[0] is not None)


def test_an_output_with_hostile_times_is_judged_without_them(
    connected: Served, spark: SparkSession, tmp_path: Path
) -> None:
    """Both rows are counted and named with their places; the ledger no longer covers, so what it lacks is no loss."""
    topic = "poisoned"
    filled(connected, topic)
    ledgers = OUTPUT.format(topic=topic, isolation="read_committed", ratio=0)

    code, found = judged(spark, tmp_path, "at_least_once", ledgers)

    coverage = found["coverage"]["delivered"]
    assert (code, found["verdict"]) == (3, "UNKNOWN"), found["reasons"]
    assert (coverage["rows"], coverage["unparsed"]) == (6, 2)
    assert named(found, "delivered") == [f"{topic}-0: offset 2", f"{topic}-1: offset 2"]
    assert (found["classes"]["DELIVERED"], "LOST" in found["classes"]) == (6, False)


def test_a_loss_is_reported_where_the_tolerance_covers_hostile_times(
    connected: Served, spark: SparkSession, tmp_path: Path
) -> None:
    """All other messages are judged: the one that is nowhere is lost. A reader of all data has the same rows."""
    filled(connected, "tolerated")
    ledgers = OUTPUT.format(topic="tolerated", isolation="read_uncommitted", ratio=0.5)

    code, found = judged(spark, tmp_path, "at_least_once", ledgers)

    coverage = found["coverage"]["delivered"]
    assert (coverage["rows"], coverage["unparsed"]) == (6, 2)
    assert named(found, "delivered") == ["tolerated-0: offset 2", "tolerated-1: offset 2"]
    assert (code, found["verdict"], found["classes"].get("LOST")) == (1, "BROKEN", 1), found["reasons"]


def test_a_log_with_hostile_times_is_judged_without_them(
    connected: Served, spark: SparkSession, tmp_path: Path
) -> None:
    """The log's rows are counted and named; what was done twice, or not at all, is told all the same."""
    filled(connected, "poisoned-log")

    code, found = judged(spark, tmp_path, "exactly_once", LOG.format(topic="poisoned-log"))

    coverage = found["coverage"]["log"]
    assert (coverage["rows"], coverage["unparsed"]) == (6, 2)
    assert named(found, "log") == ["poisoned-log-0: offset 2", "poisoned-log-1: offset 2"]
    assert (code, found["verdict"], found["classes"].get("LOST")) == (1, "BROKEN", 1), found["reasons"]
    assert found["classes"]["OUTPUT_DUPLICATE"] == 1


def test_hostile_times_in_transactions_are_rows_of_those_who_are_handed_them(
    connected: Served, spark: SparkSession
) -> None:
    """A reader of committed data is handed one of three, and knows nothing of times behind the open transaction."""
    made(connected, "stamped-transactions")
    lasting = {"transactional.id": "hostile", "transaction.timeout.ms": 900_000}
    sender = Producer({"bootstrap.servers": connected.bootstrap, **lasting})
    sender.init_transactions(120)
    for number, end in enumerate((sender.commit_transaction, sender.abort_transaction, None)):
        sender.begin_transaction()
        for value, stamp in ((f"m{number}", millis(number)), ("hostile", LATEST_STAMP)):
            sender.produce("stamped-transactions", value, partition=0, timestamp=stamp)
        sender.flush(120)
        if end is not None:
            end(120)

    committed = read(spark, "stamped-transactions", Ledger.DELIVERED)
    log = read(spark, "stamped-transactions", Ledger.LOG)

    assert rows_of(committed, "source_offset", "string(value)") == [(0, "m0"), (1, None)]
    assert committed.complete_until == datetime.fromtimestamp(0, UTC)
    states = ("offset", "string(value)", f"if({FAULT} IS NULL, transaction_state, 'unread')")
    reported = {offset: (value, state) for offset, value, state in rows_of(log, *states)}
    assert {state for value, state in reported.values() if value is None} == {"unread"}
    assert [row for row in reported.values() if row[0]] == [
        ("m0", "committed"),
        ("m1", "aborted"),
        ("m2", "open"),
    ]
    assert sorted(reported) == [0, 1, 3, 4, 6, 7]
    sender.abort_transaction(120)


def test_a_record_that_cannot_be_read_is_no_hole_of_a_compacted_topic(
    connected: Served, spark: SparkSession
) -> None:
    """Nothing was removed, so the ledger is complete from the beginning."""
    made(connected, "stamped-compacted", **{"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": connected.bootstrap})
    for number, stamp in enumerate((millis(0), LATEST_STAMP, millis(1), LATEST_STAMP)):
        producer.produce("stamped-compacted", body("m"), f"k{number}", 0, timestamp=stamp)
    producer.flush(120)

    found = read(spark, "stamped-compacted", Ledger.DELIVERED)

    assert (found.cut_partitions, found.complete_from, found.presumed_from) == ((), None, None)
    faults = [(offset, fault is not None) for offset, fault in rows_of(found, "source_offset", FAULT)]
    assert faults == [(0, False), (1, True), (2, False), (3, True)]


def test_more_such_records_than_are_looked_for_are_an_error(
    connected: Served, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic full of them would take a job for each."""
    monkeypatch.setattr(kafka_cluster, "MOST", 1)
    filled(connected, "full")

    with pytest.raises(UnreadableTimeError, match="expected at most 1 records of the topic"):
        read(spark, "full", Ledger.LOG)
