"""Declared rules as Great Expectations' objects: all of them, with their limits known, or a `SuiteError`."""

from __future__ import annotations

from collections.abc import Mapping

from great_expectations import ExpectationSuite

from tieout.checks.declaring import DeclaredRule, DeclaredSuite
from tieout.checks.measuring import MeasureRule
from tieout.checks.rules import RULES
from tieout.errors import SuiteError


def loaded(declared: DeclaredSuite, parameters: Mapping[str, object]) -> ExpectationSuite:
    """Return the library's suite; validation replaces the parameters by their values.

    Every rule is built twice: with the values, to find wrong ones now and by name, and as declared, for the
    library to insert them.

    Raises:
        SuiteError: where a type is unknown, an argument is unknown, missing or wrong, a parameter has no
        value,
            or the library took fewer rules than were declared.
    """
    for rule in declared.rules:
        _with_values(rule, parameters)
    suite = ExpectationSuite(
        name=declared.name, expectations=[_built(rule, dict(rule.kwargs)) for rule in declared.rules]
    )
    accepted = {expectation.meta["rule"] for expectation in suite.expectations}
    dropped = [rule.place for rule in declared.rules if rule.rule not in accepted]
    if dropped:
        raise SuiteError(
            f"{'; '.join(dropped)}: expected {len(declared.rules)} rules in the suite, the library took "
            f"{len(accepted)}"
        )
    return suite


def _with_values(rule: DeclaredRule, parameters: Mapping[str, object]) -> MeasureRule:
    """Return a rule with its parameters' values.

    Raises:
        SuiteError: where a value is missing or unusable for the rule.
    """
    built = _built(rule, rule.bound(parameters))
    try:
        built.refuse_unusable()
    except ValueError as error:
        raise SuiteError(f"{rule.place}: {error}") from error
    return built


def _built(rule: DeclaredRule, kwargs: dict[str, object]) -> MeasureRule:
    """Return the library's object for a rule.

    Raises:
        SuiteError: where the type is unknown, or does not take these arguments.
    """
    kind = RULES.get(rule.type)
    if kind is None:
        raise SuiteError(f"{rule.place}: unknown type {rule.type}; there are: {', '.join(sorted(RULES))}")
    allowed = kind.arguments()
    unknown = sorted(set(kwargs) - allowed)
    if unknown:
        raise SuiteError(
            f"{rule.place}: unknown argument {', '.join(unknown)} of {rule.type}; "
            f"it takes: {', '.join(sorted(allowed)) or 'none'}"
        )
    meta = {"rule": rule.rule, "why": rule.why, "forces": rule.forces.value}
    try:
        return kind(**kwargs, severity=rule.severity.value, meta=meta)
    except ValueError as error:
        raise SuiteError(f"{rule.place}: {error}") from error
