"""Contracts that do not fit their evidence: what they lead to is neither KEPT nor BROKEN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, jsonl

from tieout.engine.reconciling import reconcile


@pytest.mark.parametrize(
    ("path", "columns", "verdict", "gap"),
    [
        ("out.jsonl", {}, "BROKEN", None),
        (
            "*.jsonl",
            {},
            "UNKNOWN",
            "sent.jsonl is a file of produced as well, so that each send in it counts",
        ),
        (
            "out.jsonl",
            {"consumer_group": "team"},
            "UNKNOWN",
            "no row is of the group, and 'Loader' and 'loader'",
        ),
    ],
    ids=["fits", "sends as effects", "group misspelled"],
)
def test_a_contract_that_does_not_fit_proves_nothing(
    spark: SparkSession, tmp_path: Path, path: str, columns: dict[str, str], verdict: str, gap: str | None
) -> None:
    """One of three messages is lost, which the sends among the effects would hide."""
    _write(tmp_path / "sent.jsonl", range(3), second=0)
    _write(tmp_path / "out.jsonl", range(2), second=5)
    sent = {"message_id": "id", "attempted_at": "at", "outcome": "'acked'"}
    out = {"message_id": "id", "processed_at": "at", **columns}
    contract = contract_of(
        tmp_path,
        {
            "produced": {"source": jsonl("sent.jsonl"), "columns": sent, "coverage": "declared"},
            "delivered": {"source": jsonl(path), "columns": out, "coverage": "declared"},
        },
    )

    found = reconcile(spark, contract, WINDOW, run_id="r", now=NOW).statement

    assert found["verdict"] == verdict
    assert (found["coverage"]["delivered"]["gap"] or "").startswith(gap or "")
    assert found["coverage"]["delivered"]["covers"] is (gap is None)


def _write(path: Path, numbers: range, *, second: int) -> None:
    rows = [{"id": f"m{n}", "at": f"2026-11-20T10:0{n}:0{second}Z", "team": "Loader"} for n in numbers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
