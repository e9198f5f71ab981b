"""The rounds against expectations that were written by hand from the taxonomy, each history judged by itself."""

from __future__ import annotations

import pytest
from tests.engine.comparing import differences
from tests.engine.histories import Case, load_cases
from tests.judging.kernel import is_of_one_topic_each, kernel_statement

CASES = [case for case in load_cases() if is_of_one_topic_each(case)]
"""Topics that were created anew are told apart by Spark, before the rounds: tests/agreement judges those."""


def test_nearly_all_golden_histories_are_judged() -> None:
    """An empty folder must not look like agreement."""
    assert len(CASES) > 400


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rounds_agree_with_the_taxonomy(case: Case) -> None:
    """Each history's statement is the one that the cited sentence of the taxonomy asks for."""
    statement = kernel_statement(case)
    assert differences(case.expect, statement, statement["breaks"]) == []
