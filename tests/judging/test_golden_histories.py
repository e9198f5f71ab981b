"""The rounds against expectations that were written by hand from the taxonomy."""

from __future__ import annotations

import pytest
from tests.engine.comparing import differences
from tests.engine.histories import load_cases
from tests.engine.marking import share_of
from tests.judging.kernel import is_of_one_topic_each, kernel_statement, kernel_statements

CASES = [case for case in load_cases() if is_of_one_topic_each(case)]
"""Topics that were created anew are separated by Spark, before the rounds: tests/agreement judges those."""
SHARES = 12
"""A share has histories of many files: those that can be judged together are, whatever file they are in."""


def test_nearly_all_golden_histories_are_judged() -> None:
    """An empty folder must not look like agreement, and no history is in two shares or in none."""
    assert len(CASES) > 600
    places = [place for share in range(SHARES) for place in share_of(CASES, share, SHARES)]
    assert sorted(places) == [*range(len(CASES))]


@pytest.mark.parametrize("share", range(SHARES))
def test_the_rounds_agree_with_the_taxonomy(share: int) -> None:
    """Each history's statement is the one that the cited sentence of the taxonomy asks for.

    Histories that share their terms are judged in one bucket; one that differs there is judged again by itself.
    """
    cases = [CASES[place] for place in share_of(CASES, share, SHARES)]
    wrong = {}
    for case, statement in zip(cases, kernel_statements(cases), strict=True):
        if differences(case.expect, statement, statement["breaks"]):
            alone = kernel_statement(case)
            problems = differences(case.expect, alone, alone["breaks"])
            if problems:
                wrong[str(case)] = problems
    assert wrong == {}
