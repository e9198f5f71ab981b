"""The engine against expectations that were written by hand from the taxonomy, the oracle's own."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.engine.comparing import differences
from tests.engine.histories import Case, load_cases
from tests.engine.judging import engine_statements, share_of

from tieout.engine.supported import refuse_unsupported
from tieout.errors import UsageError


def _is_supported(case: Case) -> bool:
    try:
        refuse_unsupported(case.contract)
    except UsageError:
        return False
    return True


CASES = load_cases()
SUPPORTED = [case for case in CASES if _is_supported(case)]
SHARES = 6
"""In how many tests they are judged, so that two processes have about as much to do."""


def test_most_histories_are_judged() -> None:
    """What the engine refuses is a handful of contracts, not the bulk of the histories."""
    assert len(SUPPORTED) > 120

    refused = {str(case) for case in CASES} - {str(case) for case in SUPPORTED}

    assert len(refused) < 15


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("share", range(SHARES))
def test_the_engine_agrees_with_the_taxonomy(spark: SparkSession, share: int) -> None:
    """Each history's statement is the one that the cited sentence of the taxonomy asks for."""
    cases = [SUPPORTED[place] for place in share_of(SUPPORTED, share, SHARES)]
    found = engine_statements(spark, cases)

    wrong = {
        str(case): differences(case.expect, statement, statement["breaks"])
        for case, statement in zip(cases, found, strict=True)
    }
    assert {name: told for name, told in wrong.items() if told} == {}
