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
from tieout.engine.reading import open_ledgers, read_evidence
from tieout.engine.session import suited_to
from tieout.engine.sources import READERS
from tieout.engine.sources.paths import local_path
from tieout.engine.sources.source import FAULT, FILE, TEXT, Reading, Request
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


def reading_of(spark: SparkSession, base_dir: Path, ledger: str, source: Mapping[str, Any]) -> Reading:
    """What the reader of one ledger's source finds, before its rows are conformed, counted and kept."""
    spec = contract_of(base_dir, {ledger: {"source": source}}).ledgers[Ledger(ledger)].source
    return READERS[spec.kind](spec, Request(spark, Ledger(ledger), base_dir, NOW, group="loader"))


def faults_of(
    spark: SparkSession, base_dir: Path, ledger: str, window: Window = WINDOW, **spec: Any
) -> list[tuple[str | None, str | None, str]]:
    """The file's name, the text and the fault of each row that does not conform: a coverage names five of them only."""
    opened = open_ledgers(spark, contract_of(base_dir, {ledger: spec}), window, NOW)[Ledger(ledger)]
    assert opened.found is not None
    with suited_to(spark, is_small=True):
        rows = opened.found.rows.where(f"{FAULT} IS NOT NULL").select(FILE, TEXT, FAULT).collect()
    return [(None if file is None else local_path(file).name, text, fault) for file, text, fault in rows]


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


def rows_of(evidence: Evidence | Reading, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, in the order of their columns."""
    assert evidence.rows is not None
    rows: list[Row] = evidence.rows.select(*columns).collect()
    return sorted((tuple(row) for row in rows), key=repr)
