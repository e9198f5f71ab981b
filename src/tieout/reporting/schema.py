"""The JSON Schemas of what Tieout writes: `statement.json`, one line of `breaks.jsonl`, and a trace.

Fields may be added within a schema version; existing ones keep their names and meaning.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final, cast

SCHEMA_VERSION: Final = 1
"""The value of a statement's `schema_version` that `statement.schema.json` describes."""


@cache
def statement_schema() -> dict[str, Any]:
    """Return the JSON Schema of `statement.json`; its `$defs/break` is a line of `breaks.jsonl`."""
    return _schema("statement")


@cache
def trace_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `tieout trace --json` prints."""
    return _schema("trace")


def _schema(name: str) -> dict[str, Any]:
    text = resources.files("tieout.reporting").joinpath(f"{name}.schema.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))
