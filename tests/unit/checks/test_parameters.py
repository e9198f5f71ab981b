"""A contract's limits as parameters: each is there, and of each pair exactly one limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tieout.checks.declaring import declared_for
from tieout.checks.parameters import UNLIMITED, parameters_of
from tieout.contracts import Contract
from tieout.model import Guarantee
from tieout.shipped import EXPECTATIONS, shipped


def contract_of(guarantee: str = "exactly_once", **changes: Any) -> Contract:
    """Return a contract with the ledgers `produced` and `delivered`."""
    source = {"source": {"kind": "files", "format": "jsonl", "path": "evidence.jsonl"}}
    fields = {
        "version": 1,
        "pipeline": "orders",
        "guarantee": guarantee,
        "group": "loader",
        "ledgers": {"produced": source, "delivered": source},
        **changes,
    }
    return Contract.from_json(json.dumps(fields), Path())


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_gives_every_parameter_that_the_suites_name(guarantee: Guarantee) -> None:
    """No shipped suite asks for a parameter that a contract does not give."""
    parameters = parameters_of(contract_of(guarantee))

    for rule in declared_for(guarantee, shipped(EXPECTATIONS)).rules:
        assert None not in rule.bound(parameters).values()


def test_an_undeclared_budget_is_unlimited_and_noted() -> None:
    """Without a budget nothing breaks, and everything above 0 is noted."""
    parameters = parameters_of(contract_of())

    assert (parameters["late_ratio"], parameters["late_ratio_noted"]) == (UNLIMITED, 0)


def test_a_declared_budget_limits_even_where_it_is_zero() -> None:
    """Zero is a budget, not the absence of one."""
    parameters = parameters_of(contract_of(budgets={"late_ratio": 0}))

    assert (parameters["late_ratio"], parameters["late_ratio_noted"]) == (0, UNLIMITED)


@pytest.mark.parametrize(
    ("ordering", "reorder", "misrouted", "noted"),
    [("none", UNLIMITED, UNLIMITED, 0), ("partition", 0, UNLIMITED, 0), ("key", 0, 0, UNLIMITED)],
)
def test_ordering_decides_about_order_and_routing(
    ordering: str, reorder: object, misrouted: object, noted: object
) -> None:
    """An order that is not promised is not held; the partition matters where order is promised by key."""
    parameters = parameters_of(contract_of(ordering=ordering))

    assert parameters["reorder_count"] == reorder
    assert (parameters["misrouted_count"], parameters["misrouted_count_noted"]) == (misrouted, noted)


def test_importing_the_checks_does_not_load_great_expectations() -> None:
    """A scheduler that imports the package does not pay for the library."""
    heavy = "{'great_expectations', 'pandas', 'sqlalchemy'}"
    code = f"import sys, tieout.checks; print(sorted({heavy} & set(sys.modules)))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
