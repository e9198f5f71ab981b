"""What the oracle expects of a random history, and in which ways a statement is not that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.engine.comparing import differences
from tests.judging.kernel import kernel_statement, kernel_statements
from tests.oracle import judge_history
from tests.oracle.balance import MESSAGE_COUNTS, ROW_COUNTS
from tests.oracle.random_histories import RandomHistory

from tieout.model import BreakClass, Identity

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
        "partitions": by_partition(statement),
        "breaks": breaks,
        "not_judged": [],
    }


def wrong_in(histories: Sequence[RandomHistory]) -> dict[str, list[str]]:
    """Return the differences between the rounds and the oracle, by the history's name.

    All are judged in one bucket. One that differs is judged again alone, as names of others may sort before its own.
    """
    wrong = {}
    for history, statement in zip(histories, kernel_statements(histories), strict=True):
        expected = expected_of(history)
        if unlike(expected, statement) and (problems := unlike(expected, kernel_statement(history))):
            wrong[history.name] = problems
    return wrong


def by_partition(statement: dict[str, Any]) -> dict[Any, dict[str, int]]:
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


def unlike(expected: Mapping[str, Any], statement: dict[str, Any]) -> list[str]:
    """Return in which ways the statement is not the expected one; where the oracle expects it, by partition, too."""
    problems = differences(expected, statement, statement["breaks"])
    if "partitions" in expected and expected["partitions"] != by_partition(statement):
        problems.append(f"partitions: expected {expected['partitions']}, found {by_partition(statement)}")
    return problems
