"""Holds a statement and its breaks against what a golden history expects; says every difference at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

_BREAK_KEYS = {"id": "message_id", "class": "class", "locus": "locus", "flags": "flags", "cause": "cause"}
_CAUSES = ("cause", "admissible")


def differences(
    expect: Mapping[str, Any],
    statement: Mapping[str, Any],
    breaks: Iterable[Mapping[str, Any]],
    *,
    unjudged: frozenset[str] = frozenset(),
) -> list[str]:
    """Return one line for each way in which the statement is not the expected one; empty means that it is.

    Args:
        expect: what the golden history says.
        statement: the statement found.
        breaks: the rows of its breaks.
        unjudged: classes that the judge does not know yet; what is expected of them is left out.
    """
    found = []
    if expect["verdict"] != statement["verdict"]:
        found.append(f"verdict: expected {expect['verdict']}, found {statement['verdict']}")
    for name in ("classes", "flags"):
        expected = {key: count for key, count in expect.get(name, {}).items() if key not in unjudged}
        if name in expect and expected != _without_zeros(statement[name]):
            found.append(f"{name}: expected {expected}, found {statement[name]}")
    found += _count_differences("totals", expect.get("totals", {}), _totals(statement))
    found += _count_differences("offsets", expect.get("offsets", {}), _offset_totals(statement))
    listed = {entry["class"] for entry in statement["not_judged"]}
    found += [f"not_judged: {name} is missing" for name in expect.get("not_judged", []) if name not in listed]
    notes = "\n".join(str(text) for text in _texts(statement.get("coverage", {})))
    if notes:  # the oracle writes no texts
        found += [f"says: {text} is missing" for text in expect.get("says", []) if text not in notes]
    if "breaks" in expect:
        wanted_breaks = [row for row in expect["breaks"] if row["class"] not in unjudged]
        found += _break_differences(wanted_breaks, list(breaks))
    return found


def _texts(coverage: Mapping[str, Any]) -> Iterable[str]:
    for ledger in coverage.values():
        if isinstance(ledger, Mapping):
            yield from (str(ledger.get("gap")), *ledger.get("notes", ()))


def _without_zeros(value: Any) -> Any:
    return {name: count for name, count in value.items() if count} if isinstance(value, Mapping) else value


def _totals(statement: Mapping[str, Any]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for numbers in statement["partitions"]:
        totals.update(
            {name: count for name, count in numbers.items() if name not in ("topic", "partition", "offsets")}
        )
    return totals


def _offset_totals(statement: Mapping[str, Any]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for numbers in statement["partitions"]:
        totals.update(numbers["offsets"] or {})
    return totals


def _count_differences(name: str, expected: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    return [
        f"{name}.{key}: expected {count}, found {found.get(key, 0)}"
        for key, count in expected.items()
        if found.get(key, 0) != count
    ]


def _break_differences(expected: list[Mapping[str, Any]], found: list[Mapping[str, Any]]) -> list[str]:
    left = list(found)
    missing = []
    for expected_break in expected:
        fitting = next((row for row in left if _fits(expected_break, row)), None)
        if fitting is None:
            missing.append(f"breaks: missing {dict(expected_break)}")
        else:
            left.remove(fitting)
    shown = ("message_id", "class", "flags", "locus", *_CAUSES, "partition", "offset")
    return missing + [f"breaks: unexpected { {key: row.get(key) for key in shown} }" for row in left]


def _fits(expected: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    for key, value in expected.items():
        if key == "pos":
            place = None if row["offset"] is None else f"{row['partition']}/{row['offset']}"
            if place != value:
                return False
        elif key == "flags":
            if sorted(row["flags"]) != sorted(value):
                return False
        elif key in _CAUSES and key not in row:
            # The oracle tells no cause.
            continue
        elif key == "admissible":
            if sorted(row[key]) != sorted(value):
                return False
        elif row[_BREAK_KEYS[key]] != value:
            return False
    return True
