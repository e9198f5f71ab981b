"""The question whether an id stands elsewhere, put to hashes alone."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from pyspark.sql import SparkSession

from tieout.engine.prematch.remainder import SHARE, repeated


@pytest.mark.parametrize(
    "count", [0, 200 * SHARE], ids=["few lists", "more lists than Spark hashes by itself"]
)
def test_hashes_that_stand_more_than_once_are_found(spark: SparkSession, count: int) -> None:
    """Each is told once, however often it stands; negative ones, zero and the widest too."""
    draw = Random(5)  # noqa: S311
    hashes = [0, 0, -1, -1, -1, -(2**63), 2**63 - 1, *(draw.randint(-3000, 3000) for _ in range(4000))]
    rows = spark.createDataFrame([(value,) for value in hashes], "hash long").repartition(3)
    found = [row["hash"] for row in repeated(rows, count).collect()]
    assert sorted(found) == sorted(value for value, times in Counter(hashes).items() if times > 1)


def test_hashes_that_stand_once_each_are_none(spark: SparkSession) -> None:
    """The usual window ends here, without looking at any row again."""
    assert repeated(spark.range(-500, 500).withColumnRenamed("id", "hash"), 1000).isEmpty()
