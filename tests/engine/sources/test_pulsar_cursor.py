"""What a Pulsar subscription has acknowledged, as the ledger `committed`."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW
from tests.pulsar import ANSWERS, served

from tieout.contracts import PulsarCursorSource
from tieout.engine.sources.pulsar_cursor import read
from tieout.engine.sources.source import Reading, Request
from tieout.engine.systems.pulsar_positions import packed
from tieout.errors import SourceError
from tieout.model import Ledger


def _read(spark: SparkSession, ledger: Ledger = Ledger.COMMITTED, **source: str) -> Reading:
    spec = PulsarCursorSource.model_validate({"topic": "orders", "subscription": "loader", **source})
    return read(spec, Request(spark, ledger, ANSWERS.parent, NOW, group="loader"))


def _rows(reading: Reading) -> list[tuple[object, ...]]:
    assert reading.rows is not None
    columns = ("consumer_group", "topic", "partition", "first_offset", "committed_offset", "is_individual")
    return [
        tuple(row[name] for name in (*columns, "committed_at", "metadata")) for row in reading.rows.collect()
    ]


_RANGE = '{{"individuallyDeletedMessages": "{}"}}'
_ACKNOWLEDGED = [
    ("loader", "orders", 0, None, packed(5, 1), False, None, '{"markDeletePosition": "5:0"}'),
    ("loader", "orders", 0, packed(5, 2), packed(5, 4), True, None, _RANGE.format("(5:1..5:3]")),
    ("loader", "orders", 0, packed(5, 5), packed(5, 6), True, None, _RANGE.format("(5:4..5:5]")),
]


def test_all_up_to_the_mark_delete_position_is_acknowledged_and_single_entries_beyond(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says when; the statistics were told once the broker had answered."""
    with served() as (address, requested):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        found = _read(spark, connection="pulsar")

    assert _rows(found) == _ACKNOWLEDGED
    assert len(requested) == 2
    assert found.complete_until == NOW
    assert found.taken_at is not None
    assert found.taken_at > NOW


def test_a_copy_is_of_the_time_it_was_taken(spark: SparkSession) -> None:
    """Without one it says neither when nor until when."""
    undated = _read(spark, path=ANSWERS.name)
    dated = _read(spark, path=ANSWERS.name, taken_at="2026-11-20T11:30:00Z")

    assert _rows(undated) == _rows(dated) == _ACKNOWLEDGED
    assert (undated.taken_at, undated.complete_until) == (None, None)
    assert dated.taken_at == dated.complete_until != NOW
    assert undated.digests == dated.digests


def test_a_subscription_that_is_not_there_has_acknowledged_nothing(spark: SparkSession) -> None:
    """The others are named."""
    found = _read(spark, path=ANSWERS.name, subscription="loafer")

    assert _rows(found) == []
    assert found.notes == ("persistent/public/default/orders: no subscription loafer, found loader",)


def test_a_partition_without_statistics_keeps_the_ledger_from_covering(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its acknowledgements would be missing; a topic that is not there is absent."""

    def forget(handler: BaseHTTPRequestHandler, path: str) -> bool:
        if path != "persistent/public/default/parts-partition-1/internalStats":
            return False
        handler.send_response(404)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    with served(forget) as (address, _):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        found = _read(spark, connection="pulsar", topic="parts")

    assert found.unparsed_inputs == 1
    assert "persistent/public/default/parts-partition-1: the broker says nothing of it" in found.notes
    assert not _read(spark, path="nowhere").is_present


def test_a_cursor_is_evidence_of_positions_only(spark: SparkSession) -> None:
    """No message is in it."""
    with pytest.raises(SourceError, match="pulsar_cursor is evidence for committed and mirrored only"):
        _read(spark, Ledger.DELIVERED, path=ANSWERS.name)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({}, "expected either connection or path, found neither"),
        ({"connection": "pulsar", "path": "answers"}, "found both"),
        ({"connection": "pulsar", "taken_at": "now"}, "expected none with a connection"),
        (
            {"path": "answers", "topic": "non-persistent://public/default/orders"},
            "expected a persistent topic",
        ),
        ({"path": "answers", "topic": "default/orders"}, "expected a topic such as"),
    ],
)
def test_a_source_that_cannot_be_asked_is_refused(source: dict[str, str], said: str) -> None:
    """When the contract is read."""
    with pytest.raises(ValueError, match=said):
        PulsarCursorSource.model_validate({"topic": "orders", "subscription": "loader", **source})


def test_the_topic_is_found_by_each_of_its_names() -> None:
    """Tenant and namespace are public/default where a name has none."""
    names = ("orders", "public/default/orders", "persistent://public/default/orders")
    specs = [PulsarCursorSource(path="answers", subscription="loader", topic=name) for name in names]

    assert {spec.topic_path for spec in specs} == {"public/default/orders"}
