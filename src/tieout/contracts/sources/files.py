"""The source kind `files`: rows in files of one format, wherever Spark can read them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from tieout.contracts.scalars import Model, Setting, Text


def _as_tuple(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Paths = Annotated[
    tuple[Text, ...],
    BeforeValidator(_as_tuple),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]
"""One path or several, always held as a tuple; each may have wildcards.

A relative path starts at the contract's folder.
"""


class FilesSource(Model):
    """Rows in files; `options` are those of Spark's reader for the format."""

    kind: Literal["files"] = "files"
    format: Literal["jsonl", "csv", "parquet", "orc"]
    path: Paths
    options: dict[str, Setting] = Field(default={})
