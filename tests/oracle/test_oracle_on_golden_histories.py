"""The oracle against expectations that were written by hand from the taxonomy."""

from __future__ import annotations

import pytest
from tests.engine.comparing import differences
from tests.engine.histories import Case, load_cases
from tests.oracle import ALL_CLASSES, judge_history

CASES = load_cases()
TRAPS = frozenset(range(1, 18))


def test_there_are_golden_histories() -> None:
    """An empty folder must not look like success, and no two cases share a name."""
    assert len(CASES) > 100

    names = [case.name for case in CASES]

    assert len(names) == len(set(names))


def test_every_class_and_every_trap_has_a_case() -> None:
    """What the taxonomy names is shown by an example."""
    shown = {name for case in CASES for name in case.expect.get("classes", {})}

    assert shown == {str(name) for name in ALL_CLASSES}
    assert {case.trap for case in CASES} - {None} == TRAPS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_oracle_agrees_with_the_taxonomy(case: Case) -> None:
    """Each case's statement is the one that the cited sentence of the taxonomy asks for."""
    statement = judge_history(case.contract, case.window, case.rows, case.coverage, case.present)

    assert differences(case.expect, statement, statement["breaks"]) == [], case.because
