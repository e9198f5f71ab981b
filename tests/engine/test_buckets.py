"""Windows that do not fit one task are cut into buckets by Spark: the same statement, the same breaks."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.judging.cutting import BUCKET, SLOTS, Cut, Tie


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
