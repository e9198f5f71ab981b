"""A share group's state read from a real cluster, held against the same broker's segment files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.kafka_topics.conftest import Served
from tests.integration.kafka_topics.sent import GROUP

from tieout.cli.main import main
from tieout.contracts import KafkaShareGroupSource, load_contract
from tieout.engine.sources import kafka_newest, kafka_share_group
from tieout.engine.sources.source import Reading, Request
from tieout.model import Ledger

_COLUMNS = (
    "partition",
    "first_offset",
    "committed_offset",
    "is_individual",
    "committed_at",
    "taken_at",
    "metadata",
)


def _rows(found: Reading) -> list[tuple[object, ...]]:
    assert found.rows is not None
    return sorted((tuple(row) for row in found.rows.select(*_COLUMNS).collect()), key=repr)


@pytest.mark.parametrize("connection", ["kafka_plain", "kafka_secured"])
def test_a_cluster_says_of_a_share_group_what_its_files_say(
    connected: Served, spark: SparkSession, connection: str
) -> None:
    """The topic's id is the cluster's, and that of the topic's folders."""
    request = Request(spark, Ledger.COMMITTED, Path(), datetime.now(UTC))
    handed = kafka_share_group.read(
        KafkaShareGroupSource(connection=connection, group=GROUP, topic="plain"), request
    )
    files = kafka_share_group.read(
        KafkaShareGroupSource(path=(str(connected.data),), group=GROUP, topic="plain", partitions=2), request
    )

    assert _rows(handed) == _rows(files)
    assert [(row[0], row[1], row[2], row[4] is None) for row in _rows(handed)] == [
        (0, 0, 3, False),
        (0, None, 0, True),
        (1, 1, 2, True),
        (1, None, 0, True),
    ]
    assert handed.is_share_group
    assert handed.complete_until == request.now


def test_archived_records_are_dead_letters_from_a_cluster_as_well(
    connected: Served, spark: SparkSession
) -> None:
    """One row each."""
    request = Request(spark, Ledger.DEAD_LETTERS, Path(), datetime.now(UTC))
    source = KafkaShareGroupSource(connection="kafka_plain", group=GROUP, topic="plain")

    found = kafka_share_group.read(source, request).rows

    assert found is not None
    rows = [tuple(row) for row in found.select("topic", "partition", "offset", "reason").collect()]
    assert rows == [("plain", 1, 1, "archived, delivered 5 times")]


def test_a_contract_is_drafted_from_the_state_of_a_cluster(
    connected: Served,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`tieout init` names the topic that most of the state is of, and its groups; the group has a queue.

    It looks with the Spark that runs already; test_kafka_topics.py has the command as a process, with its own.
    """
    monkeypatch.setattr(kafka_newest, "local_session", lambda *_: spark)
    monkeypatch.setattr(kafka_newest, "stop", lambda _: None)
    connection, file = "kafka_secured", tmp_path / "drafted.yml"
    sources = ["--produced", f"kafka:{connection}:plain", "--delivered", f"kafka:{connection}:orders"]
    sources += ["--committed", f"kafka:{connection}:__share_group_state", "--group", GROUP]
    words = ["init", "plain_to_orders", "--guarantee", "at_least_once", *sources, "--output", str(file)]
    assert main(words) == 0
    reported = "".join(capsys.readouterr())

    contract = load_contract(file)

    expected = KafkaShareGroupSource(connection=connection, group=GROUP, topic="plain")
    assert contract.ledgers[Ledger.COMMITTED].source == expected
    assert contract.is_queue
    assert f"share groups with a state of plain: {GROUP}" in file.read_text() + reported


def test_a_cluster_without_the_topic_says_so(connected: Served, spark: SparkSession) -> None:
    """There is nothing whose columns could be known."""
    request = Request(spark, Ledger.COMMITTED, Path(), datetime.now(UTC))
    source = KafkaShareGroupSource(connection="kafka_plain", group=GROUP, topic="nowhere")

    assert kafka_share_group.read(source, request).rows is None
