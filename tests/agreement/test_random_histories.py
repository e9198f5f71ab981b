"""The engine against the oracle, on histories that nobody picked, whose rows Spark moves; tests/judging has many more.

The histories are those of the simulated pipeline; rows that contradict each other are not held against it.
`TIEOUT_RANDOM_SEED` and `TIEOUT_RANDOM_FAMILIES` choose other histories, and more of them; a failure names its own.
"""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession
from tests.engine.judging import engine_statements
from tests.judging.expected import expected_of, unlike
from tests.oracle.random_histories import families

from tieout.engine import scope

SEED = int(os.environ.get("TIEOUT_RANDOM_SEED", "1"))
FAMILIES = int(os.environ.get("TIEOUT_RANDOM_FAMILIES", "2"))
SIZE = 60


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("is_large", [False, True], ids=["few messages", "many messages"])
def test_the_engine_agrees_with_the_oracle(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """Verdict, classes, flags, sums, offset balance and every break are the oracle's, in every random history."""
    if is_large:
        monkeypatch.setattr(scope, "SMALL_ROWS", 0)
    chosen = list(families(SEED, FAMILIES, SIZE, wild_share=0))[is_large::2]
    histories = [history for family in chosen for history in family]

    found = engine_statements(spark, histories)

    wrong = {}
    for history, statement in zip(histories, found, strict=True):
        if problems := unlike(expected_of(history), statement):
            wrong[history.name] = problems
    assert wrong == {}, f"{len(wrong)} of {len(histories)} histories differ"
