"""A break is proved by the rows of its message, or at its positions: of each ledger the oldest, at most twenty."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tieout.engine import proof
from tieout.engine.classes.standing import COMMIT_ROWS
from tieout.engine.proof import ROWS_PER_LEDGER, with_rows_at_positions, with_rows_of_messages
from tieout.model import Ledger

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
POSITIONS = "array<struct<topic:string,partition:int,offset:bigint>>"
BREAKS = f"break_id string, key string, positions {POSITIONS}, commit_rows {COMMIT_ROWS}, mirrored_rows {COMMIT_ROWS}"
PLACED = "key string, topic string, partition int, offset long"
MANY = ROWS_PER_LEDGER + 5


@pytest.fixture(params=[100_000, 0], ids=["few breaks", "many breaks"], autouse=True)
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "FEW_ROWS", request.param)


def _ledgers(spark: SparkSession) -> dict[Ledger, DataFrame]:
    """Return one send and one record of a message, and more of its effects than are kept, the first without a time."""
    sent = [("m:a", "t", 0, 7, START), ("m:b", "t", 0, 8, START)]
    effects = [
        ("m:a", "t", 0, 7, START + timedelta(seconds=-number) if number else None) for number in range(MANY)
    ]
    return {
        Ledger.PRODUCED: spark.createDataFrame(sent, f"{PLACED}, attempted_at timestamp"),
        Ledger.DELIVERED: spark.createDataFrame(effects, f"{PLACED}, processed_at timestamp"),
        Ledger.READ: spark.createDataFrame([], f"{PLACED}, processed_at timestamp"),
    }


def _evidence(proved: DataFrame) -> dict[str, Row]:
    return {row["break_id"]: row["evidence"] for row in proved.collect()}


def _seconds(rows: list[Row]) -> list[float]:
    times = [row["processed_at"].astimezone(UTC) for row in rows]
    return [(time - START).total_seconds() for time in times]


def test_a_message_is_proved_by_its_oldest_rows(spark: SparkSession) -> None:
    """Rows without a time come last, those of other messages never; a ledger without any has none."""
    breaks = spark.createDataFrame([("1", "m:a", [], None, None), ("2", "m:c", [], None, None)], BREAKS)

    evidence = _evidence(with_rows_of_messages(breaks, _ledgers(spark)))

    assert [row["offset"] for row in evidence["1"]["produced"]] == [7]
    oldest = [float(second) for second in range(1 - MANY, 1 - MANY + ROWS_PER_LEDGER)]
    assert _seconds(evidence["1"]["delivered"]) == oldest
    assert "key" not in evidence["1"]["delivered"][0].asDict()
    assert evidence["1"]["read"] is None
    assert list(evidence["2"]) == [None] * 5


def test_any_other_break_is_proved_by_what_lies_at_its_positions(spark: SparkSession) -> None:
    """Two breaks at one position have the same rows, and one of positions has their rows."""
    at, commits, mirrored = [("t", 0, 8)], [("t", 0, 3, 9, START, "x")], [("t", 0, None, 10, START, None)]
    rows = [("1", None, at, commits, mirrored), ("2", None, [*at, ("t", 0, 7)], None, None)]
    breaks = spark.createDataFrame(rows, BREAKS)

    evidence = _evidence(with_rows_at_positions(breaks, _ledgers(spark)))

    assert [row["offset"] for row in evidence["1"]["produced"]] == [8]
    assert sorted(row["offset"] for row in evidence["2"]["produced"]) == [7, 8]
    assert evidence["1"]["delivered"] is None
    assert len(evidence["2"]["delivered"]) == ROWS_PER_LEDGER
    assert [row["committed_offset"] for row in evidence["1"]["committed"]] == [9]
    assert [row["committed_offset"] for row in evidence["1"]["mirrored"]] == [10]
    assert evidence["2"]["committed"] is evidence["2"]["mirrored"] is None


def test_rows_without_a_position_prove_no_position(spark: SparkSession) -> None:
    """A row of an unknown position is not at a break's unknown position."""
    breaks = spark.createDataFrame([("1", None, [("t", 0, None)], None, None)], BREAKS)
    keyed = {
        ledger: rows.withColumn("offset", F.lit(None).cast("bigint"))
        for ledger, rows in _ledgers(spark).items()
    }

    assert list(_evidence(with_rows_at_positions(breaks, keyed))["1"]) == [None] * 5
