"""The rounds against expectations that were written by hand from the taxonomy."""

from __future__ import annotations

import pytest
from tests.engine.comparing import differences
from tests.engine.histories import load_cases
from tests.judging.kernel import is_of_one_topic_each, kernel_statement, kernel_statements

CASES = [case for case in load_cases() if is_of_one_topic_each(case)]
"""Topics that were created anew are told apart by Spark, before the rounds: tests/agreement judges those."""


def test_nearly_all_golden_histories_are_judged() -> None:
    """An empty folder must not look like agreement."""
    assert len(CASES) > 600


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted({case.file for case in CASES}))
def test_the_rounds_agree_with_the_taxonomy(name: str) -> None:
    """Each history's statement is the one that the cited sentence of the taxonomy asks for.

    Histories that share their terms are judged in one bucket; one that differs there is judged again by itself.
    """
    cases = [case for case in CASES if case.file == name]
    wrong = {}
    for case, statement in zip(cases, kernel_statements(cases), strict=True):
        if differences(case.expect, statement, statement["breaks"]):
            alone = kernel_statement(case)
            told = differences(case.expect, alone, alone["breaks"])
            if told:
                wrong[str(case)] = told
    assert wrong == {}
