"""The engine against the oracle, on histories that nobody picked.

The histories are those of the simulated pipeline; rows that contradict each other are not held against it.
`TIEOUT_RANDOM_SEED` and `TIEOUT_RANDOM_FAMILIES` choose other histories, and more of them; a failure names its own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.engine.comparing import differences
from tests.engine.histories import GRACE_END, TOPIC, WINDOW
from tests.engine.judging import engine_statements
from tests.judging.expected import by_partition, expected_of
from tests.oracle import OracleCoverage
from tests.oracle.random_histories import RandomHistory, Setting, families, history_in

from tieout.engine import scope
from tieout.model import Ledger, OffsetRange

SEED = int(os.environ.get("TIEOUT_RANDOM_SEED", "1"))
FAMILIES = int(os.environ.get("TIEOUT_RANDOM_FAMILIES", "4"))
SIZE = 60
WILD_FAMILIES, WILD_SIZE = 2, 40
RANGES = (OffsetRange(TOPIC, 0, 1, 5), OffsetRange(TOPIC, 1, 0, 3))
BY_OFFSETS = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("is_large", [False, True], ids=["few messages", "many messages"])
def test_the_engine_agrees_with_the_oracle(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """Verdict, classes, flags, sums, offset balance and every break are the oracle's, in every random history."""
    if is_large:
        monkeypatch.setattr(scope, "SMALL_ROWS", 0)
    chosen = list(families(SEED, FAMILIES, SIZE, wild_share=0))[is_large::2]
    _agrees(spark, [history for family in chosen for history in family])


@pytest.mark.timeout(1200)
def test_arbitrary_rows_are_never_kept_or_broken_falsely(spark: SparkSession) -> None:
    """Of rows that no pipeline would leave behind the engine may say that it cannot tell, but nothing that is false."""
    drawn = families(SEED, WILD_FAMILIES, WILD_SIZE, wild_share=1)
    histories = [history for family in drawn for history in family]

    found = engine_statements(spark, histories)

    verdicts = [
        (history.name, expected_of(history)["verdict"], statement["verdict"])
        for history, statement in zip(histories, found, strict=True)
    ]
    definite = {"KEPT", "BROKEN"}
    assert {verdict for _, _, verdict in verdicts} >= {"BROKEN", "UNKNOWN"}, "these histories try nothing"
    assert [one for one in verdicts if one[2] in definite and one[1] != one[2]] == []


@pytest.mark.timeout(600)
def test_the_engine_agrees_on_windows_of_offsets(spark: SparkSession) -> None:
    """What a range of offsets holds is the same to both, whether or not the log shows it whole."""
    coverage = dict.fromkeys(BY_OFFSETS, OracleCoverage(None, GRACE_END, True, True))
    setting = Setting(
        False, {"guarantee": "at_least_once", "windows": "offsets"}, BY_OFFSETS, coverage, (), {}
    )
    window = replace(WINDOW, offsets=RANGES)
    drawn = [
        history_in(setting, Random(f"{SEED}/offsets/{number}"), f"offsets/{number}")  # noqa: S311 - repeatable, not secret
        for number in range(SIZE)
    ]

    _agrees(spark, [replace(history, window=window) for history in drawn])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("has_log", [True, False], ids=["log", "no log"])
def test_the_engine_agrees_on_kept_positions(spark: SparkSession, has_log: bool) -> None:
    """Ranges that are lost, repeated or overlap, and a second position, are the same to both."""
    # Reads tell of what lies in a hole where no log does.
    ledgers = (*BY_OFFSETS, Ledger.MIRRORED, Ledger.READ, Ledger.STAGED, Ledger.DEAD_LETTERS)
    chosen = tuple(ledger for ledger in ledgers if has_log or ledger is not Ledger.LOG)
    coverage = dict.fromkeys(chosen, OracleCoverage(None, GRACE_END + timedelta(hours=1), True, True))
    setting = Setting(False, {"guarantee": "at_most_once"}, chosen, coverage, (), {})

    drawn = [
        history_in(setting, Random(f"{SEED}/positions/{number}"), f"positions/{number}")  # noqa: S311 - repeatable, not secret
        for number in range(SIZE)
    ]

    shown = {name for history in drawn for name in expected_of(history)["classes"]}
    assert {"COMMIT_GAP", "COMMIT_REGRESSION", "POSITION_DISAGREEMENT"} <= shown, (
        "these histories try nothing"
    )
    _agrees(spark, drawn)


def _agrees(spark: SparkSession, histories: list[RandomHistory]) -> None:
    found = engine_statements(spark, histories)

    wrong = {}
    for history, statement in zip(histories, found, strict=True):
        expected = expected_of(history)
        problems = differences(expected, statement, statement["breaks"])
        if expected["partitions"] != by_partition(statement):
            problems.append(f"partitions: expected {expected['partitions']}, found {by_partition(statement)}")
        if problems:
            wrong[history.name] = problems
    assert wrong == {}, f"{len(wrong)} of {len(histories)} histories differ"
