"""Whether a Pulsar topic can be read, looked at before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pulsar import served

from tieout.contracts import LedgerSpec, PulsarCursorSource, PulsarSource
from tieout.model import Ledger
from tieout.readiness.files import missing_input
from tieout.readiness.pulsar import pulsar_lag


def _lag(topic: str = "orders") -> list[str]:
    source = {"kind": "pulsar_cursor", "connection": "pulsar", "topic": topic, "subscription": "loader"}
    return list(pulsar_lag(LedgerSpec.model_validate({"source": source}), Ledger.COMMITTED))


def test_a_topic_and_its_broker_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the broker answers and has the topic; what is described wrongly is the job's to say."""
    with served() as (address, _):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        assert _lag() == []
        assert _lag("nowhere") == ["the cluster has no topic public/default/nowhere"]
    assert "does not answer: Connection refused" in _lag()[0]
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR", "postgresql://server/database")
    assert _lag() == []


def test_a_copy_is_waited_for(tmp_path: Path) -> None:
    """Its folder is not enough; where there is a connection nothing is looked for on disk."""
    source = PulsarSource(path="answers", topic="orders")
    (tmp_path / "answers").mkdir()

    assert list(missing_input(source, tmp_path)) == ["no file at answers"]
    assert not list(missing_input(PulsarCursorSource(connection="p", topic="o", subscription="s"), tmp_path))

    (tmp_path / "answers" / "internalStats").touch()
    assert not list(missing_input(source, tmp_path))
