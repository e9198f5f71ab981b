"""The source kind `jdbc`: the rows of one table or query behind a named connection."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import model_validator

from tieout.contracts.scalars import ConnectionName, Model, Text

_LIMIT: Final = re.compile(
    r"\b(?:limit\s+(?!all\b)[\w']+|fetch\s+(?:first|next)\s[^()]*)(?:\s+offset\s+[\w']+)?\s*;?\s*$",
    re.IGNORECASE,
)
"""The end of a query that leaves out rows, as database tools add it."""


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

    @model_validator(mode="after")
    def _has_all_rows(self) -> Self:
        limit = None if self.query is None else _LIMIT.search(self.query)
        if limit is not None:
            raise ValueError(
                f"expected a query of all rows, found {limit[0].strip()}: others would be missing"
            )
        return self
