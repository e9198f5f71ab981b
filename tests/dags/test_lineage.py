"""What OpenLineage is told of a judged window, and of nothing more than can be said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.store.examples import statement

from tieout.contracts import Contract, load_contract
from tieout.model import CheckResult, CheckStatus, Severity, Verdict
from tieout.orchestration.concluding import Conclusion
from tieout.orchestration.lineage import lineage_of

pytestmark = pytest.mark.usefixtures("airflow_database")

CONTRACT = """\
version: 1
pipeline: orders
guarantee: exactly_once
group: loader
ledgers:
  produced: {source: {kind: files, format: parquet, path: [sent/*.parquet, "s3a://bucket/more"]}, coverage: declared}
  log: {source: {kind: kafka, connection: events, topic: orders}}
  delivered: {source: {kind: jdbc, connection: warehouse, table: analytics.orders}, coverage: declared}
  committed: {source: {kind: kafka_offsets, connection: unknown, group: loader}}
"""


@pytest.fixture
def contract(contracts: Path, monkeypatch: pytest.MonkeyPatch) -> Contract:
    """A contract over files, a topic and a table; one of its connections is not defined."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", "postgresql://me:geheim@db:5433/results")
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://me:geheim@house/sales")
    events = {
        "conn_type": "kafka",
        "extra": {"bootstrap.servers": "k1:9093,k2:9093", "sasl.password": "geheim"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_EVENTS", json.dumps(events))
    (contracts / "orders.yml").write_text(CONTRACT)
    return load_contract(contracts / "orders.yml")


def window_lineage(contract: Contract, verdict: Verdict) -> Any:
    """Return the lineage of a window that came to this verdict."""
    results = (
        CheckResult("lost", Severity.CRITICAL, CheckStatus.FAIL, "2", "0"),
        CheckResult("late", Severity.WARNING, CheckStatus.PASS, "0", "5"),
    )
    return lineage_of(contract, Conclusion(verdict, (), True, statement(), results))


def test_ledgers_are_inputs_and_the_store_is_the_output(contract: Contract) -> None:
    """Under OpenLineage's names; a connection that is not defined gives none."""
    found = window_lineage(contract, Verdict.BROKEN)
    assert [(one.namespace, one.name) for one in found.inputs] == [
        ("file", str(contract.base_dir / "sent/*.parquet")),
        ("s3a://bucket", "more"),
        ("kafka://k1:9093", "orders"),
        ("postgres://house:5432", "sales.analytics.orders"),
    ]
    assert [(one.namespace, one.name) for one in found.outputs] == [
        ("postgres://db:5433", "results.tieout.run")
    ]
    assert [one.inputFacets["inputStatistics"].rowCount for one in found.inputs] == [10, 10, None, 8]
    assert "geheim" not in repr(found)


@pytest.mark.parametrize(
    ("verdict", "guarantee"),
    [
        (Verdict.KEPT, [("tieout.guarantee", True, "error")]),
        (Verdict.BROKEN, [("tieout.guarantee", False, "error")]),
        (Verdict.PENDING, []),
        (Verdict.UNKNOWN, []),
    ],
)
def test_the_verdict_is_an_assertion_about_the_effects(
    contract: Contract, verdict: Verdict, guarantee: list[Any]
) -> None:
    """Absent where nothing is proved: a false assertion would be read as a broken guarantee."""
    inputs = window_lineage(contract, verdict).inputs
    assert ["dataQualityAssertions" in one.inputFacets for one in inputs] == [False, False, False, True]
    found = inputs[-1].inputFacets["dataQualityAssertions"].assertions
    assert [(one.assertion, one.success, one.severity) for one in found] == [
        *guarantee,
        ("tieout.lost", False, "error"),
        ("tieout.late", True, "warn"),
    ]


def test_reads_carry_the_assertions_where_they_are_the_effects(contracts: Path, contract: Contract) -> None:
    """A contract need not say `effects: read` to have no other ledger of effects."""
    text = CONTRACT.replace("  delivered:", "  read:")
    (contracts / "orders.yml").write_text(text.replace("exactly_once", "at_least_once"))
    inputs = window_lineage(load_contract(contracts / "orders.yml"), Verdict.KEPT).inputs
    assert ["dataQualityAssertions" in one.inputFacets for one in inputs] == [False, False, False, True]


@pytest.mark.parametrize(
    ("source", "dataset"),
    [
        (
            "{kind: pulsar, connection: pulsar, topic: orders}",
            ("pulsar://broker:8080", "persistent://public/default/orders"),
        ),
        ("{kind: pulsar, path: answers, topic: orders}", ("file", "answers")),
    ],
)
def test_a_topic_of_pulsar_is_named_by_its_broker_and_a_copy_by_its_folder(
    contracts: Path,
    contract: Contract,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    dataset: tuple[str, str],
) -> None:
    """A folder is one dataset, whatever its name has for letters."""
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR", "http://:geheim@broker")
    kafka = "{kind: kafka, connection: events, topic: orders}"
    (contracts / "orders.yml").write_text(CONTRACT.replace(kafka, source))

    found = window_lineage(load_contract(contracts / "orders.yml"), Verdict.KEPT)

    namespace, name = dataset
    expected = name if namespace != "file" else str(contract.base_dir / name)
    assert (namespace, expected) in [(one.namespace, one.name) for one in found.inputs]
    assert len(found.inputs) == 4
