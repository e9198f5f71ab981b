"""Much evidence is judged by compiled code, little by interpreted expressions: two implementations inside Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.engine.comparing import differences
from tests.engine.histories import load_cases
from tests.engine.judging import Batch, batches, engine_statements

LARGEST = sorted(batches(load_cases()), key=lambda batch: -len(batch.histories))[:2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", LARGEST, ids=lambda batch: f"{len(batch.histories)} histories")
def test_histories_are_judged_as_little_evidence_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, batch: Batch
) -> None:
    """What is written by hand holds on the path of many rows, too; the other tests of rules take that of few."""
    monkeypatch.setattr("tieout.engine.scope.SMALL_ROWS", 0)
    found = engine_statements(spark, batch.histories, is_small=False)

    wrong = {
        str(case): differences(case.expect, statement, statement["breaks"])
        for case, statement in zip(batch.histories, found, strict=True)
    }
    assert {name: told for name, told in wrong.items() if told} == {}
