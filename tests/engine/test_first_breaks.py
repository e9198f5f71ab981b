"""Where there are more breaks than are kept, those that are kept are the first of them in their order."""

from __future__ import annotations

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tieout.engine.staging import break_lines


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 59, 60])
def test_the_first_are_the_same_whether_all_are_sorted_or_not(spark: SparkSession, limit: int) -> None:
    """Also where what they are ordered by is null, or the same."""

    def cut(size: int) -> Column:
        return F.pmod(F.col("id"), F.lit(size))

    breaks = spark.range(60).select(
        F.when(cut(3) > 0, F.concat(F.lit("LOST"), cut(3))).alias("class"),
        F.when(cut(4) > 0, F.lit("orders")).alias("topic"),
        F.when(cut(5) > 0, cut(2).cast("int")).alias("partition"),
        F.when(cut(7) > 0, cut(10)).alias("offset"),
        F.concat(F.lit("id "), F.col("id")).alias("break_id"),
        F.lit("message").alias("kind"),
    )

    first = list(break_lines(breaks, limit, is_truncated=True))

    assert first == list(break_lines(breaks))[:limit]
    assert len(first) == limit


def test_fewer_breaks_than_are_kept_are_all_there(spark: SparkSession) -> None:
    """Nothing is left out where the limit is beyond the last."""
    breaks = spark.range(3).select(
        *[
            F.lit(None).cast(kind).alias(name)
            for name, kind in {"class": "string", "topic": "string"}.items()
        ],
        F.lit(0).alias("partition"),
        F.col("id").alias("offset"),
        F.col("id").cast("string").alias("break_id"),
    )

    assert [line["offset"] for line in break_lines(breaks, 5, is_truncated=True)] == [0, 1, 2]
