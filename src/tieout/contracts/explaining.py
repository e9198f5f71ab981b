"""Saying what is wrong with a contract in its own words, instead of the validation library's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tieout.contracts.rules import RULES_ERROR, Problem, did_you_mean
from tieout.contracts.schema import known_fields
from tieout.contracts.secrets import is_secret

_EXPECTED: Final = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "model_type": "expected a mapping of fields",
    "model_attributes_type": "expected a mapping of fields",
    "dict_type": "expected a mapping of fields",
    "tuple_type": "expected a list",
    "too_short": "expected at least one",
}
_FOLLOWS_FROM_ANOTHER: Final = "default_factory_not_called"
_SHOWN: Final = 60


def problems_of(error: ValidationError, document: dict[str, Any]) -> tuple[Problem, ...]:
    """Return the problems behind a validation error, each with the path of its field in the document."""
    return tuple(problem for detail in error.errors() for problem in _problems(detail, document))


def _problems(detail: ErrorDetails, document: dict[str, Any]) -> Iterator[Problem]:
    kind = detail["type"]
    if kind == RULES_ERROR:
        yield from detail["ctx"]["problems"]
    elif kind != _FOLLOWS_FROM_ANOTHER:
        path = _document_path(detail["loc"], document)
        if kind in ("missing", "extra_forbidden"):
            path = path if path and path[-1] == detail["loc"][-1] else (*path, detail["loc"][-1])
        yield Problem(path, _reason(detail, path, document))


def _document_path(loc: tuple[str | int, ...], document: object) -> tuple[str | int, ...]:
    """Return the location without the names of unions and their members, which the document does not have."""
    path: list[str | int] = []
    value = document
    for step in loc:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            continue
        path.append(step)
    return tuple(path)


def _reason(detail: ErrorDetails, path: tuple[str | int, ...], document: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "this field is required"
    if kind == "extra_forbidden":
        return f"unknown field{did_you_mean(str(path[-1]), known_fields(path[:-1], document))}"
    if kind == "value_error":
        return str(context["error"])
    if kind in ("enum", "literal_error"):
        return _not_one_of(
            detail["input"], _choices(str(context["expected"])), is_key=detail["loc"][-1] == "[key]"
        )
    if kind == "union_tag_invalid":
        return _not_one_of(context["tag"], _choices(str(context["expected_tags"])), is_key=False)
    if kind == "union_tag_not_found":
        return "kind: this field is required"
    if kind == "string_pattern_mismatch":
        return f"expected text that matches {context['pattern']}, found {_shown(detail['input'])}"
    expected = _EXPECTED.get(kind) or detail["msg"].replace("Input should be", "expected")
    return f"{expected}, found {_shown(detail['input'])}"


def _choices(text: str) -> list[str]:
    return [choice.strip().strip("'") for choice in text.replace(" or ", ", ").split(",")]


def _not_one_of(found: object, choices: list[str], *, is_key: bool) -> str:
    what = "unknown name" if is_key else f"found {_shown(found)}"
    return f"{what}{did_you_mean(str(found), choices)}"


def _shown(value: object) -> str:
    """Return what was found as JSON, shortened, or nothing of it where it may be a secret."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if is_secret(text):
        return "what looks like a secret"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
