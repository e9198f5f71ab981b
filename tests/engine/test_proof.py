"""A break that stands by itself is proved by clean rows at its positions, too: the oldest of each ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, Row, SparkSession
from tests.engine.histories import load_case
from tests.engine.judging import scope_of

from tieout.engine.clean import Clean, Sums
from tieout.engine.ledger import SCHEMAS
from tieout.engine.scope import Scope
from tieout.engine.statement.proof import ROWS_PER_LEDGER, evidence_type, with_clean_proof
from tieout.model import Ledger

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
LEDGERS = (Ledger.PRODUCED, Ledger.DELIVERED)
BREAKS = (
    "break_id string, positions array<struct<topic:string,partition:int,offset:bigint>>, "
    f"evidence {evidence_type(LEDGERS)}"
)
CASE = load_case(
    "proof",
    {
        "name": "clean proof",
        "because": "its rows stand in for a window's",
        "ledgers": {
            "produced": [{"id": "a", "at": "1m", "pos": "0/1"}],
            "delivered": [{"id": "a", "at": "2m", "pos": "0/1"}],
        },
        "expect": {},
    },
)


def _rows(spark: SparkSession, ledger: Ledger, offsets: list[tuple[int, datetime | None]]) -> DataFrame:
    time = {Ledger.PRODUCED: "attempted_at", Ledger.DELIVERED: "processed_at"}[ledger]
    values = [{"topic": "t", "partition": 0, "offset": offset, time: at} for offset, at in offsets]
    return spark.createDataFrame(
        [tuple(row.get(name) for name in SCHEMAS[ledger].names) for row in values], SCHEMAS[ledger]
    )


def _scope(spark: SparkSession) -> Scope:
    """Return a scope with one clean send, and more clean effects at its position than are kept, one without a time."""
    sent: list[tuple[int, datetime | None]] = [(7, START), (8, START)]
    effects = [(7, START - timedelta(seconds=n) if n else None) for n in range(ROWS_PER_LEDGER + 5)]
    rows = {
        Ledger.PRODUCED: _rows(spark, Ledger.PRODUCED, sent),
        Ledger.DELIVERED: _rows(spark, Ledger.DELIVERED, effects),
    }
    nothing = spark.range(0)
    return replace(
        scope_of(spark, CASE, CASE.rows, CASE.present), clean=Clean(Sums(nothing, nothing, 1), rows, {}, {})
    )


def _proved(spark: SparkSession) -> Row:
    at = [("t", 0, 7)]
    left = [
        tuple(
            None if name != "processed_at" else START - timedelta(hours=1)
            for name in SCHEMAS[Ledger.DELIVERED].names
        )
    ]
    breaks = spark.createDataFrame([("1", at, (None, left, None, None))], BREAKS)
    found: Row = with_clean_proof(_scope(spark), breaks).collect()[0]["evidence"]
    return found


def test_what_lies_at_its_positions_proves_a_break_that_stands_by_itself(spark: SparkSession) -> None:
    """The rows that were judged and clean ones together, the oldest first and those without a time last."""
    evidence = _proved(spark)

    assert [row["offset"] for row in evidence["produced"]] == [7]
    seconds = [(row["processed_at"].astimezone(UTC) - START).total_seconds() for row in evidence["delivered"]]
    assert seconds[0] == -3600
    assert seconds[1:] == [float(n) for n in range(-ROWS_PER_LEDGER - 4, -5)]
