"""Times and coverage that lie after the reading: what a row or a word about the future does to a verdict."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import START, WINDOW

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile

CONTRACT = """
version: 1
pipeline: future
guarantee: at_least_once
group: loader
max_latency: 5m
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    columns: {{message_id: id, attempted_at: at, outcome: "'acked'"}}
    coverage: {coverage}
  delivered:
    source: {{kind: files, format: jsonl, path: out.jsonl}}
    columns: {{message_id: id, processed_at: at, outcome: "'ok'"}}
    coverage: {coverage}
"""
LATER = WINDOW.end + timedelta(days=10)
AT = f"{START + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"


def _statement(
    spark: SparkSession,
    folder: Path,
    sent: list[dict[str, Any]],
    out: list[dict[str, Any]],
    *,
    coverage: str = "declared",
    now: datetime = LATER,
) -> dict[str, Any]:
    for name, rows in (("sent", sent), ("out", out)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "contract.yml").write_text(CONTRACT.format(coverage=coverage))
    return reconcile(spark, load_contract(folder / "contract.yml"), WINDOW, run_id="r", now=now).statement


@pytest.mark.parametrize(
    ("sent", "out", "ledger", "expected"),
    [
        ({"at": 20261120100001}, {}, "produced", "1 rows with attempted_at or completed_at more than a day"),
        ({"at": "2099-12-31T23:59:59Z"}, {}, "produced", "1 rows with attempted_at or completed_at more"),
        (
            {"completed_at": "9999-12-31T23:59:59Z"},
            {},
            "produced",
            "1 rows with attempted_at or completed_at",
        ),
        ({}, {"at": "2099-12-31T23:59:59Z"}, "delivered", "1 rows with processed_at more than a day after"),
    ],
    ids=["digits of a calendar", "a wrong clock", "a placeholder", "an effect"],
)
def test_row_of_a_time_that_cannot_have_been_uncovers(
    spark: SparkSession, tmp_path: Path, sent: dict[str, Any], out: dict[str, Any], ledger: str, expected: str
) -> None:
    """Such a row may be one of the window, or its answer may have come there: nobody can tell, so UNKNOWN."""
    ok = {"id": "a", "at": AT}
    found = _statement(
        spark, tmp_path, [ok, {"id": "b", "at": AT, **sent}], [ok, {"id": "b", "at": AT, **out}]
    )

    assert found["verdict"] == "UNKNOWN"
    assert found["coverage"][ledger]["gap"].startswith(expected)


def test_row_of_tomorrow_is_of_another_window(spark: SparkSession, tmp_path: Path) -> None:
    """A clock that runs ahead by less than a day says nothing against the ledger."""
    ahead = {"id": "b", "at": f"{LATER + timedelta(hours=23):%Y-%m-%dT%H:%M:%SZ}"}
    found = _statement(spark, tmp_path, [{"id": "a", "at": AT}, ahead], [{"id": "a", "at": AT}])

    assert found["verdict"] == "KEPT"


@pytest.mark.parametrize(
    ("coverage", "now"),
    [
        ("{complete_until: 2099-01-01T00:00:00Z}", START + timedelta(minutes=2)),
        ("{complete_until: now() + interval 1 year}", START + timedelta(minutes=2)),
        ("{watermark_file: done.txt}", START + timedelta(minutes=2)),
        ("declared", WINDOW.end + timedelta(seconds=30)),
    ],
    ids=["a time", "an expression", "a watermark file", "declared, in the grace"],
)
def test_nothing_is_complete_beyond_its_reading(
    spark: SparkSession, tmp_path: Path, coverage: str, now: datetime
) -> None:
    """A message that is a minute old is not lost: a word about the future counts until the reading, with a note."""
    (tmp_path / "done.txt").write_text("2099-01-01T00:00:00Z")
    sent = {"id": "a", "at": f"{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"}

    found = _statement(spark, tmp_path, [sent], [], coverage=coverage, now=now)

    assert found["verdict"] == "UNKNOWN"
    assert found["classes"] == {"UNVERIFIABLE": 1}
    read_at = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    assert found["coverage"]["delivered"]["complete_until"] == read_at
    assert f"but read at {read_at}: counts until then" in found["coverage"]["delivered"]["notes"][-1]
