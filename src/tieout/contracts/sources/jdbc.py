"""The source kind `jdbc`: the rows of one table or query behind a named connection."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from tieout.contracts.scalars import ConnectionName, Model, Text


class JdbcSource(Model):
    """Rows of a table, with its schema where needed, or of a query."""

    kind: Literal["jdbc"] = "jdbc"
    connection: ConnectionName
    table: Text | None = None
    query: Text | None = None

    @model_validator(mode="after")
    def _has_one_of_table_and_query(self) -> Self:
        if (self.table is None) == (self.query is None):
            found = "neither" if self.table is None else "both"
            raise ValueError(f"expected either table or query, found {found}")
        return self
