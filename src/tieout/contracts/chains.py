"""Chains of contracts: their order, and cycles in it.

A message that passes several pipelines is judged at each hop by that hop's contract. `after` names the previous hop.
No verdict depends on it; the store uses it to group incidents of one loss, and `tieout trace` to follow a message.

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
"""A pipeline's name is also its DAG's, so it is limited to what both a DAG and an unquoted SQL name allow."""


class After(Model):
    """The hop before, and which id a message has there; a text alone is its pipeline.

    `id` is a regular expression that a whole id of this contract matches. Its first group, or all of it where it has
    none, is the message's id at the hop before.
    """

    pipeline: Annotated[str, Field(pattern=PIPELINE_PATTERN)]
    id: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"pipeline": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return a schema that allows the short form."""
        full = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"type": "string", "pattern": PIPELINE_PATTERN}, full]}

    def id_at_predecessor(self, message_id: str) -> str | None:
        """Return a message's id at the previous hop, or None if `id` does not match it.

        >>> After(pipeline="orders", id="(.+)/enriched").id_at_predecessor("o-17/enriched")
        'o-17'
        >>> After(pipeline="orders").id_at_predecessor("o-17")
        'o-17'
        """
        if self.id is None:
            return message_id
        match = re.fullmatch(self.id, message_id)
        return None if match is None else (match[1] if match.re.groups else match[0])


def hops_before(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the hops before a pipeline, the nearest first, each hop of a cycle once.

    >>> hops_before("table", {"table": "routed", "routed": "enriched"})
    ('routed', 'enriched')
    >>> hops_before("a", {"a": "b", "b": "a"})
    ('b',)
    """
    hops: list[str] = []
    before = predecessors.get(pipeline)
    while before is not None and before != pipeline and before not in hops:
        hops.append(before)
        before = predecessors.get(before)
    return tuple(hops)


def whole_chain(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the hops of a pipeline's chain in order: those before it, itself, and all that come after it.

    >>> whole_chain("routed", {"table": "routed", "routed": "enriched", "files": "routed", "other": None})
    ('enriched', 'routed', 'files', 'table')
    """
    chain = [*reversed(hops_before(pipeline, predecessors)), pipeline]
    pending = [pipeline]
    while pending:
        hop = pending.pop(0)
        after = sorted(name for name, before in predecessors.items() if before == hop and name not in chain)
        chain += after
        pending += after
    return tuple(chain)


def cycle_of(pipeline: str, predecessors: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the cycle that a pipeline is part of, from itself to itself; empty if there is none.

    >>> cycle_of("a", {"a": "b", "b": "a"}), cycle_of("c", {"a": "b", "b": "a", "c": "a"})
    (('a', 'b', 'a'), ())
    """
    before = hops_before(pipeline, predecessors)
    is_closed = bool(before) and predecessors.get(before[-1]) == pipeline
    return (pipeline, *before, pipeline) if is_closed else ()
