"""The values of the suites' $PARAMETERs, from a contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from tieout.contracts import Contract

UNLIMITED: Final = "unlimited"
"""A limit that nothing exceeds; a word, because None makes Great Expectations pass everything silently."""

ParameterValue: TypeAlias = str | int | float | list[str]


def parameters_of(contract: Contract) -> Mapping[str, ParameterValue]:
    """Return a value for each parameter that a suite may name.

    A limit comes twice: `<limit>` for the rule that breaks the guarantee and `<limit>_noted` for the one that
    warns. Exactly one of the two is `unlimited`: by docs/reference/taxonomy.md, section 6, an undeclared
    budget is no limit, and warned of where above 0.
    """
    budgets = contract.budgets
    return {
        "contract_digest": contract.digest,
        "guarantee": contract.guarantee.value,
        "declared_ledgers": sorted(ledger.value for ledger in contract.ledgers),
        "effects": contract.effects,
        **_budget("loss_ratio", budgets.loss_ratio),
        **_budget("duplicate_ratio", budgets.duplicate_ratio),
        **_budget("late_ratio", budgets.late_ratio),
        "reorder_count": UNLIMITED if contract.ordering == "none" else 0,
        **_budget("misrouted_count", 0 if contract.ordering == "key" else None),
    }


def _budget(name: str, declared: float | None) -> dict[str, ParameterValue]:
    if declared is None:
        return {name: UNLIMITED, f"{name}_noted": 0}
    return {name: declared, f"{name}_noted": UNLIMITED}
