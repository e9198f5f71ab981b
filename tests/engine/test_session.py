"""What a session says by itself, beside what a run tells."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tieout.engine.materialising import materialised
from tieout.engine.session import set_to, suited_to, tell_errors_once


def test_an_error_in_an_expression_is_raised_and_not_printed(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """PySpark logs the stack of Java of each; a user who mistyped a column is told so in one line."""
    tell_errors_once()

    with pytest.raises(AnalysisException, match="nothing"):
        spark.range(1).selectExpr("nothing").collect()

    assert capfd.readouterr().err == ""


def test_little_evidence_is_joined_and_grouped_where_it_lies(spark: SparkSession) -> None:
    """Of a few thousand rows each exchange, and each broadcast, costs more than the work on them."""
    with suited_to(spark, is_small=True):
        left = materialised(spark.range(9).repartition(3).withColumnRenamed("id", "key"))
        right = materialised(spark.range(9).repartition(3))

        joined = (
            left.join(right.hint("broadcast"), left["key"] == right["id"], how="left").groupBy("key").count()
        )
        plan = joined._jdf.queryExecution().executedPlan().toString()

        assert "Join" in plan
        assert "Exchange" not in plan
        assert joined.count() == 9


@pytest.mark.parametrize("partitions", ["1", "2"])
def test_much_evidence_stays_spread_out(spark: SparkSession, partitions: str) -> None:
    """The cores, and the executors, share the work, into however many partitions the session shuffles by itself."""
    with set_to(spark, {"spark.sql.shuffle.partitions": partitions}), suited_to(spark, is_small=False):
        assert materialised(spark.range(9).repartition(3)).rdd.getNumPartitions() == 3


STACKED: Final = """
from pyspark.sql import Window, functions as F
from tieout.engine.session import local_session

spark = local_session("lines")
in_line = Window.partitionBy("place").orderBy("id")
wide = F.repeat(F.md5(F.col("id").cast("string")), 8).alias("wide")
rows = spark.range(600_000).select("id", F.lit(0).alias("place"), wide)
told = rows.withColumn("before", F.lag("wide").over(in_line))
begun = F.when(F.col("before") < F.col("wide"), F.col("id"))
run = F.last(begun, ignorenulls=True).over(in_line)
print("rows:", told.withColumn("run", run).localCheckpoint().count())
"""
"""Lines up more than the heap holds, then once more by what that tells, and keeps it."""


def test_lines_longer_than_the_memory_are_lined_up_twice() -> None:
    """What one window function holds is not all there is for the next."""
    ran = subprocess.run(
        [sys.executable, "-c", STACKED],
        env=os.environ | {"SPARK_DRIVER_MEMORY": "512m", "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert ran.returncode == 0, ran.stderr[-2_000:]
    assert "rows: 600000" in ran.stdout
