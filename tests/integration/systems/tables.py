"""Tables that an engine's application writes: how it reaches them, and the ledgers that are read from them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.integration.kafka_faults.contract import UNTIL_READ
from tests.integration.systems.scene import Stage

CONNECTION = "systems"
"""The name of the contract's connection."""


def table_settings(stage: Stage, application: str = "") -> dict[str, str]:
    """Return the database and the schema of a play, as the applications are told them.

    Where a play has several applications, each has a schema of its own.
    """
    place = urlsplit(stage.database)
    login = f"user={place.username}&password={place.password}"
    return {
        "database": f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}?{login}",
        "schema": _schema(stage, application),
    }


def rows_of(stage: Stage, table: str, application: str = "") -> dict[str, Any]:
    """Return the ledger `delivered`: a table of the play, whose columns have the canonical names."""
    return {"source": _source(stage, table, application), "coverage": UNTIL_READ}


def ranges_of(stage: Stage) -> dict[str, Any]:
    """Return the ledger `committed`: the table of the ranges that were processed, one row each, added in order."""
    columns = {"first_offset": "from_offset", "committed_offset": "until_offset"}
    return {"source": _source(stage, "ranges"), "columns": columns, "coverage": UNTIL_READ}


def _source(stage: Stage, table: str, application: str = "") -> dict[str, str]:
    return {"kind": "jdbc", "connection": CONNECTION, "table": f"{_schema(stage, application)}.{table}"}


def _schema(stage: Stage, application: str) -> str:
    return "_".join(filter(None, (*stage.name.split("-"), application)))
