"""The JSON Schema of contracts, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from tieout.contracts.contract import Contract

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(mode="validation", by_alias=True)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a contract file.

    It describes the fields and their types; the rules between fields are checked by `load_contract` only.
    """
    return {"$schema": DIALECT, **_schema(Contract), "title": "Tieout contract"}


def known_fields(
    path: tuple[str | int, ...], document: dict[str, Any], model: type[BaseModel]
) -> tuple[str, ...]:
    """Return the names of the fields allowed in the document's mapping at the path, in order."""
    schema = _schema(model)
    nodes = list(_branches(schema, document, schema))
    value: Any = document
    for step in path:
        value = value[step]
        nodes = [
            branch
            for node in nodes
            for child in _children(node, step)
            for branch in _branches(child, value, schema)
        ]
    return tuple(dict.fromkeys(name for node in nodes for name in node.get("properties", ())))


def _children(node: dict[str, Any], step: str | int) -> Iterator[dict[str, Any]]:
    """Yield the schema of the value under a key or at an index of the node."""
    if isinstance(step, int):
        child = node.get("items")
    else:
        child = node.get("properties", {}).get(step, node.get("additionalProperties"))
    if isinstance(child, dict):
        yield child


def _branches(node: dict[str, Any], value: object, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas that may apply to the value, with references and alternatives resolved."""
    if "$ref" in node:
        yield from _branches(schema["$defs"][node["$ref"].rsplit("/", 1)[-1]], value, schema)
    for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _branches(choice, value, schema)
    kind = node.get("properties", {}).get("kind", {}).get("const")
    is_of_another_kind = kind is not None and isinstance(value, dict) and value.get("kind") != kind
    if not is_of_another_kind and {"properties", "additionalProperties", "items"} & node.keys():
        yield node
