"""The editors' JSON Schema: current in the docs, a schema itself, and in agreement with the loader."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tieout.contracts.document import read_document
from tieout.contracts.schema import json_schema

REPOSITORY = Path(__file__).parents[3]


def test_the_published_schema_is_current() -> None:
    """Written by `tieout schema contract > docs/reference/contract.schema.json`."""
    published = json.loads((REPOSITORY / "docs/reference/contract.schema.json").read_text())

    assert published == json_schema()


def test_the_examples_satisfy_the_schema() -> None:
    """An editor that knows the schema shows no error in any example."""
    jsonschema.Draft202012Validator.check_schema(json_schema())
    validator = jsonschema.Draft202012Validator(json_schema())
    examples = sorted(REPOSITORY.glob("examples/*/contract*.yml"))

    assert examples
    for example in examples:
        validator.validate(read_document(example).value)


@pytest.mark.parametrize("field", ["colums", "base_dir", "$schema"])
def test_the_schema_refuses_unknown_fields(field: str) -> None:
    """An editor underlines what the loader would refuse."""
    errors = jsonschema.Draft202012Validator(json_schema()).iter_errors({field: 1})

    assert any(error.validator == "additionalProperties" and field in error.message for error in errors)
