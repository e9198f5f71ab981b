"""The canonical columns of each ledger in DuckDB's types, from the ones that readers conform to."""

from __future__ import annotations

from typing import Final

from tieout.engine.ledger import SCHEMAS
from tieout.model import Ledger

_TYPES: Final = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "array<struct<topic:string,partition:int>>": 'STRUCT(topic VARCHAR, "partition" INTEGER)[]',
}

COLUMNS: Final[dict[Ledger, dict[str, str]]] = {
    ledger: {field.name: _TYPES[field.dataType.simpleString()] for field in schema}
    for ledger, schema in SCHEMAS.items()
}
"""Per ledger its columns and their types, in the order of taxonomy section 1."""
