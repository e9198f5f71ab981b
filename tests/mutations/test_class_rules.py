"""Every class rule is needed: with one switched off or turned round, a golden history comes out wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.comparing import differences
from tests.engine.histories import Case, load_cases
from tests.engine.judging import engine_statements

from tieout.engine import classifying, reconciling
from tieout.engine.classes import MESSAGE_RULES, disagreement, ranges, standing
from tieout.engine.classes.rule import MessageRule
from tieout.model import BreakClass

_HISTORIES = 4
"""How many histories of a class are judged with its rule mutated; one of them must notice."""

STANDING = {
    BreakClass.TORN_TRANSACTION: (standing, "torn_transaction"),
    BreakClass.LOG_IDENTITY_CONFLICT: (standing, "log_identity_conflict"),
    BreakClass.LOG_TRUNCATION: (standing, "log_truncation"),
    BreakClass.COMMIT_AHEAD: (standing, "commit_ahead"),
    BreakClass.COMMIT_REGRESSION: (standing, "commit_regression"),
    BreakClass.COMMIT_OUT_OF_RANGE: (standing, "commit_out_of_range"),
    BreakClass.REORDER_PRODUCER: (reconciling, "reorder_producer"),
    BreakClass.REORDER_CONSUMER: (reconciling, "reorder_consumer"),
    BreakClass.REORDER_OUTPUT: (reconciling, "reorder_output"),
    BreakClass.SKIPPED: (reconciling, "skipped"),
    BreakClass.COMMIT_STALE: (reconciling, "commit_stale"),
    BreakClass.COMMIT_GAP: (ranges, "commit_gap"),
    BreakClass.POSITION_DISAGREEMENT: (disagreement, "_told"),
}
"""Where the engine looks up the rule of each class that is no message's."""


@lru_cache
def _histories(name: BreakClass) -> tuple[Case, ...]:
    """Return the shortest histories in which the class is found, those of one contract together."""
    found = [case for case in load_cases() if _shows(case, name)]
    return tuple(sorted(found, key=lambda case: sum(map(len, case.rows.values())))[:_HISTORIES])


def _shows(case: Case, name: BreakClass) -> bool:
    return any(case.expect.get(part, {}).get(name.value) for part in ("classes", "flags"))


def _is_noticed(spark: SparkSession, name: BreakClass) -> bool:
    """Return whether any history of the class comes out wrong; the first that does ends the search."""
    assert _histories(name), f"no golden history shows {name.value}"
    return any(
        differences(case.expect, statement, statement["breaks"])
        for case in _histories(name)
        for statement in engine_statements(spark, [case])
    )


def _mutated(mutation: Callable[[MessageRule], MessageRule], name: BreakClass) -> tuple[MessageRule, ...]:
    return tuple(mutation(rule) if rule.name is name else rule for rule in MESSAGE_RULES)


def _never(rule: MessageRule) -> MessageRule:
    return replace(rule, holds=lambda _scope: F.lit(False))


def _turned(rule: MessageRule) -> MessageRule:
    return replace(rule, holds=lambda scope: ~F.coalesce(rule.holds(scope), F.lit(False)))


@pytest.mark.parametrize("mutation", [_never, _turned])
@pytest.mark.parametrize("name", [rule.name for rule in MESSAGE_RULES])
def test_a_rule_of_messages_is_needed(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    name: BreakClass,
    mutation: Callable[[MessageRule], MessageRule],
) -> None:
    """A rule that never holds, or holds where it should not, is noticed."""
    monkeypatch.setattr(classifying, "MESSAGE_RULES", _mutated(mutation, name))

    assert _is_noticed(spark, name)


@pytest.mark.parametrize("name", STANDING)
def test_a_standing_rule_is_needed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: BreakClass
) -> None:
    """A rule that finds nothing is noticed."""
    module, function = STANDING[name]
    rule: Callable[..., DataFrame] = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *given: rule(*given).filter(F.lit(False)))

    assert _is_noticed(spark, name)


def test_every_class_is_mutated() -> None:
    """No class is without a mutation."""
    mutated = {rule.name for rule in MESSAGE_RULES} | set(STANDING)

    assert set(BreakClass) == mutated
