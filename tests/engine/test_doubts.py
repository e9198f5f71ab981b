"""Contracts that do not fit their evidence: what they lead to is neither KEPT nor BROKEN."""

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
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    columns: {{message_id: id, attempted_at: at, outcome: "'acked'"}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: {path}}}
    columns: {{message_id: id, processed_at: at{more}}}
    coverage: declared
"""
_WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))


@pytest.mark.parametrize(
    ("path", "more", "verdict", "gap"),
    [
        ("out.jsonl", "", "BROKEN", None),
        (
            '"*.jsonl"',
            "",
            "UNKNOWN",
            "sent.jsonl is a file of produced as well, so that each send in it counts",
        ),
        (
            "out.jsonl",
            ", consumer_group: team",
            "UNKNOWN",
            "no row is of the group, and 'Loader' and 'loader'",
        ),
    ],
    ids=["fits", "sends as effects", "group misspelled"],
)
def test_a_contract_that_does_not_fit_proves_nothing(
    spark: SparkSession, tmp_path: Path, path: str, more: str, verdict: str, gap: str | None
) -> None:
    """One of three messages is lost, which the sends among the effects would hide."""
    _write(tmp_path / "sent.jsonl", range(3), second=0)
    _write(tmp_path / "out.jsonl", range(2), second=5)
    (tmp_path / "orders.yml").write_text(_CONTRACT.format(path=path, more=more))

    contract = load_contract(tmp_path / "orders.yml")
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    found = reconcile(spark, contract, _WINDOW, run_id="r", now=now).statement

    assert found["verdict"] == verdict
    assert (found["coverage"]["delivered"]["gap"] or "").startswith(gap or "")
    assert found["coverage"]["delivered"]["covers"] is (gap is None)


def _write(path: Path, numbers: range, *, second: int) -> None:
    rows = [{"id": f"m{n}", "at": f"2026-11-20T10:0{n}:0{second}Z", "team": "Loader"} for n in numbers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
