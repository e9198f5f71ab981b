"""Declared rules become the library's objects, all of them, or an error says which does not and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from great_expectations import ExpectationSuite
from tests.unit.checks.test_declaring import ENTRY, changed, of_meta, written

from tieout.checks import loading
from tieout.checks.declaring import declared_for, read_suite
from tieout.checks.loading import loaded
from tieout.checks.parameters import UNLIMITED
from tieout.checks.rules import RULES
from tieout.errors import SuiteError
from tieout.model import Guarantee
from tieout.shipped import EXPECTATIONS, shipped

VALUES: Mapping[str, Any] = {"loss_count": 0}


def rule_of(kind: str, **kwargs: Any) -> dict[str, Any]:
    """Return an entry of a type with arguments."""
    return changed(type=kind, kwargs=kwargs)


def test_takes_every_declared_rule(tmp_path: Path) -> None:
    """Rules that differ only in their name are both there, with their severity."""
    suite = loaded(read_suite(written(tmp_path, ENTRY, of_meta(rule="again"))), VALUES)

    assert [e.meta["rule"] for e in suite.expectations] == ["lost", "again"]
    assert {e.severity.value for e in suite.expectations} == {"critical"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (rule_of("expect_no_losses"), "unknown type expect_no_losses; there are: expect_breaks"),
        (rule_of("expect_column_values_to_not_be_null", column="lost"), "unknown type"),
        (rule_of("unexpected_rows_expectation"), "unknown type"),
        (rule_of("expect_breaks_within_limit", classes=["LOST"], limt=1), "unknown argument limt"),
        (rule_of("expect_breaks_within_limit", classes=["LOST"], mostly=0.5), "unknown argument mostly"),
        (
            rule_of("expect_nothing_unexplained", unexpected_rows_query="select 1 from {batch}"),
            "unknown argument unexpected_rows_query of expect_nothing_unexplained; it takes: none",
        ),
        (rule_of("expect_breaks_within_limit"), "classes"),
        (rule_of("expect_breaks_within_limit", classes=[]), "classes: expected the classes"),
        (rule_of("expect_breaks_within_limit", classes=["LSOT"]), "found LSOT"),
        (rule_of("expect_breaks_within_limit", classes=["LOST", "LOST"]), "found LOST, LOST"),
        (rule_of("expect_breaks_within_limit", classes=["x') or true --"]), "classes: expected one each of"),
        (rule_of("expect_breaks_within_limit", classes=["LOST"], columns=["topic"]), "found topic"),
        (rule_of("expect_breaks_within_limit", classes=["LOST"], max_count=-1), "expected a limit from 0 on"),
        (
            rule_of("expect_breaks_within_limit", classes=["LOST"], max_count="none"),
            "expected a limit from 0",
        ),
        (rule_of("expect_ratio_within_budget", ratio="loss_ratio"), "max_ratio"),
        (rule_of("expect_ratio_within_budget", ratio="los_ratio", max_ratio=0), "found los_ratio"),
        (
            rule_of("expect_ratio_within_budget", ratio="loss_ratio", max_ratio=float("inf")),
            "expected a limit",
        ),
        (rule_of("expect_partition_identity_to_hold", total="attempts", parts=[]), "parts: expected"),
        (rule_of("expect_partition_identity_to_hold", total="atempts", parts=["lost"]), "found atempts"),
        (rule_of("expect_verdict_not_to_overlook", verdicts=["KEPT"]), "columns or names, found none"),
        (rule_of("expect_verdict_not_to_overlook", verdicts=["OK"], names=["LOST"]), "found OK"),
        (rule_of("expect_verdict_to_rest_on_coverage", verdicts=["KEPT"], ledgers=[]), "found none"),
    ],
)
def test_refuses_what_the_library_would_take_or_drop(
    tmp_path: Path, entry: dict[str, Any], expected: str
) -> None:
    """The error names the file and the rule."""
    file = written(tmp_path, of_meta(rule="first"), entry)

    with pytest.raises(SuiteError) as caught:
        loaded(read_suite(file), VALUES)

    assert str(caught.value).startswith(f"{file}: expectations[1] (lost)")
    assert expected in str(caught.value)


@pytest.mark.parametrize("value", [None, True, -0.1, float("nan"), "0", "", [0]])
def test_refuses_a_parameter_that_is_no_limit(tmp_path: Path, value: object) -> None:
    """Only a number from 0 on, or the word for none, is a limit."""
    declared = read_suite(written(tmp_path, ENTRY))

    with pytest.raises(SuiteError, match=r"\(lost\)"):
        loaded(declared, {"loss_count": value})


@pytest.mark.parametrize("value", [0, 0.5, 7, UNLIMITED])
def test_takes_a_limit(tmp_path: Path, value: object) -> None:
    """Zero, shares, numbers and the word for no limit are limits."""
    assert loaded(read_suite(written(tmp_path, ENTRY)), {"loss_count": value}).expectations


def test_refuses_a_suite_of_which_the_library_dropped_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules that the library took are counted against those declared, whatever made it drop one."""

    def lossy(name: str, expectations: list[Any]) -> ExpectationSuite:
        return ExpectationSuite(name=name, expectations=expectations[:-1])

    monkeypatch.setattr(loading, "ExpectationSuite", lossy)
    declared = read_suite(written(tmp_path, ENTRY, of_meta(rule="second")))

    with pytest.raises(SuiteError, match=r"\(second\): expected 2 rules in the suite, the library took 1"):
        loaded(declared, VALUES)


@pytest.mark.parametrize("kind", RULES)
def test_a_type_stands_under_the_name_that_the_library_gives_it(kind: str) -> None:
    """A suite file that names a type means the same to stock Great Expectations."""
    assert RULES[kind].expectation_type == kind


def test_every_rule_is_used() -> None:
    """A rule that no suite uses checks nothing."""
    used = {rule.type for g in Guarantee for rule in declared_for(g, shipped(EXPECTATIONS)).rules}

    assert used == set(RULES)
