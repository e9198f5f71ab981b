"""Cut points of a run: what is used many times is computed once, and its plan ends there.

A plan is a tree. A frame that later steps use five times stands in it five times over, and those steps in theirs:
without cuts, analysing the plan of a few hundred rows takes minutes. What is cut lies in the executors' memory and
disk; losing an executor fails the job, which Airflow repeats, and never changes a result.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tieout.engine.session import has_one_partition


def materialised(rows: DataFrame) -> DataFrame:
    """Return the same rows, computed now and kept, with a plan that begins here.

    Of little evidence they become one partition, and Spark knows it: later steps then need no exchange.
    """
    whole = rows.coalesce(1) if has_one_partition(rows.sparkSession) else rows
    return whole.localCheckpoint(eager=True)
