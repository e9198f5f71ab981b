"""What a contract's terms hide, whatever the evidence: the statement says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.histories import WINDOW, contract_for
from tests.judging.kernel import scope_of
from tests.oracle.random_histories import RandomHistory

from tieout.engine.scope import Scope
from tieout.engine.statement.coverage import limits_of
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

    limits = limits_of(Scope(contract, WINDOW, {}), {})

    assert len(limits) == len(words)
    assert all(word in limit for word, limit in zip(words, limits, strict=True))


@pytest.mark.parametrize("shows_keys", [True, False])
def test_the_statement_says_that_no_send_names_its_effects(shows_keys: bool) -> None:
    """Of a message with one effect of three, nothing else tells that two are missing."""
    terms = {"multiplicity": {"kind": "one_to_many", "effect_key": "line_no"}}
    rows = [{"message_id": "a", "topic": "t", "outcome": "acked", "effect_key": "1"}]
    present = frozenset(rows[0]) - (frozenset() if shows_keys else {"effect_key"})
    history = RandomHistory("", contract_for([Ledger.PRODUCED, Ledger.DELIVERED], terms), WINDOW, {}, {}, {})

    limits = limits_of(scope_of(history, {Ledger.PRODUCED: rows}, {Ledger.PRODUCED: present}), {})

    assert [limit.partition(":")[0] for limit in limits] == (
        [] if shows_keys else ["multiplicity.effect_key"]
    )


def test_the_statement_says_how_many_were_delivered_and_set_aside() -> None:
    """The flag has its sentence wherever it stands, and no other flag has."""
    contract = contract_for([Ledger.PRODUCED, Ledger.DELIVERED], {})

    limits = limits_of(Scope(contract, WINDOW, {}), {"set_aside_and_delivered": 3, "LATE": 1})

    assert limits == [
        "3 messages took effect and were filtered or dead-lettered as well, or were so twice: "
        "flag set_aside_and_delivered"
    ]
