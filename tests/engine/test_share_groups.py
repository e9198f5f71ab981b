"""A share group judged on the table that Kafka's tool prints of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.model import Window

_CONTRACT = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
{consumption}
max_latency: 1m
grace: 5m
margin: 1m
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: produced.jsonl}}
    coverage: {{complete_until: 2026-11-27T03:10:00Z}}
  delivered:
    source: {{kind: files, format: jsonl, path: delivered.jsonl}}
    coverage: {{complete_until: 2026-11-27T03:10:00Z}}
  committed: {{source: {{kind: kafka_consumer_groups, path: group.txt, taken_at: 2026-11-27T03:00:00Z}}}}
"""
_TABLE = """
GROUP           TOPIC           PARTITION  START-OFFSET  LAG
loader          orders          0          6             4
"""
_WINDOW = Window(datetime(2026, 11, 27, 2, tzinfo=UTC), datetime(2026, 11, 27, 2, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("consumption", "verdict", "unconfirmed"),
    [("consumption: queue\nredelivery: 30s", "BROKEN", 0), ("consumption: log", "UNKNOWN", 2)],
    ids=["queue", "log"],
)
def test_what_a_share_group_gave_up_is_lost_and_what_it_still_has_is_in_flight(
    spark: SparkSession, tmp_path: Path, consumption: str, verdict: str, unconfirmed: int
) -> None:
    """Ten records, four processed, two rejected: the real tool's table says 6. Read as a log nothing is confirmed."""
    (tmp_path / "orders.yml").write_text(_CONTRACT.format(consumption=consumption))
    (tmp_path / "group.txt").write_text(_TABLE)
    _write(tmp_path / "produced.jsonl", range(10), attempted_at="2026-11-27T02:10:00Z", outcome="acked")
    _write(tmp_path / "delivered.jsonl", range(4), processed_at="2026-11-27T02:10:01Z")

    contract = load_contract(tmp_path / "orders.yml")
    found = reconcile(
        spark, contract, _WINDOW, run_id="r", now=datetime(2026, 11, 27, 3, 10, tzinfo=UTC)
    ).statement

    assert found["verdict"] == verdict
    assert found["classes"]["LOST"] == 2
    assert found["unconfirmed"].get("LOST", 0) == unconfirmed
    assert found["partitions"][0]["in_flight"] == 4
    assert found["coverage"]["committed"]["is_share_group"]


def _write(path: Path, numbers: range, **more: str) -> None:
    rows = [{"message_id": f"m{n}", "topic": "orders", "partition": 0, "offset": n, **more} for n in numbers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
