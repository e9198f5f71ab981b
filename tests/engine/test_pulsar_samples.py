"""A Pulsar topic and a subscription, found by `tieout init` in a broker's answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pulsar import served

from tieout.cli.starting import drafted
from tieout.contracts import PulsarCursorSource, PulsarSource, load_contract
from tieout.engine.sampling import needs_spark, sample
from tieout.errors import SourceError
from tieout.model import Guarantee, Ledger


def test_a_topic_and_a_subscription_become_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are the fields of the values' JSON; Spark is not needed, and nothing is left to say of coverage."""
    (tmp_path / "out.jsonl").write_text('{"order_id": "m-1", "processed_at": "2026-11-26T21:21:13Z"}\n')
    sources = {
        Ledger.PRODUCED: "pulsar:pulsar:parts",
        Ledger.LOG: "pulsar:pulsar:persistent://public/default/parts",
        Ledger.DELIVERED: str(tmp_path / "out.jsonl"),
        Ledger.COMMITTED: "pulsar:pulsar:persistent://public/default/orders:loader",
    }
    with served() as (address, requested):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        made = drafted("orders", Guarantee.AT_LEAST_ONCE, "loader", sources, tmp_path)
        assert not any(needs_spark(text) for text in sources.values())
    (tmp_path / "orders.yml").write_text(made.text)
    ledgers = load_contract(tmp_path / "orders.yml").ledgers

    assert requested
    assert ledgers[Ledger.PRODUCED].source == PulsarSource(connection="pulsar", topic="parts")
    assert ledgers[Ledger.LOG].columns["message_id"] == "get_json_object(string(value), '$.order_id')"
    name = "persistent://public/default/orders"
    assert ledgers[Ledger.COMMITTED].source == PulsarCursorSource(
        connection="pulsar", topic=name, subscription="loader"
    )
    assert not any(question.startswith(("log:", "committed:")) for question in made.open_questions)


@pytest.mark.parametrize(
    ("text", "ledger", "said"),
    [
        ("pulsar:pulsar", Ledger.LOG, "expected pulsar:CONNECTION:TOPIC, such as"),
        ("pulsar:pulsar:default/orders", Ledger.LOG, "expected pulsar:CONNECTION:TOPIC, such as"),
        ("pulsar:pulsar:nowhere", Ledger.LOG, "has no topic public/default/nowhere"),
        ("pulsar:pulsar:orders", Ledger.COMMITTED, "expected pulsar:CONNECTION:TOPIC:SUBSCRIPTION"),
        (
            "pulsar:pulsar:orders:loafer",
            Ledger.COMMITTED,
            "expected a subscription of the topic, found loader",
        ),
    ],
)
def test_what_is_not_there_is_named(
    text: str, ledger: Ledger, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is."""
    with served() as (address, _):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        with pytest.raises(SourceError, match=said):
            sample(text, "--source", ledger)
