"""The engine against expectations that were written by hand from the taxonomy, the oracle's own.

`tests/judging` judges all of them without Spark. Here Spark reads and moves their rows: those of every tenth in each
run, and all of them with TIEOUT_GOLDEN=all, as `make fuzz` has it.
"""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession
from tests.engine.comparing import differences
from tests.engine.histories import load_cases
from tests.engine.judging import engine_statements
from tests.engine.marking import share_of

CASES = load_cases()
SHARES = 10
JUDGED = range(SHARES if os.environ.get("TIEOUT_GOLDEN") == "all" else 1)
"""Which shares of them are judged, each in a test of its own."""


def test_there_are_golden_histories() -> None:
    """An empty folder must not look like agreement."""
    assert len(CASES) > 200


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("share", JUDGED)
def test_the_engine_agrees_with_the_taxonomy(spark: SparkSession, share: int) -> None:
    """Each history's statement is the one that the cited sentence of the taxonomy asks for."""
    cases = [CASES[place] for place in share_of(CASES, share, SHARES)]
    found = engine_statements(spark, cases)

    wrong = {
        str(case): differences(case.expect, statement, statement["breaks"])
        for case, statement in zip(cases, found, strict=True)
    }
    assert {name: problems for name, problems in wrong.items() if problems} == {}
