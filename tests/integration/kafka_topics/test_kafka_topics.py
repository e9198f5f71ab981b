"""Topics and positions read from a real cluster, held against the same broker's segment files."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.integration.judging import engine_on
from tests.integration.kafka_topics.conftest import ROOT, Served
from tests.integration.kafka_topics.sent import GROUP, LATEST_STAMP, PASSWORD, PAYLOADS, USER
from tools.record.__main__ import VENV

from tieout.cli.main import main
from tieout.contracts import (
    KafkaConsumerGroupsSource,
    KafkaOffsetsSource,
    KafkaSegmentsSource,
    KafkaSource,
    load_contract,
)
from tieout.engine.kafka import topics
from tieout.engine.reading import open_ledgers
from tieout.engine.sources import kafka, kafka_consumer_groups, kafka_offsets, kafka_segments
from tieout.engine.sources.source import FAULT, Reach, Reading, Request
from tieout.errors import SourceError, SourceUnreachableError
from tieout.model import Ledger, Window

COMPARED = (
    *("topic", "topic_id", "partition", "offset", "key", "value", "headers", "record_timestamp"),
    *("timestamp_type", "transaction_state", "is_control"),
    *("log_start_offset", "last_stable_offset", "end_offset"),
)


@pytest.fixture
def now() -> datetime:
    """When the sources are read."""
    return datetime.now(UTC)


def read(spark: SparkSession, now: datetime, ledger: Ledger = Ledger.LOG, **spec: Any) -> Reading:
    """Return what the reader of clusters finds."""
    return kafka.read(KafkaSource(**spec), Request(spark, ledger, Path(), now))


def rows_of(found: DataFrame | None, *columns: str) -> list[Any]:
    """Return the rows in the order of the log, control records left out: no consumer is handed them."""
    assert found is not None
    data = found.where(f"{FAULT} IS NULL AND NOT coalesce(is_control, true)")
    return sorted(tuple(row) for row in data.select(*columns).collect())


@pytest.mark.parametrize(
    ("topic", "connection"),
    [("plain", "kafka_plain"), ("orders", "kafka_secured"), ("latest", "kafka_plain")],
)
def test_the_records_are_those_of_the_brokers_own_files(
    connected: Served, spark: SparkSession, now: datetime, topic: str, connection: str
) -> None:
    """Keys, values, headers, times and states are what the segment files of the same broker hold."""
    handed = read(spark, now, connection=connection, topic=topic)
    files = kafka_segments.read(
        KafkaSegmentsSource(path=(str(connected.data),), topic=topic), Request(spark, Ledger.LOG, Path(), now)
    )
    expected = rows_of(files.rows, *COMPARED)
    assert len(expected) == {"plain": 10, "orders": 14, "latest": 5}[topic]
    if topic == "latest":  # in a compacted log a consumer cannot tell who wrote in a transaction
        expected = [tuple("committed" if value == "none" else value for value in row) for row in expected]
    assert rows_of(handed.rows, *COMPARED) == expected
    assert handed.complete_until == now
    assert PASSWORD not in repr(handed)


def test_states_tell_aborted_from_open_and_from_committed(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """What two readers are handed tells the fate of each transaction."""
    rows = rows_of(
        read(spark, now, connection="kafka_plain", topic="orders").rows, "value", "transaction_state"
    )
    states = {bytes(value).decode(): state for value, state in rows}
    reported = [states.get(payload) for payload in PAYLOADS[:18]]
    committed, aborted, opened = ["committed"] * 4, ["aborted"] * 4, ["open"] * 2
    assert reported == [*committed, *[None] * 4, *aborted, *committed, *opened]


def test_a_log_is_read_from_the_first_record_within_reach(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """From there on every record is read, whatever its time; bounds and states are those of the whole topic.

    A transaction's marker is a record too: it may be stamped later than what was sent next, which had to wait for it.
    """
    columns = (
        "partition",
        "offset",
        "record_timestamp",
        "transaction_state",
        "log_start_offset",
        "end_offset",
    )
    whole = rows_of(read(spark, now, connection="kafka_plain", topic="orders").rows, *columns)
    files = kafka_segments.read(
        KafkaSegmentsSource(path=(str(connected.data),), topic="orders"),
        Request(spark, Ledger.LOG, Path(), now),
    )
    assert files.rows is not None
    stamped = files.rows.where("offset IS NOT NULL").select("partition", "offset", "record_timestamp")
    stamps = [tuple(row) for row in stamped.collect()]
    begins_at = sorted(stamp for _, _, stamp in stamps)[len(stamps) // 2]
    first: dict[int, int] = {}
    for partition, offset, stamp in stamps:
        if stamp >= begins_at:
            first[partition] = min(offset, first.get(partition, offset))
    reach = Reach(begins_at.astimezone(UTC))

    found = kafka.read(
        KafkaSource(connection="kafka_plain", topic="orders"),
        Request(spark, Ledger.LOG, Path(), now, reach=reach),
    )

    expected = [row for row in whole if row[1] is not None and row[1] >= first.get(row[0], inf)]
    handed = [row for row in rows_of(found.rows, *columns) if row[1] is not None]
    assert handed == expected
    assert 0 < len(handed) < len(whole)
    assert {row[4] for row in handed} == {0}


def test_nothing_of_a_log_is_within_reach(connected: Served, spark: SparkSession, now: datetime) -> None:
    """A log whose records are all older states its bounds."""
    reach = Reach(now + timedelta(days=1))
    request = Request(spark, Ledger.LOG, Path(), now, reach=reach)
    rows = kafka.read(KafkaSource(connection="kafka_plain", topic="plain"), request).rows
    assert rows is not None
    assert {(row["offset"], row["log_start_offset"]) for row in rows.collect()} == {(None, 0)}


def test_a_topic_without_records_states_its_bounds(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """An empty partition is known to be empty."""
    found = read(spark, now, connection="kafka_plain", topic="silent")
    assert found.rows is not None
    (row,) = found.rows.collect()
    assert (row["partition"], row["offset"], row["log_start_offset"], row["end_offset"]) == (0, None, 0, 0)
    assert row["cleanup_policy"] == "delete"


def test_readers_of_committed_data_see_up_to_the_open_transaction(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """Other ledgers hold committed data, and are complete until the first record held back."""
    found = read(spark, now, Ledger.DELIVERED, connection="kafka_plain", topic="orders")
    assert found.rows is not None
    values = sorted(bytes(row["value"]).decode() for row in found.rows.select("value").collect())
    assert values == sorted([*PAYLOADS[:4], *PAYLOADS[12:16]])
    assert "source_offset" in found.rows.columns
    assert "offset" not in found.rows.columns
    assert found.complete_until is not None
    assert timedelta() < now - found.complete_until < timedelta(hours=4)
    assert any("a transaction is open since" in note for note in found.notes)


@pytest.mark.parametrize("ledger", [Ledger.DEAD_LETTERS, Ledger.DELIVERED])
def test_readers_of_all_data_see_which_of_it_is_committed(
    connected: Served, spark: SparkSession, now: datetime, ledger: Ledger
) -> None:
    """Other ledgers that hold what is not committed have the states of transactions, as the log has."""
    found = read(spark, now, ledger, connection="kafka_plain", topic="orders", isolation="read_uncommitted")
    states = {
        bytes(value).decode(): state for value, state in rows_of(found.rows, "value", "transaction_state")
    }
    reported = [states.get(payload) for payload in PAYLOADS[:18]]
    committed, aborted, opened = ["committed"] * 4, ["aborted"] * 4, ["open"] * 2
    assert reported == [*committed, *[None] * 4, *aborted, *committed, *opened]
    assert found.complete_until == now


def test_positions_are_those_of_the_brokers_own_files(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """The history of commits without the aborted one, as in the segment files."""
    columns = ("consumer_group", "topic", "partition", "committed_offset", "leader_epoch", "committed_at")
    request = Request(spark, Ledger.COMMITTED, Path(), now)
    requested = kafka_offsets.read(KafkaOffsetsSource(connection="kafka_plain", group=GROUP), request)
    files = kafka_offsets.read(
        KafkaOffsetsSource(path=(str(connected.data),), group=GROUP, partitions=1), request
    )
    assert requested.rows is not None
    assert files.rows is not None
    found, expected = (
        sorted(tuple(row) for row in rows.select(*columns).collect()) for rows in (requested.rows, files.rows)
    )
    assert [(place, offset) for _, _, place, offset, *_ in expected] == [(0, 4), (0, 16), (1, 6)]
    assert found == expected


def test_where_a_group_stands_is_asked_as_well(connected: Served, spark: SparkSession, now: datetime) -> None:
    """Over the connection that logs in: current positions with the ends, and none of a group that is not known."""
    request = Request(spark, Ledger.COMMITTED, Path(), now)
    found = kafka_consumer_groups.read(
        KafkaConsumerGroupsSource(connection="kafka_secured", group=GROUP), request
    )
    assert found.rows is not None
    columns = ("consumer_group", "topic", "partition", "committed_offset", "log_end_offset")
    assert sorted(tuple(row) for row in found.rows.select(*columns).collect()) == [
        (GROUP, "plain", 0, 16, 5),
        (GROUP, "plain", 1, 6, 5),
    ]
    assert found.complete_until == now

    none = kafka_consumer_groups.read(
        KafkaConsumerGroupsSource(connection="kafka_plain", group="unknown"), request
    )
    assert none.rows is not None
    assert none.rows.collect() == []
    assert none.notes == ("the cluster knows no position of the group unknown",)


def test_a_time_that_the_connector_cannot_read_is_an_unreadable_row(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """The partition, which has no other record, states its bounds. The broker's own files tell the time as well."""
    handed = read(spark, now, connection="kafka_plain", topic="stamped").rows
    assert handed is not None
    columns = ("partition", "offset", "end_offset", FAULT)
    expected = "stamped-0: offset 0: record_timestamp: expected milliseconds within 292,000 years of 1970, found others"
    assert {tuple(row) for row in handed.select(*columns).collect()} == {
        (0, None, 1, None),
        (0, 0, None, expected),
    }

    files = KafkaSegmentsSource(path=(str(connected.data),), topic="stamped")
    rows = kafka_segments.read(files, Request(spark, Ledger.LOG, Path(), now)).rows
    assert rows is not None
    (fault,) = [row[FAULT] for row in rows.collect() if row[FAULT] is not None]
    assert str(LATEST_STAMP) in fault, fault


def test_a_topic_that_is_not_there_is_absent(connected: Served, spark: SparkSession, now: datetime) -> None:
    """A topic that was never made, or was deleted, is evidence that is absent, not an error."""
    found = read(spark, now, connection="kafka_plain", topic="misspelt")
    assert (found.rows, found.is_present) == (None, False)
    assert found.notes == (f"{connected.bootstrap}: the cluster has no topic misspelt",)


def test_a_log_of_committed_data_alone_is_refused(
    connected: Served, spark: SparkSession, now: datetime
) -> None:
    """It would show aborted records as missing ones."""
    with pytest.raises(SourceError, match="isolation: expected read_uncommitted or nothing for the log"):
        read(spark, now, connection="kafka_plain", topic="orders", isolation="read_committed")


def test_a_wrong_password_is_an_error_without_it(
    connected: Served, spark: SparkSession, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has to change it, so trying again does not help."""
    wrong = {
        "conn_type": "kafka",
        "login": USER,
        "password": "falsch-geheim",
        "extra": {
            "bootstrap.servers": connected.secured,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "ssl.ca.location": connected.authority,
        },
    }
    monkeypatch.setenv("AIRFLOW_CONN_WRONG", json.dumps(wrong))
    with pytest.raises(SourceError, match="Authentication failed") as caught:
        read(spark, now, connection="wrong", topic="plain")
    assert not isinstance(caught.value, SourceUnreachableError)
    assert "geheim" not in str(caught.value)


def test_a_cluster_that_does_not_answer_may_later(
    served: Served, spark: SparkSession, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that meets it is tried again."""
    monkeypatch.setenv("AIRFLOW_CONN_NOWHERE", "kafka://127.0.0.1:1")
    monkeypatch.setattr(topics, "_TIMEOUT_MILLIS", 3_000)
    with pytest.raises(SourceUnreachableError, match=r"127\.0\.0\.1:1 does not answer"):
        read(spark, now, connection="nowhere", topic="plain")


def test_the_plan_holds_no_secret(
    connected: Served, spark: SparkSession, now: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plans are logged and shown."""
    rows = read(spark, now, connection="kafka_secured", topic="orders").rows
    assert rows is not None
    rows.explain(extended=True)
    assert "jaas" not in (plan := capsys.readouterr().out)
    assert "heim" not in plan


CONTRACT = """\
version: 1
pipeline: plain_to_copy
guarantee: exactly_once
group: orders-loader
margin: 1m
grace: 1s
max_latency: 1s
clock_skew: 0s
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    columns: {{message_id: id, attempted_at: timestamp_millis(sent), outcome: "'acked'"}}
    coverage: declared
  log:
    source: {{kind: kafka, connection: kafka_secured, topic: {topic}}}
    columns: {{message_id: "get_json_object(string(value), '$.id')"}}
  delivered:
    source: {{kind: kafka, connection: kafka_plain, topic: {topic}}}
    columns: {{message_id: "get_json_object(string(value), '$.id')", processed_at: source_timestamp, outcome: "'ok'"}}
"""


def _first_time(spark: SparkSession) -> datetime:
    found = read(spark, datetime.now(UTC), connection="kafka_plain", topic="plain")
    assert found.rows is not None
    first: datetime = found.rows.agg({"record_timestamp": "min"}).collect()[0][0]
    return first.astimezone(UTC).replace(microsecond=0)


def _window(spark: SparkSession, folder: Path, topic: str, sent: int) -> list[str]:
    """Write a contract and the producer's records of so many messages, and return the command that judges them.

    The evidence has to cover what comes after the window, so this waits until that is past.
    """
    start = _first_time(spark) - timedelta(seconds=2)
    end = start + timedelta(seconds=10)
    time.sleep(max(0.0, (end + timedelta(seconds=3) - datetime.now(UTC)).total_seconds()))
    lines = [
        {"id": json.loads(p)["id"], "sent": int((start.timestamp() + 1) * 1000)} for p in PAYLOADS[:sent]
    ]
    (folder / "sent.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "contract.yml").write_text(CONTRACT.format(topic=topic))
    window = ["--from", start.isoformat(), "--to", end.isoformat()]
    return ["reconcile", str(folder / "contract.yml"), *window, "--output", str(folder / "out")]


def test_the_command_reads_a_cluster_over_tls(connected: Served, spark: SparkSession, tmp_path: Path) -> None:
    """Log and output come from the cluster, and the login shows nowhere."""
    command = [sys.executable, "-m", "tieout.cli", *_window(spark, tmp_path, "plain", sent=10)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    statement = json.loads((tmp_path / "out" / "statement.json").read_text())
    assert statement["coverage"]["log"]["digests"] == ["offsets:0-4  plain-0", "offsets:0-4  plain-1"]
    files = [path.read_text(errors="replace") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "heim" not in done.stdout + done.stderr + "".join(files)


def test_a_contract_is_drafted_from_a_look_at_topics(connected: Served, tmp_path: Path) -> None:
    """`tieout init` finds the fields in the records' values, and writes a contract that is one."""
    sources = ["--produced", "kafka:kafka_plain:plain", "--log", "kafka:kafka_secured:plain"]
    output = ["--delivered", "kafka:kafka_plain:orders", "--output", str(tmp_path / "drafted.yml")]
    sources += ["--committed", "kafka:kafka_plain:__consumer_offsets", "--group", "loader"]
    words = ["init", "plain_to_orders", "--guarantee", "at_least_once", *sources, *output]
    command = [sys.executable, "-m", "tieout.cli", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    contract = load_contract(tmp_path / "drafted.yml")
    field = "get_json_object(string(value), '$.id')"
    shown = [spec.columns["message_id"] for spec in contract.ledgers.values() if spec.columns]
    assert shown == [field] * 3
    positions = KafkaOffsetsSource(connection="kafka_plain", group="loader")
    assert contract.ledgers[Ledger.COMMITTED].source == positions
    assert contract.ledgers[Ledger.DELIVERED].columns["processed_at"] == "source_timestamp"
    assert contract.ledgers[Ledger.LOG].source == KafkaSource(connection="kafka_secured", topic="plain")
    assert "heim" not in done.stdout + done.stderr + (tmp_path / "drafted.yml").read_text()


def test_a_message_that_the_topic_lacks_is_lost(
    connected: Served, spark: SparkSession, tmp_path: Path
) -> None:
    """One more was acknowledged than the cluster hands out."""
    words = _window(spark, tmp_path, "plain", sent=11)
    assert main(words, engine=engine_on(spark), out=io.StringIO(), err=io.StringIO()) == 1
    statement = json.loads((tmp_path / "out" / "statement.json").read_text())
    assert (statement["verdict"], statement["classes"]["LOST"]) == ("BROKEN", 1)


def test_records_that_retention_cuts_off_meanwhile_are_no_loss(
    connected: Served, spark: SparkSession, tmp_path: Path, now: datetime
) -> None:
    """What was to be read is gone before it was: the run fails, and another one finds the log as it is then."""
    (tmp_path / "contract.yml").write_text(CONTRACT.format(topic="cut"))
    window = Window(now - timedelta(minutes=2), now)
    opened = open_ledgers(spark, load_contract(tmp_path / "contract.yml"), window, now)
    _cut_off(connected.bootstrap, "cut", before=3)
    with pytest.raises(SourceUnreachableError, match="retention cut them off, or a broker left"):
        opened[Ledger.LOG].kept()
    again = read(spark, now, connection="kafka_plain", topic="cut")
    assert [offset for (offset,) in rows_of(again.rows, "offset")] == [3, 4]


def _cut_off(bootstrap: str, topic: str, before: int) -> None:
    """Have the broker delete what lies before the offset, as retention would."""
    program = (
        "import sys; from confluent_kafka import TopicPartition; from confluent_kafka.admin import AdminClient; "
        "client = AdminClient({'bootstrap.servers': sys.argv[1]}); "
        "place = TopicPartition(sys.argv[2], 0, int(sys.argv[3])); "
        "[answer.result(120) for answer in client.delete_records([place]).values()]"
    )
    command = [str(VENV / "bin" / "python"), "-c", program, bootstrap, topic, str(before)]
    subprocess.run(command, timeout=300, check=True)
