"""What a contract's terms hide, whatever the evidence: the statement says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.histories import WINDOW, contract_for

from tieout.engine.coverage import limits_of
from tieout.engine.scope import Scope
from tieout.model import Ledger


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, []),
        ({"multiplicity": {"kind": "one_to_many", "effect_key": "line_no"}}, []),
        ({"identity": "content"}, ["a loss that an equal duplicate cancels is invisible"]),
        ({"multiplicity": {"kind": "one_to_many", "count": 2}}, ["an effect in the place of another"]),
    ],
)
def test_the_statement_carries_what_nobody_could_see(terms: dict[str, Any], words: list[str]) -> None:
    """Each term that hides something has its sentence, and only those have one."""
    contract = contract_for([Ledger.PRODUCED, Ledger.DELIVERED], terms)

    limits = limits_of(Scope(contract, WINDOW, {}))

    assert len(limits) == len(words)
    assert all(word in limit for word, limit in zip(words, limits, strict=True))
