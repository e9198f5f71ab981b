"""What the local stack is started for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.stack.__main__ import user_contracts
from tools.stack.layout import ROOT
from tools.stack.services import Plan

EXAMPLES = Plan(contracts=(Path("/examples"),), webhooks=("hook",), dags=frozenset({"orders"}))


def test_own_contracts_are_served_beside_the_examples() -> None:
    """Their folders come after the examples', and a start does not wait for their DAGs: there may be none yet."""
    both = EXAMPLES.with_contracts([Path("/mine")])

    assert both == Plan(
        contracts=(Path("/examples"), Path("/mine")), webhooks=("hook",), dags=frozenset({"orders"})
    )


@pytest.mark.parametrize(
    ("named", "found"),
    [(None, (ROOT / "dags" / "contracts",)), ("mine:/else/where", (ROOT / "mine", Path("/else/where")))],
)
def test_own_contracts_are_where_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, named: str | None, found: tuple[Path, ...]
) -> None:
    """As for Airflow itself: `dags/contracts` where nothing is said, and relative folders start at the checkout."""
    if named is None:
        monkeypatch.delenv("TIEOUT_CONTRACTS", raising=False)
    else:
        monkeypatch.setenv("TIEOUT_CONTRACTS", named)

    assert user_contracts() == found
