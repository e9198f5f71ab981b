"""Windows that do not fit one task are cut into buckets by Spark: the same statement, the same breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.test_recordings import EXAMPLES

from tieout.contracts import load_contract
from tieout.engine.judging import task
from tieout.engine.judging.cutting import BUCKET, SLOTS, Cut, Tie, cut
from tieout.engine.reconciling import Reconciliation, reconcile
from tieout.engine.scope import Scope
from tieout.engine.staging import break_lines
from tieout.model import Window

NOW = datetime(2027, 1, 1, tzinfo=UTC)
FEW_ROWS = 20_000_000
"""So many bytes are said to be a row's that a few hundred rows fill a bucket."""


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[Cut | None]:
    """How windows were cut, as they are judged."""
    found: list[Cut | None] = []

    def noted(scope: Scope, given: Mapping[str, DataFrame], most_rows: int) -> Cut | None:
        found.append(cut(scope, given, most_rows))
        return found[-1]

    monkeypatch.setattr(task, "cut", noted)
    return found


def _judged(spark: SparkSession, example: str) -> Reconciliation:
    truth: dict[str, Any] = json.loads((EXAMPLES / example / "truth.json").read_text())
    start, end = (datetime.fromisoformat(truth["window"][bound]) for bound in ("start", "end"))
    judged = load_contract(EXAMPLES / example / "contract.yml")
    return reconcile(spark, judged, Window(start, end), run_id="recording", now=NOW)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("example", "is_cut"),
    [("commit_before_process", True), ("retry_without_idempotence", True), ("clean_transactional", False)],
)
def test_several_buckets_give_the_bytes_of_one(
    example: str, is_cut: bool, spark: SparkSession, cuts: list[Cut | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statement and breaks, with their ids and rows; transactions over all partitions hold a recording together."""
    one = _judged(spark, example)
    assert cuts == []

    monkeypatch.setattr(task, "BYTES_OF_ROW", FEW_ROWS)
    several = _judged(spark, example)

    assert any(found is not None for found in cuts) == is_cut
    assert several.statement == one.statement
    assert [*break_lines(several.breaks)] == [*break_lines(one.breaks)]


def _placed(spark: SparkSession, rows: list[tuple[str | None, int | None, str | None]]) -> DataFrame:
    return spark.createDataFrame(rows, "topic string, partition int, message_id string")


def test_rows_without_a_partition_go_where_their_id_is(spark: SparkSession) -> None:
    """Those of an id that no partition has go to the bucket of its hash, all of them together."""
    ties = {"evidence_delivered": [Tie("id", ("message_id",))]}
    hashed = F.xxhash64(F.lit("id"), F.lit("a"))
    tied = spark.range(1).select(hashed.alias("tie"), F.lit(1 << 5).cast("bigint").alias("mask"))
    found = Cut(3, tuple(2 if slot == 5 else 0 for slot in range(SLOTS)), ties, tied)
    rows = _placed(spark, [(None, None, "a"), ("t", None, "a"), (None, None, "b"), ("t", None, "b")])

    buckets = {
        (row["topic"], row["message_id"]): row[BUCKET]
        for row in found.of("evidence_delivered", rows).collect()
    }

    assert buckets[None, "a"] == buckets["t", "a"] == 2
    assert buckets[None, "b"] == buckets["t", "b"]


def test_what_is_only_looked_up_goes_to_every_bucket(spark: SparkSession) -> None:
    """Once to each."""
    rows = spark.range(2)
    found = Cut(3, (0,) * SLOTS, {}, None).of("evidence_assigned", rows).collect()
    assert sorted((row["id"], row[BUCKET]) for row in found) == [
        (one, bucket) for one in (0, 1) for bucket in (0, 1, 2)
    ]
