"""The schema that ships with the package: valid itself, and true of statements and breaks."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tieout.model import Guarantee, Identity, Severity, Verdict
from tieout.reporting.schema import SCHEMA_VERSION, statement_schema
from tieout.reporting.sheet import COUNTS


def _validate(value: object, definition: str | None = None) -> None:
    schema = statement_schema()
    if definition:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def test_the_schema_is_one_and_knows_the_words() -> None:
    """It is valid JSON Schema, and its words are the vocabulary's."""
    schema = statement_schema()
    properties = schema["properties"]

    jsonschema.Draft202012Validator.check_schema(schema)
    assert properties["schema_version"]["const"] == SCHEMA_VERSION
    assert properties["verdict"]["enum"] == list(Verdict)
    assert properties["guarantee"]["enum"] == list(Guarantee)
    assert properties["identity"]["enum"] == list(Identity)
    assert set(COUNTS) < set(schema["$defs"]["partition"]["required"])
    assert properties["checks"]["items"]["properties"]["severity"]["enum"] == list(Severity)


def test_statements_and_breaks_satisfy_it(statement: dict[str, Any], lost_break: dict[str, Any]) -> None:
    """The statement that the other tests render is one."""
    _validate(statement)
    _validate(lost_break, "break")


@pytest.mark.parametrize("key", ["verdict", "partitions", "coverage", "not_judged", "breaks_truncated"])
def test_a_statement_without_a_part_does_not(statement: dict[str, Any], key: str) -> None:
    """Every part is required."""
    del statement[key]

    with pytest.raises(jsonschema.ValidationError, match=f"'{key}' is a required property"):
        _validate(statement)


def test_a_count_is_never_negative(statement: dict[str, Any]) -> None:
    """A negative count is a defect that the schema shows."""
    statement["partitions"][1]["lost"] = -1

    with pytest.raises(jsonschema.ValidationError):
        _validate(statement)
