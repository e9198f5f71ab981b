"""Where there are more breaks than are kept, those that are kept are the first of them in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.session import set_to
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


MOST: Final = "2m"
"""So much the driver takes of one job's results: enough for what is kept, too little for what each task has of it."""
_TASKS: Final = {"spark.sql.shuffle.partitions": "40", "spark.sql.adaptive.enabled": "false"}


@pytest.fixture
def narrow_driver(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with a driver that takes little, and as many tasks as many breaks have."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", MOST)
    try:
        with set_to(spark, _TASKS):
            yield spark
    finally:
        conf.set("spark.driver.maxResultSize", before)


def many_breaks(spark: SparkSession) -> DataFrame:
    """Return 40,000 breaks in 40 partitions."""
    words = {
        "class": "LOST",
        "topic": "orders",
        "locus": "consumer",
        "cause": "unknown",
        "severity": "critical",
    }
    return spark.range(0, 40_000, numPartitions=40).select(
        *[F.lit(value).alias(name) for name, value in words.items()],
        (F.col("id") % 8).cast("int").alias("partition"),
        F.col("id").alias("offset"),
        F.md5(F.col("id").cast("string")).alias("break_id"),
    )


def test_the_driver_is_told_of_no_more_breaks_than_are_kept(narrow_driver: SparkSession) -> None:
    """However many tasks have as many each."""
    first = list(break_lines(many_breaks(narrow_driver), 2_000, is_truncated=True))

    assert [line["offset"] for line in first] == list(range(0, 16_000, 8))
