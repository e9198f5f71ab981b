"""What is asked of a real cluster before Spark starts: is the evidence there, and how is the cluster set up?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.integration.kafka_topics.conftest import Served
from tests.integration.kafka_topics.sent import GROUP

from tieout.cli.main import main
from tieout.contracts import Contract, load_contract
from tieout.linting import findings
from tieout.model import Window
from tieout.readiness import incomplete_ledgers

CONTRACT = """\
version: 1
pipeline: orders
guarantee: exactly_once
group: {group}
grace: 10m
ledgers:
  produced: {{source: {{kind: kafka, connection: kafka_secured, topic: {produced}}}}}
  log: {{source: {{kind: kafka, connection: kafka_plain, topic: {log}}}}}
  delivered: {{source: {{kind: kafka, connection: kafka_plain, topic: {delivered}, isolation: {isolation}}}}}
  committed: {{source: {{kind: kafka_offsets, connection: kafka_plain, group: {group}}}}}
settings: {{producer: {{client: java-4.0, acks: all}}, broker: {{connection: {connection}, {setting}}}}}
"""


def contract(folder: Path, **fields: str) -> Contract:
    """Return the contract with these fields."""
    given = {
        "group": GROUP,
        "produced": "plain",
        "log": "orders",
        "delivered": "plain",
        "isolation": "read_committed",
        "connection": "kafka_plain",
        "setting": "client: kafka-3.9",
        **fields,
    }
    (folder / "orders.yml").write_text(CONTRACT.format(**given))
    return load_contract(folder / "orders.yml")


def late(found: Contract, ago: timedelta = timedelta(hours=2)) -> tuple[str, ...]:
    """Return what is lacking for a window of an hour that began so long ago."""
    start = datetime.now(UTC) - ago
    return incomplete_ledgers(found, Window(start, start + timedelta(hours=1)))


def test_topics_that_answer_are_ready(connected: Served, tmp_path: Path) -> None:
    """Over either connection; the log is read with its open transactions."""
    assert late(contract(tmp_path)) == ()


def test_an_open_transaction_is_waited_for_where_it_hides_what_is_needed(
    connected: Served, tmp_path: Path
) -> None:
    """The transaction began after the first window's grace, and before the end of the second's."""
    held = contract(tmp_path, delivered="orders")
    assert late(held) == ()
    (reason,) = late(held, timedelta(minutes=10))
    assert reason.startswith(
        "delivered: an open transaction hides records of orders, partition 1, from before"
    )
    assert (
        late(contract(tmp_path, delivered="orders", isolation="read_uncommitted"), timedelta(minutes=10))
        == ()
    )


def test_a_topic_that_is_not_there_and_a_broker_that_is_silent_are_waited_for(
    connected: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either may come up meanwhile."""
    assert late(contract(tmp_path, delivered="misspelt")) == ("delivered: the cluster has no topic misspelt",)
    monkeypatch.setattr("tieout.brokers.cluster.TIMEOUT_SECONDS", 2.0)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SECURED", "kafka://127.0.0.1:1")
    (reason,) = late(contract(tmp_path))
    assert reason.startswith("produced: ledgers.produced.source.connection: 127.0.0.1:1 does not answer")


def test_the_clusters_own_settings_are_held_against_the_guarantee(connected: Served, tmp_path: Path) -> None:
    """One broker keeps one copy, whatever a contract says."""
    found = {
        finding.rule: finding for finding in findings(contract(tmp_path, setting="replication.factor: 3"))
    }
    assert found["broker_one_copy"].value == "1"
    assert found["broker_one_copy"].file == "the cluster of connection kafka_plain"
    assert "the contract says 3" in found["settings_disagree"].failure
    assert found["broker_offsets_copies"].value == "1"
    assert "broker_unsaid" not in found
    assert "broker_unclean_election" not in found


def test_the_command_says_which_cluster_cannot_be_asked(
    connected: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt connection is a mistake in the contract."""
    contract(tmp_path, connection="misspelt")
    assert main(["check", str(tmp_path / "orders.yml")]) == 2
    reported = capsys.readouterr().out
    assert "broker.connection = misspelt" in reported
    assert "AIRFLOW_CONN_MISSPELT is not set" in reported
