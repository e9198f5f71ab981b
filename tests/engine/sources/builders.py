"""Contracts and evidence of one ledger, as small as they can be, for the tests of the readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
from pyspark.sql import Row, SparkSession

from tieout.contracts import Contract
from tieout.engine.evidence import Evidence
from tieout.engine.reading import read_evidence
from tieout.model import Ledger, Window

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
EVERYTHING = {"kind": "files", "format": "jsonl", "path": "unused-*.jsonl"}


def contract_of(base_dir: Path, ledgers: Mapping[str, Mapping[str, Any]]) -> Contract:
    """A contract with these ledgers, and with whatever else a contract needs."""
    document = {
        "version": 1,
        "pipeline": "orders",
        "guarantee": "at_least_once",
        "group": "loader",
        "ledgers": {"produced": {"source": EVERYTHING}, "delivered": {"source": EVERYTHING}, **ledgers},
    }
    return Contract.model_validate_json(json.dumps(document)).located_in(base_dir)


def evidence_of(
    spark: SparkSession, base_dir: Path, ledger: str, now: datetime = NOW, **spec: Any
) -> Evidence:
    """The evidence of one ledger that is described by `spec`."""
    found = read_evidence(spark, contract_of(base_dir, {ledger: spec}), WINDOW, now)
    return found[Ledger(ledger)]


def jsonl(path: str, **options: Any) -> dict[str, Any]:
    """A source of JSON lines."""
    return {"kind": "files", "format": "jsonl", "path": path, **options}


@contextmanager
def schema_of_its_own(postgres_url: str, name: str) -> Iterator[Callable[[str], None]]:
    """Run statements on a server with an empty schema, which goes with the block."""
    server = psycopg2.connect(postgres_url)
    server.autocommit = True

    def run(statement: str) -> None:
        with server.cursor() as cursor:
            cursor.execute(statement)

    run(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")
    yield run
    run(f"DROP SCHEMA {name} CASCADE")
    server.close()


def rows_of(evidence: Evidence, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, in the order of their columns."""
    rows: list[Row] = evidence.rows.select(*columns).collect()
    return sorted((tuple(row) for row in rows), key=repr)
