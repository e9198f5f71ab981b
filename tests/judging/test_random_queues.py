"""The rounds against the oracle, where messages are acknowledged one by one and positions are sparse.

`TIEOUT_RANDOM_SEED`, `TIEOUT_RANDOM_QUEUES` and `TIEOUT_RANDOM_SIZE` choose other histories, and more of them.
"""

from __future__ import annotations

import os

import pytest
from tests.judging.expected import wrong_in
from tests.oracle.queued_positions import queued_family

from tieout.model import Ledger

SEED = os.environ.get("TIEOUT_RANDOM_SEED", "q")
FAMILIES = int(os.environ.get("TIEOUT_RANDOM_QUEUES", "6"))
SIZE = int(os.environ.get("TIEOUT_RANDOM_SIZE", "30"))
OPEN = frozenset({"q/queues/4/27"})
"""Histories that differ as much without sets and sparse positions: transactions, and undated commits by content."""


@pytest.mark.parametrize("number", range(FAMILIES))
def test_the_rounds_agree_with_the_oracle_on_queues(number: int) -> None:
    """Verdict, classes, flags, sums, offset balance and every break are the oracle's, in every random history."""
    histories = queued_family(f"{SEED}/queues/{number}", SIZE)
    wrong = wrong_in(histories)
    ours = {name for name in OPEN if name.startswith(f"{SEED}/queues/{number}/")}
    assert {name: problems for name, problems in wrong.items() if name not in ours} == {}
    assert ours <= set(wrong), "decided: take it out of OPEN"


def test_the_families_have_what_they_are_about() -> None:
    """Sets of acknowledgements and sparse logs are drawn, each without the other too."""
    drawn = {
        (
            any(row.get("is_individual") for row in history.rows[Ledger.COMMITTED]),
            any(row.get("is_sparse") for row in history.rows[Ledger.LOG]),
        )
        for number in range(FAMILIES)
        for history in queued_family(f"{SEED}/queues/{number}", SIZE)
    }

    assert {(True, True), (True, False), (False, True)} <= drawn
