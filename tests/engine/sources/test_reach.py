"""How far before a window a ledger is read: `reach` of the contract."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, jsonl

from tieout.engine.reading import open_ledgers
from tieout.model import Ledger

BEGINS_AT = WINDOW.start - timedelta(hours=2)
MICROSECOND = timedelta(microseconds=1)
TIMES = {
    "older": BEGINS_AT - MICROSECOND,
    "first": BEGINS_AT,
    "within": WINDOW.start,
    "undated": None,
    "unset": datetime(1970, 1, 21, tzinfo=UTC),
}


@pytest.mark.parametrize(
    "columns",
    [{"message_id": "id", "attempted_at": "sent"}, {"message_id": "id", "attempted_at": "timestamp(sent)"}],
    ids=["a column", "an expression"],
)
def test_rows_that_are_older_are_left_out(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str]
) -> None:
    """To the microsecond; what has no time, or an unset clock's, stays: it keeps the ledger from covering."""
    rows = [{"id": name, "sent": time and time.isoformat()} for name, time in TIMES.items()]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    found = evidence_of(
        spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns, reach="2h", coverage="declared"
    )

    assert {row["message_id"] for row in found.rows.collect()} == {"first", "within", "undated", "unset"}
    assert (found.coverage.rows, found.coverage.undated, found.coverage.unset) == (4, 1, 1)
    assert found.coverage.covers_from == WINDOW.start - timedelta(minutes=15)  # what is declared begins later


def test_a_ledger_covers_from_where_it_was_read(spark: SparkSession, tmp_path: Path) -> None:
    """A ledger that is complete from the beginning is known from its reach on; a later `complete_from` stays."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"message_id": "a", "attempted_at": "2026-11-20T10:05:00Z"}))
    coverage = {"complete_until": "now()"}
    later = coverage | {"complete_from": "2026-11-20T09:30:00Z"}

    reached, stated, whole = (
        evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), **spec).coverage.covers_from
        for spec in (
            {"coverage": coverage, "reach": "2h"},
            {"coverage": later, "reach": "2h"},
            {"coverage": later},
        )
    )

    assert reached == BEGINS_AT
    assert stated == whole == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def test_the_time_reaches_files_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet skips what is older by its own statistics."""
    sent = spark.createDataFrame(list(TIMES.items()), "message_id string, attempted_at timestamp")
    sent.write.parquet(str(tmp_path / "sent"))
    source = {"kind": "files", "format": "parquet", "path": "sent"}
    contract = contract_of(tmp_path, {"produced": {"source": source, "reach": "2h"}})

    opened = open_ledgers(spark, contract, WINDOW, NOW)[Ledger.PRODUCED]

    assert opened.found is not None
    plan = opened.found.rows._jdf.queryExecution().toString()
    assert "PushedFilters: [Or(Or(IsNull(attempted_at)" in plan
    assert {row["message_id"] for row in opened.kept().rows.collect()} == {
        "first",
        "within",
        "undated",
        "unset",
    }
