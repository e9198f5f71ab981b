"""Suite files: GX-native JSON, read strictly and without Great Expectations.

Great Expectations loads a suite leniently: it drops a rule of an unknown type, or a second one with equal
arguments, and passes an empty suite and a limit of None. Here each is a `SuiteError` that names file and
entry.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from tieout.errors import SuiteError
from tieout.model import Guarantee, Severity
from tieout.regular_files import read_bytes

_Choice = TypeVar("_Choice", bound=StrEnum)

_SUITE_KEYS: Final = frozenset({"name", "expectations", "meta"})
_ENTRY_KEYS: Final = frozenset({"type", "kwargs", "severity", "meta"})
_META_KEYS: Final = frozenset({"rule", "why", "forces"})


class Force(StrEnum):
    """The verdict that a rule forces where it does not hold."""

    BROKEN = "BROKEN"
    UNKNOWN = "UNKNOWN"
    NOTHING = "nothing"


@dataclass(frozen=True)
class DeclaredRule:
    """One entry of a suite file; `place` is its file and rule for messages, `kwargs` may hold $PARAMETERs."""

    place: str
    rule: str
    type: str
    kwargs: Mapping[str, Any]
    severity: Severity
    forces: Force
    why: str

    def bound(self, parameters: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments with parameters replaced by their values.

        Raises:
            SuiteError: where a parameter has no value, or None for one.
        """
        values: dict[str, Any] = {}
        for argument, value in self.kwargs.items():
            name = parameter_in(value)
            if name is not None and parameters.get(name) is None:
                known = ", ".join(sorted(parameters))
                raise SuiteError(
                    f"{self.place}: {argument}: parameter {name} has no value; there are: {known}"
                )
            values[argument] = value if name is None else parameters[name]
        return values


@dataclass(frozen=True)
class DeclaredSuite:
    """One suite file: its name, its rules in their order, and the digest of its bytes."""

    name: str
    rules: tuple[DeclaredRule, ...]
    digest: str


def declared_for(guarantee: Guarantee, folder: Path) -> DeclaredSuite:
    """Return the rules under a guarantee: those for every statement, then the guarantee's own.

    Raises:
        SuiteError: where a file cannot be read or used, or two rules have one name.
    """
    parts = (read_suite(folder / "statement.json"), read_suite(folder / "guarantees" / f"{guarantee}.json"))
    rules = tuple(rule for part in parts for rule in part.rules)
    _refuse_repeated(rules)
    digest = hashlib.sha256("".join(part.digest for part in parts).encode()).hexdigest()
    return DeclaredSuite("+".join(part.name for part in parts), rules, digest)


def read_suite(file: Path) -> DeclaredSuite:
    """Return the suite in a file.

    Raises:
        SuiteError: where the file cannot be read, is not a suite, has no rules, or an incomplete one.
    """
    try:
        content = read_bytes(file)
        suite = json.loads(content, object_pairs_hook=_without_repeated_keys)
    except (OSError, ValueError) as error:
        raise SuiteError(f"{file}: expected an expectation suite as JSON: {error}") from error
    _require_keys(str(file), suite, _SUITE_KEYS, optional=frozenset({"meta"}))
    if suite["name"] != file.stem:
        raise SuiteError(f"{file}: name: expected the file's own, {file.stem!r}; found {suite['name']!r}")
    entries = suite["expectations"]
    if not isinstance(entries, list) or not entries:
        raise SuiteError(
            f"{file}: expectations: expected a list of rules, found none; an empty suite passes everything"
        )
    rules = tuple(_rule_in(f"{file}: expectations[{place}]", entry) for place, entry in enumerate(entries))
    _refuse_repeated(rules)
    return DeclaredSuite(suite["name"], rules, hashlib.sha256(content).hexdigest())


def parameter_in(value: object) -> str | None:
    """Return the name in `{"$PARAMETER": name}`, or None where the value is not of that form."""
    if isinstance(value, dict) and set(value) == {"$PARAMETER"}:
        return str(value["$PARAMETER"])
    return None


def _rule_in(place: str, entry: Any) -> DeclaredRule:
    _require_keys(place, entry, _ENTRY_KEYS)
    _require_keys(f"{place}.meta", entry["meta"], _META_KEYS)
    meta, kwargs = entry["meta"], entry["kwargs"]
    for key in ("rule", "why"):
        if not isinstance(meta[key], str) or not meta[key].strip():
            raise SuiteError(f"{place}.meta.{key}: expected a text, found {meta[key]!r}")
    named = f"{place} ({meta['rule']})"
    severity = _one_of(Severity, entry["severity"], f"{named}.severity")
    forces = _one_of(Force, meta["forces"], f"{named}.meta.forces")
    if (severity is Severity.CRITICAL) != (forces is not Force.NOTHING):
        raise SuiteError(
            f"{named}: a rule is critical exactly where it forces a verdict; found {severity}, {forces}"
        )
    if not isinstance(kwargs, dict):
        raise SuiteError(f"{named}.kwargs: expected an object, found {kwargs!r}")
    for argument, value in kwargs.items():
        _refuse_unusable(f"{named}.kwargs.{argument}", value)
    return DeclaredRule(named, meta["rule"], str(entry["type"]), kwargs, severity, forces, meta["why"])


def _refuse_unusable(place: str, value: object) -> None:
    """Refuse null, which passes everything, and a `$PARAMETER` where it would not be replaced."""
    if value is None:
        raise SuiteError(f'{place}: expected a value, found null; "no limit" is written "unlimited"')
    if isinstance(value, dict) and (parameter_in(value) is None or not isinstance(value["$PARAMETER"], str)):
        raise SuiteError(f'{place}: expected a value or {{"$PARAMETER": name}}, found {value!r}')


def _one_of(kind: type[_Choice], value: Any, place: str) -> _Choice:
    try:
        return kind(value)
    except ValueError as error:
        raise SuiteError(f"{place}: expected one of {', '.join(kind)}; found {value!r}") from error


def _require_keys(
    place: str, found: Any, expected: frozenset[str], optional: frozenset[str] = frozenset()
) -> None:
    if not isinstance(found, dict):
        raise SuiteError(f"{place}: expected an object with {', '.join(sorted(expected))}; found {found!r}")
    unknown = sorted(set(found) - expected)
    missing = sorted(expected - optional - set(found))
    if unknown or missing:
        problems = [f"unknown key {key}" for key in unknown] + [f"missing key {key}" for key in missing]
        raise SuiteError(f"{place}: {', '.join(problems)}; expected {', '.join(sorted(expected))}")


def _refuse_repeated(rules: tuple[DeclaredRule, ...]) -> None:
    repeated = [name for name, count in Counter(rule.rule for rule in rules).items() if count > 1]
    if repeated:
        places = "; ".join(rule.place for rule in rules if rule.rule in repeated)
        raise SuiteError(
            f"{places}: expected every rule to have a name of its own, found {', '.join(repeated)} twice"
        )


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; Python's reader would silently keep the last of two equal keys."""
    repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"the key {repeated[0]} stands twice in one object")
    return dict(pairs)
