"""The engine against the oracle, on histories that nobody picked.

The histories are those of the simulated pipeline; rows that contradict each other are not held against it.
`TIEOUT_RANDOM_SEED` and `TIEOUT_RANDOM_FAMILIES` choose other histories, and more of them; a failure names its own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.comparing import differences
from tests.engine.histories import GRACE_END, TOPIC, WINDOW
from tests.engine.judging import engine_statements
from tests.oracle import OracleCoverage, judge_history
from tests.oracle.balance import MESSAGE_COUNTS, ROW_COUNTS
from tests.oracle.random_histories import RandomHistory, Setting, families, history_in

from tieout.engine import scope
from tieout.model import BreakClass, Identity, Ledger, OffsetRange

SEED = int(os.environ.get("TIEOUT_RANDOM_SEED", "1"))
FAMILIES = int(os.environ.get("TIEOUT_RANDOM_FAMILIES", "6"))
SIZE = 60
WILD_FAMILIES, WILD_SIZE = 2, 40
RANGES = (OffsetRange(TOPIC, 0, 1, 5), OffsetRange(TOPIC, 1, 0, 3))
BY_OFFSETS = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)
OF_NO_MESSAGE = frozenset(
    {
        BreakClass.TORN_TRANSACTION,
        BreakClass.LOG_IDENTITY_CONFLICT,
        BreakClass.COMMIT_AHEAD,
        BreakClass.COMMIT_REGRESSION,
        BreakClass.COMMIT_OUT_OF_RANGE,
        BreakClass.COMMIT_STALE,
        BreakClass.COMMIT_GAP,
        BreakClass.POSITION_DISAGREEMENT,
        BreakClass.SKIPPED,
    }
)
"""Classes whose breaks name a message only by the way."""


def expected_of(history: RandomHistory) -> dict[str, Any]:
    """Return the oracle's statement in the words of a golden history's `expect`."""
    statement = judge_history(
        history.contract, history.window, history.rows, history.coverage, history.present
    )
    totals: dict[str, int] = {}
    offsets: dict[str, int] = {}
    for numbers in statement["partitions"]:
        for name, value in numbers.items():
            if name not in ("topic", "partition", "offsets"):
                totals[name] = totals.get(name, 0) + value
        for name, value in (numbers["offsets"] or {}).items():
            offsets[name] = offsets.get(name, 0) + value
    has_ids = history.contract.identity is Identity.MESSAGE_ID
    # What says most is looked for first, or a break without an id would be taken for another's.
    breaks = sorted((_expected_break(row, has_ids) for row in statement["breaks"]), key=len, reverse=True)
    return {
        "verdict": statement["verdict"],
        "classes": statement["classes"],
        "flags": statement["flags"],
        "totals": totals,
        "offsets": offsets,
        "partitions": _by_partition(statement),
        "breaks": breaks,
        "not_judged": [],
    }


def _by_partition(statement: dict[str, Any]) -> dict[Any, dict[str, int]]:
    """Return what each partition counts of attempts and messages, without zeros."""
    counted = {
        (row["topic"], row["partition"]): {
            name: row[name] for name in (*ROW_COUNTS, *MESSAGE_COUNTS) if row[name]
        }
        for row in statement["partitions"]
    }
    return {place: numbers for place, numbers in counted.items() if numbers}


def _expected_break(row: dict[str, Any], has_ids: bool) -> dict[str, Any]:
    """Return what is compared of a break; one of a position, commit or transaction belongs to no one message."""
    # Where a row shows no id, the engine may know it from the record at its position.
    is_named = has_ids and row["class"] not in OF_NO_MESSAGE and row["message_id"] is not None
    named = {"id": row["message_id"]} if is_named else {}
    # Whether a log that lacks an effect's record would have shown it, the two tell differently at the log's edges.
    placed = {} if row["class"] == BreakClass.PHANTOM_UNKNOWN else {"locus": row["locus"]}
    return {**named, **placed, "class": row["class"], "flags": row["flags"]}


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

    told = [
        (history.name, expected_of(history)["verdict"], statement["verdict"])
        for history, statement in zip(histories, found, strict=True)
    ]
    definite = {"KEPT", "BROKEN"}
    assert {verdict for _, _, verdict in told} >= {"BROKEN", "UNKNOWN"}, "these histories try nothing"
    assert [one for one in told if one[2] in definite and one[1] != one[2]] == []


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
        told = differences(expected, statement, statement["breaks"])
        if expected["partitions"] != _by_partition(statement):
            told.append(f"partitions: expected {expected['partitions']}, found {_by_partition(statement)}")
        if told:
            wrong[history.name] = told
    assert wrong == {}, f"{len(wrong)} of {len(histories)} histories differ"
