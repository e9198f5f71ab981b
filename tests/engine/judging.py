"""Runs the engine on a golden or random history and returns what it says, in the oracle's shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from tests.oracle import OracleCoverage

from tieout.contracts import Contract
from tieout.engine.evidence import Evidence, LedgerCoverage
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.reconciling import reconciled
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.staging import break_lines
from tieout.model import Ledger, Window

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RUN_ID = "00000000-0000-4000-8000-000000000000"


def engine_statement(
    spark: SparkSession,
    contract: Contract,
    window: Window,
    ledgers: Mapping[Ledger, Iterable[Mapping[str, Any]]],
    coverage: Mapping[Ledger, OracleCoverage],
    present: Mapping[Ledger, frozenset[str]] | None = None,
) -> dict[str, Any]:
    """Return the engine's statement of a history, with its `breaks` as rows."""
    evidence = {
        ledger: _evidence(spark, ledger, list(rows), coverage[ledger], (present or {}).get(ledger))
        for ledger, rows in ledgers.items()
    }
    with suited_to(spark, 0):
        found = reconciled(Scope(contract, window, evidence), run_id=RUN_ID, now=NOW)
        return found.statement | {"breaks": list(break_lines(found.breaks))}


def _evidence(
    spark: SparkSession,
    ledger: Ledger,
    rows: list[Mapping[str, Any]],
    coverage: OracleCoverage,
    present: frozenset[str] | None,
) -> Evidence:
    schema = SCHEMAS[ledger]
    values = [tuple(row.get(name) for name in schema.names) for row in rows]
    found = present if present is not None else frozenset(schema.names)
    return Evidence(
        ledger=ledger,
        rows=spark.createDataFrame(values, schema),
        present=found,
        coverage=LedgerCoverage(
            is_present=True,
            covers_from=coverage.covers_from,
            complete_until=coverage.complete_until,
            names_all_producers=coverage.names_all_producers,
            is_within_tolerance=coverage.is_sound,
            has_sequence_gaps=False,
            rows=len(rows),
            unparsed=0,
            undated=sum(row.get(TIME_COLUMN[ledger]) is None for row in rows),
            digests=(),
            notes=(),
        ),
    )
