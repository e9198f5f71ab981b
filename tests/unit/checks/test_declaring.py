"""Suite files are read strictly: what Great Expectations would drop or pass silently is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tieout.checks.declaring import Force, declared_for, read_suite
from tieout.errors import SuiteError
from tieout.model import Guarantee, Severity
from tieout.shipped import EXPECTATIONS, shipped

ENTRY: dict[str, Any] = {
    "type": "expect_breaks_within_limit",
    "kwargs": {"classes": ["LOST"], "max_count": {"$PARAMETER": "loss_count"}},
    "severity": "critical",
    "meta": {"rule": "lost", "forces": "BROKEN", "why": "A message is lost."},
}


def written(folder: Path, *entries: Any, name: str = "some", **changes: Any) -> Path:
    """Return a suite file with these entries."""
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"name": name, "expectations": list(entries), **changes}))
    return file


def changed(**changes: Any) -> dict[str, Any]:
    """Return the entry with other values of some keys."""
    return {**ENTRY, **changes}


def without(*keys: str) -> dict[str, Any]:
    """Return the entry without some keys."""
    return {key: value for key, value in ENTRY.items() if key not in keys}


def of_meta(**changes: Any) -> dict[str, Any]:
    """Return the entry with other values in its `meta`."""
    return changed(meta={**ENTRY["meta"], **changes})


def test_reads_rules_in_their_order(tmp_path: Path) -> None:
    """A suite has its file's name, its rules in the file's order and the digest of its bytes."""
    file = written(tmp_path, ENTRY, of_meta(rule="second"))

    suite = read_suite(file)

    assert [rule.rule for rule in suite.rules] == ["lost", "second"]
    assert suite.rules[0].severity is Severity.CRITICAL
    assert suite.rules[0].forces is Force.BROKEN
    assert suite.name == "some"
    assert len(suite.digest) == 64


def test_a_digest_tells_contents_apart(tmp_path: Path) -> None:
    """Another limit is another digest, the same file the same one."""
    first = read_suite(written(tmp_path, ENTRY)).digest
    again = read_suite(written(tmp_path, ENTRY)).digest
    other = read_suite(written(tmp_path, changed(kwargs={"classes": ["LATE"]}))).digest

    assert first == again != other


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (changed(extra=1), "unknown key extra"),
        (without("severity"), "missing key severity"),
        (without("meta"), "missing key meta"),
        ("lost", "expected an object"),
        (changed(severity="fatal"), "severity: expected one of info, warning, critical; found 'fatal'"),
        (changed(severity=None), "severity: expected one of"),
        (changed(kwargs=[]), "kwargs: expected an object"),
        (changed(kwargs={"classes": None}), 'classes: expected a value, found null; "no limit"'),
        (changed(kwargs={"max_count": {"$PARAMETER": 7}}), "max_count: expected a value or"),
        (changed(kwargs={"max_count": {"PARAMETER": "x"}}), "max_count: expected a value or"),
        (changed(kwargs={"max_count": {"$PARAMETER": "x", "default": 0}}), "max_count: expected a value or"),
        (of_meta(forces="PENDING"), "forces: expected one of BROKEN, UNKNOWN, nothing; found 'PENDING'"),
        (of_meta(forces="nothing"), "critical exactly where it forces a verdict"),
        (changed(severity="warning"), "critical exactly where it forces a verdict"),
        (of_meta(why=" "), "why: expected a text"),
        (of_meta(rule=None), "rule: expected a text"),
        (of_meta(owner="x"), "unknown key owner"),
    ],
)
def test_refuses_an_entry_that_is_not_as_described(tmp_path: Path, entry: Any, expected: str) -> None:
    """The error names the file, the entry and what is wrong with it."""
    file = written(tmp_path, of_meta(rule="first"), entry)

    with pytest.raises(SuiteError) as caught:
        read_suite(file)

    assert str(caught.value).startswith(f"{file}: expectations[1]")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected an expectation suite as JSON"),
        ("[]", "expected an object with expectations"),
        ('{"name": "some"}', "missing key expectations"),
        ('{"name": "some", "expectations": []}', "an empty suite passes everything"),
        ('{"name": "some", "expectations": {}}', "an empty suite passes everything"),
        ('{"name": "other", "expectations": [{}]}', "name: expected the file's own, 'some'; found 'other'"),
        ('{"name": "some", "expectations": [{}], "suite_parameters": {}}', "unknown key suite_parameters"),
        ('{"name": "some", "name": "some", "expectations": [{}]}', "the key name stands twice"),
    ],
)
def test_refuses_a_file_that_is_no_suite(tmp_path: Path, text: str, expected: str) -> None:
    """Empty suites and suite-level defaults, which the library would pass and ignore, are refused."""
    file = tmp_path / "some.json"
    file.write_text(text)

    with pytest.raises(SuiteError) as caught:
        read_suite(file)

    assert str(file) in str(caught.value)
    assert expected in str(caught.value)


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    """A suite that is not there is an error, not an empty suite."""
    with pytest.raises(SuiteError, match=r"none\.json: expected an expectation suite"):
        read_suite(tmp_path / "none.json")


def test_refuses_two_rules_of_one_name(tmp_path: Path) -> None:
    """Results are known by their rule's name, so one of the two would be lost."""
    with pytest.raises(SuiteError, match=r"expectations\[0\].*expectations\[1\].*found lost twice"):
        read_suite(written(tmp_path, ENTRY, ENTRY))


def test_refuses_two_rules_of_one_name_in_two_files(tmp_path: Path) -> None:
    """A guarantee's suite cannot hide a rule that holds for every statement."""
    written(tmp_path, ENTRY, name="statement")
    (tmp_path / "guarantees").mkdir()
    written(tmp_path / "guarantees", ENTRY, name="exactly_once")

    with pytest.raises(SuiteError, match="found lost twice"):
        declared_for(Guarantee.EXACTLY_ONCE, tmp_path)


@pytest.mark.parametrize("parameters", [{}, {"loss_count": None}])
def test_refuses_a_parameter_without_a_value(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """A limit that is missing or None would pass everything."""
    rule = read_suite(written(tmp_path, ENTRY)).rules[0]

    with pytest.raises(SuiteError, match=r"\(lost\): max_count: parameter loss_count has no value"):
        rule.bound(parameters)


def test_puts_values_in_the_parameters_places(tmp_path: Path) -> None:
    """Zero is a value; what is no parameter stays as it is written."""
    rule = read_suite(written(tmp_path, ENTRY)).rules[0]

    assert rule.bound({"loss_count": 0}) == {"classes": ["LOST"], "max_count": 0}


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_ships_a_suite_for_each_guarantee(guarantee: Guarantee) -> None:
    """Every guarantee has its own rules beside those for every statement."""
    declared = declared_for(guarantee, shipped(EXPECTATIONS))

    assert declared.name == f"statement+{guarantee}"
    assert {rule.forces for rule in declared.rules} == set(Force)
