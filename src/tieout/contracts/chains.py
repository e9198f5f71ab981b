"""Contracts in a chain: which one comes before which, and what is wrong with a chain of them.

A message that passes several pipelines is judged hop by hop, by a contract each. `after` names the hop before. No
verdict depends on it; it tells the store which incidents are one loss, and `tieout trace` which way to go.

Docs: docs/how-to/follow-a-chain.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tieout.contracts.scalars import Model, Text

PIPELINE_PATTERN: Final = r"^[a-z][a-z0-9_]{0,99}$"
"""A pipeline's name is also its DAG's, so it keeps to what both a DAG and a plain SQL name may hold."""


class After(Model):
    """The hop before, and which id a message has there; a text alone is its pipeline.

    `id` is a regular expression that a whole id of this contract matches. Its first group, or all of it where it has
    none, is the message's id at the hop before.
    """

    pipeline: Annotated[str, Field(pattern=PIPELINE_PATTERN)]
    id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        return {"pipeline": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return a schema that allows the short form."""
        full = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"type": "string", "pattern": PIPELINE_PATTERN}, full]}

    def id_there(self, message_id: str) -> str | None:
        """Return a message's id at the hop before, or None where `id` does not match it.

        >>> After(pipeline="orders", id="(.+)/enriched").id_there("o-17/enriched")
        'o-17'
        >>> After(pipeline="orders").id_there("o-17")
        'o-17'
        """
        if self.id is None:
            return message_id
        found = re.fullmatch(self.id, message_id)
        return None if found is None else (found[1] if found.re.groups else found[0])


def hops_before(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the hops before a pipeline, the nearest first; a cycle ends where it closes.

    >>> hops_before("table", {"table": "routed", "routed": "enriched"})
    ('routed', 'enriched')
    >>> hops_before("a", {"a": "b", "b": "a"})
    ('b',)
    """
    found: list[str] = []
    before = predecessors.get(pipeline)
    while before is not None and before != pipeline and before not in found:
        found.append(before)
        before = predecessors.get(before)
    return tuple(found)


def whole_way(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the hops of a pipeline's chain in their order: those before it, itself, and all that come after it.

    >>> whole_way("routed", {"table": "routed", "routed": "enriched", "files": "routed", "other": None})
    ('enriched', 'routed', 'files', 'table')
    """
    way = [*reversed(hops_before(pipeline, predecessors)), pipeline]
    waiting = [pipeline]
    while waiting:
        here = waiting.pop(0)
        after = sorted(name for name, before in predecessors.items() if before == here and name not in way)
        way += after
        waiting += after
    return tuple(way)


def cycle_of(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the cycle that a pipeline is part of, from itself to itself; empty where there is none.

    >>> cycle_of("a", {"a": "b", "b": "a"}), cycle_of("c", {"a": "b", "b": "a", "c": "a"})
    (('a', 'b', 'a'), ())
    """
    before = hops_before(pipeline, predecessors)
    is_closed = bool(before) and predecessors.get(before[-1]) == pipeline
    return (pipeline, *before, pipeline) if is_closed else ()
