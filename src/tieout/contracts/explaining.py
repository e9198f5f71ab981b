"""Explains a contract's errors in its own terms instead of the validation library's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tieout.contracts.rules import RULES_ERROR, Problem, did_you_mean
from tieout.contracts.schema import known_fields
from tieout.contracts.secrets import REASON as SECRET_FOUND
from tieout.contracts.secrets import is_secret

_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dict_type": "a mapping of fields",
    "tuple_type": "a list",
    "too_short": "at least one",
}
_FOLLOWS_FROM_ANOTHER: Final = "default_factory_not_called"
_CUT_OFF: Final = "; within {…} an expression with a comma needs quotes"
_QUOTED: Final = "; write it in quotes"
_LONGEST_VALUE: Final = 60
_LONGEST_REASON: Final = 600
_MOST_PROBLEMS: Final = 50

FieldPath = tuple[str | int, ...]


def problems_of(
    error: ValidationError, document: dict[str, Any], model: type[BaseModel]
) -> tuple[Problem, ...]:
    """Return the first problems of a validation error, each with the path of its field in the document."""
    details = error.errors()
    problems = tuple(
        problem for detail in details[:_MOST_PROBLEMS] for problem in _problems(detail, document, model)
    )
    remaining = details[_MOST_PROBLEMS:]
    if not remaining:
        return problems
    return (
        *problems,
        Problem(_document_path(remaining[0], document), f"and {len(remaining)} more problems from here on"),
    )


def _problems(detail: ErrorDetails, document: dict[str, Any], model: type[BaseModel]) -> Iterator[Problem]:
    kind = detail["type"]
    if kind == RULES_ERROR:
        yield from detail["ctx"]["problems"]
    elif kind != _FOLLOWS_FROM_ANOTHER:
        path = _document_path(detail, document)
        if kind == "extra_forbidden":
            reason = f"unknown field{did_you_mean(str(path[-1]), known_fields(path[:-1], document, model))}"
        else:
            reason = _EXPLAINERS.get(kind, _of_wrong_type)(detail, path)
        if is_secret(reason):
            reason = SECRET_FOUND
        yield Problem(path, reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…")


def _document_path(detail: ErrorDetails, document: object) -> FieldPath:
    """Return the location without the names of unions and their members, which are not in the document."""
    path: list[str | int] = []
    value: Any = document
    for step in detail["loc"]:
        is_key = isinstance(value, dict) and step in value
        is_index = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if is_key or is_index:
            value = value[step]
            path.append(step)
    if detail["type"] == "missing":
        path.append(detail["loc"][-1])
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        path.append("kind")
    return tuple(path)


def _required(_detail: ErrorDetails, _path: FieldPath) -> str:
    return "this field is required"


def _refused_value(detail: ErrorDetails, _path: FieldPath) -> str:
    return str(detail["ctx"]["error"])


def _unknown_choice(detail: ErrorDetails, _path: FieldPath) -> str:
    choices = _choices(detail["ctx"].get("expected", detail["ctx"].get("expected_tags")))
    found = detail["ctx"].get("tag", detail["input"])
    return f"found {_shown(found)}{did_you_mean(str(found), choices)}"


def _no_match(detail: ErrorDetails, _path: FieldPath) -> str:
    return f"expected text that matches {detail['ctx']['pattern']}, found {_shown(detail['input'])}"


def _of_wrong_type(detail: ErrorDetails, path: FieldPath) -> str:
    kind, message = detail["type"], detail["msg"].removeprefix("Input should be ")
    is_cut_off = path[-2:-1] == ("columns",) and not str(path[-1]).isidentifier()
    is_number = kind == "string_type" and isinstance(detail["input"], int | float)
    advice = _CUT_OFF if is_cut_off else _QUOTED if is_number else ""
    return f"expected {_EXPECTED.get(kind, message)}, found {_shown(detail['input'])}{advice}"


_EXPLAINERS: Final[dict[str, Callable[[ErrorDetails, FieldPath], str]]] = {
    "missing": _required,
    "value_error": _refused_value,
    "enum": _unknown_choice,
    "literal_error": _unknown_choice,
    "union_tag_invalid": _unknown_choice,
    "union_tag_not_found": _required,
    "string_pattern_mismatch": _no_match,
}


def _choices(listed: object) -> list[str]:
    """Return the choices in a list such as `'a', 'b' or 'c'`."""
    return [choice.strip().strip("'") for choice in str(listed).replace(" or ", ", ").split(",")]


def _shown(value: object) -> str:
    """Return a value as JSON, shortened, or a placeholder if it may be a secret."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if is_secret(text):
        return "what looks like a secret"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
