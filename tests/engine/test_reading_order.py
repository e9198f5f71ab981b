"""Evidence that grows while it is read: what a consumer did in between is not taken for a loss."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, jsonl
from tests.engine.sources.flink import write_checkpoint

from tieout.engine import reading
from tieout.engine.reconciling import reconcile
from tieout.engine.sources import READERS
from tieout.engine.sources.source import Reader, Reading, Request
from tieout.model import Ledger

_AT = "2026-11-20T10:05:00Z"
_FIRST_AT = datetime(2026, 11, 20, 10, 10, tzinfo=UTC)


def _work(folder: Path, number: int) -> None:
    """Put out three more messages, and commit them in a checkpoint."""
    rows = [{"message_id": f"m{n}", "processed_at": _AT} for n in range(3 * number - 3, 3 * number)]
    (folder / f"out-{number}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_checkpoint(
        folder / "checkpoints", number, {0: 3 * number}, _FIRST_AT + timedelta(minutes=10 * number)
    )


def test_a_consumer_that_works_on_while_it_is_read_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions are read before the output, though the contract names the output first."""
    sent = [
        {
            "message_id": f"m{n}",
            "attempted_at": _AT,
            "outcome": "acked",
            "topic": "orders",
            "partition": 0,
            "offset": n,
        }
        for n in range(6)
    ]
    (tmp_path / "sent.jsonl").write_text("\n".join(map(json.dumps, sent)))
    _work(tmp_path, 1)
    ledgers: dict[str, dict[str, Any]] = {
        "produced": {"source": jsonl("sent.jsonl"), "coverage": "declared"},
        "delivered": {"source": jsonl("out-*.jsonl"), "coverage": "declared"},
        "committed": {"source": {"kind": "flink_checkpoints", "path": "checkpoints", "taken_at": "now"}},
    }
    contract = contract_of(tmp_path, ledgers)
    read: list[Ledger] = []

    def reader(kind: str) -> Reader[Any]:
        def read_and_work(spec: Any, request: Request) -> Reading:
            found = READERS[kind](spec, request)
            if request.ledger in (Ledger.DELIVERED, Ledger.COMMITTED):
                read.append(request.ledger)
                if len(read) == 1:
                    _work(tmp_path, 2)
            return found

        return read_and_work

    monkeypatch.setattr(reading, "READERS", {kind: reader(kind) for kind in READERS})

    found = reconcile(spark, contract, WINDOW, run_id="r", now=NOW).statement

    assert read == [Ledger.COMMITTED, Ledger.DELIVERED]
    assert (found["verdict"], found["classes"]) == ("KEPT", {"DELIVERED": 6}), found["reasons"]
