"""Small simulations in memory, and as histories for the oracle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.oracle import OracleCoverage

from tieout.contracts import Contract, load_contract
from tieout.model import Ledger, Window
from tieout.simulation.contract_text import contract_of
from tieout.simulation.description import Description
from tieout.simulation.folder import summary_of
from tieout.simulation.simulating import Simulated, simulate
from tieout.simulation.truth import Truth

Row = dict[str, Any]

TIMES = frozenset(
    {
        "attempted_at", "completed_at", "processed_at", "committed_at", "assigned_at", "at", "observed_at",
        "record_timestamp",
    }
)  # fmt: skip


def described(**fields: Any) -> Description:
    """Return a small pipeline that can have every fault, with some fields replaced."""
    return Description.model_validate(
        {
            "version": 1,
            "pipeline": "small",
            "guarantee": "exactly_once",
            "messages": 300,
            "rate": 24,
            "batch": 8,
            "keys": 40,
            "max_latency": "3s",
            "topics": [
                {"name": "orders", "partitions": 2},
                {"name": "prices", "partitions": 1, "cleanup_policy": "compact"},
            ],
            "producers": [
                {"name": "idem", "kind": "idempotent"},
                {"name": "plain", "kind": "plain"},
                {"name": "trans", "kind": "transactional"},
            ],
            **fields,
        }
    )


@dataclass(frozen=True)
class Run:
    """One simulation with everything that it wrote."""

    description: Description
    simulated: Simulated
    rows: dict[Ledger, list[Row]]
    truth: list[Row]
    summary: dict[str, Any]
    contract: Contract

    @property
    def window(self) -> Window:
        """What there is to judge."""
        return self.simulated.window

    def dated(self) -> dict[Ledger, list[Row]]:
        """Return the rows with times as the oracle wants them."""
        return {ledger: [_dated(row) for row in rows] for ledger, rows in self.rows.items()}

    def coverage(self) -> dict[Ledger, OracleCoverage]:
        """Return the coverage that the contract states."""
        until = self.simulated.horizon
        return {
            ledger: OracleCoverage(complete_until=until, names_all_producers=ledger is Ledger.PRODUCED)
            for ledger in self.rows
        }


def run(folder: Path, description: Description, seed: int = 1) -> Run:
    """Simulate in memory; the folder holds the contract alone."""
    rows: dict[Ledger, list[Row]] = defaultdict(list)
    found: list[Row] = []
    truth = Truth(found.append)
    simulated = simulate(description, seed, lambda ledger, row: rows[ledger].append(row), truth)
    file = folder / "contract.yml"
    file.write_text(contract_of(description, simulated, rows), encoding="utf-8")
    contract = load_contract(file)
    summary = summary_of(description, seed, simulated, truth, contract)
    return Run(description, simulated, dict(rows), found, summary, contract)


def _dated(row: Row) -> Row:
    return {
        name: datetime.fromtimestamp(value / 1000, UTC) if name in TIMES and value is not None else value
        for name, value in row.items()
    }
