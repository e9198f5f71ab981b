"""A broker of Pulsar that runs again on what it left, asked over its REST interface as a connection leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.integration.systems import pulsar
from tests.integration.systems.pulsar.broker import Broker

from tieout.contracts import PulsarCursorSource, PulsarSource
from tieout.engine.sources.pulsar import read
from tieout.engine.sources.pulsar_cursor import read as read_cursor
from tieout.engine.sources.source import Request
from tieout.model import Ledger

pytestmark = pytest.mark.timeout(1_800)
_PLAY = "pulsar-sent-again"


@pytest.fixture
def address(played: Path, tmp_path: Path) -> Iterator[str]:
    """The web service of the play's broker, which was killed and is started again for as long as the test runs."""
    with ExitStack() as stack:
        broker = Broker.again(pulsar.engine(tmp_path), played / _PLAY / "broker", stack)
        broker.start()
        yield f"http://127.0.0.1:{broker.web}"


@pytest.mark.parametrize("play", [_PLAY])
def test_a_running_broker_says_what_its_copy_says(
    play: str,
    played: Path,
    truth: dict[str, Any],
    address: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had loaded nothing when it was asked: each entry is as it was.

    Its cursor is somewhere in the topic: an acknowledgement that the broker had not written down yet is forgotten.
    """
    assert play not in truth["failures"], truth["failures"].get(play)
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
    topic, answers = f"public/default/{play}", str(played / play / "evidence" / "copy-1" / "answers")

    def log(**source: str) -> Any:
        request = Request(spark, Ledger.LOG, played, datetime.now(UTC))
        return read(PulsarSource.model_validate({"topic": topic, **source}), request)

    def cursor(**source: str) -> Any:
        request = Request(spark, Ledger.COMMITTED, played, datetime.now(UTC), group="loader")
        named = {"topic": topic, "subscription": "loader", **source}
        return read_cursor(PulsarCursorSource.model_validate(named), request)

    requested, copied = log(connection="pulsar"), log(path=answers)
    columns = ("offset", "position", "value", "producer_name", "sequence_id", "transaction_state")
    assert _rows(requested.rows, *columns) == _rows(copied.rows, *columns)
    assert len(_rows(requested.rows, "offset")) == 10
    assert (requested.digests, requested.notes) == (copied.digests, ())
    found = cursor(connection="pulsar").rows
    prefix, *beyond = _rows(found, "is_individual", "committed_offset", "first_offset")
    ((start, end),) = set(_rows(requested.rows, "log_start_offset", "end_offset"))
    assert (prefix[0], prefix[2]) == (False, None)
    assert start <= prefix[1] <= end
    assert all(start < row[2] < row[1] <= end for row in beyond)


def _rows(rows: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.select(*columns).collect())
