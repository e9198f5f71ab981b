"""The source kind `files`: rows in files of one format, wherever Spark can read them."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tieout.contracts.scalars import Model, Setting, Text
from tieout.contracts.sources.options import allowed_options


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


TABLE_FORMATS: Final = frozenset({"delta", "iceberg"})
"""Table formats: a path is a table's folder, and the rows are those of its current snapshot."""


class FilesSource(Model):
    """Rows in files; `options` are some of those of Spark's reader for the format, and a table has none."""

    kind: Literal["files"] = "files"
    format: Literal["jsonl", "csv", "parquet", "orc", "delta", "iceberg"]
    path: Paths
    options: dict[str, Setting] = Field(default={})

    @property
    def is_table(self) -> bool:
        """Whether each path is a table, whose metadata lists its current files."""
        return self.format in TABLE_FORMATS

    @property
    def reader_options(self) -> dict[str, str]:
        """The options as Spark spells them, with texts as values."""
        return allowed_options(self.format, self.options)

    @model_validator(mode="after")
    def _has_options_that_leave_out_nothing(self) -> Self:
        if self.is_table and self.options:
            raise ValueError(
                f"options: expected none, because a {self.format} table is read as it is now, "
                f"found {', '.join(sorted(self.options))}"
            )
        allowed_options(self.format, self.options)
        return self
