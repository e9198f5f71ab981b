"""What a session says by itself, beside what a run tells."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tieout.engine.session import tell_errors_once


def test_an_error_in_an_expression_is_raised_and_not_printed(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """PySpark logs the stack of Java of each; a user who mistyped a column is told so in one line."""
    tell_errors_once()

    with pytest.raises(AnalysisException, match="nothing"):
        spark.range(1).selectExpr("nothing").collect()

    assert capfd.readouterr().err == ""
