"""What a statement says of clocks that cannot be right: in words, and of losses that rest on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.chains import write_evidence
from tests.engine.histories import START, WINDOW, Said
from tests.judging.kernel import kernel_statement

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.model import Ledger

CONTRACT = """
version: 1
pipeline: clocks
guarantee: at_least_once
group: loader
max_latency: 1m
grace: 15m
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: out.jsonl}}
    coverage: {coverage}
"""
OWN_TIMES = "{complete_until: max(processed_at)}"


def _history(folder: Path, seen_after: timedelta, *, seen: range, coverage: str = "declared") -> Said:
    """Return ten sends, a minute apart, some of which have effects so long after them."""
    at = [START + timedelta(minutes=n) for n in range(10)]
    rows = {
        Ledger.PRODUCED: [
            {"message_id": f"m{n}", "attempted_at": at[n], "outcome": "acked"} for n in range(10)
        ],
        Ledger.DELIVERED: [
            {"message_id": f"m{n}", "processed_at": at[n] + seen_after, "outcome": "ok"} for n in seen
        ],
    }
    (folder / "contract.yml").write_text(CONTRACT.format(coverage=coverage))
    contract = load_contract(folder / "contract.yml")
    return Said(contract, rows, WINDOW, datetime(2026, 12, 1, tzinfo=UTC))


def _notes(statement: dict[str, Any]) -> str:
    return "\n".join(statement["coverage"]["delivered"]["notes"])


@pytest.mark.parametrize(
    ("away", "expected"),
    [
        (timedelta(hours=-5, seconds=2), "4 h 59 min 58 s in the median, as if times of another time zone"),
        (timedelta(minutes=-30), "30 min in the median, as if times of another time zone"),
        (timedelta(minutes=-20), "20 min in the median"),
        (timedelta(seconds=-40), "40 s in the median"),
    ],
)
def test_effects_before_their_sends_tell_of_the_clock(tmp_path: Path, away: timedelta, expected: str) -> None:
    """How far they lie is said, and whether that looks like a time zone: within the sends' coverage and before it."""
    statement = kernel_statement(_history(tmp_path, away, seen=range(10)))

    assert statement["verdict"] == "UNKNOWN"
    assert statement["classes"].get("LOST") is None
    assert f"the effects of 10 messages lie before their sends, by {expected}" in _notes(statement)
    assert ("time zone" in _notes(statement)) == ("time zone" in expected)


def test_two_effects_before_their_sends_tell_of_no_clock(tmp_path: Path) -> None:
    """Two may be a mistake of another kind; that nobody can vouch for them is said all the same."""
    statement = kernel_statement(_history(tmp_path, timedelta(hours=-1), seen=range(2)))

    assert statement["classes"]["UNVERIFIABLE"] == 2
    assert _notes(statement) == ""


@pytest.mark.parametrize(
    ("away", "coverage", "verdict", "has_note"),
    [
        (timedelta(hours=2, seconds=1), OWN_TIMES, "UNKNOWN", True),
        (timedelta(hours=2, seconds=1), "declared", "BROKEN", True),
        (timedelta(hours=2, minutes=7), OWN_TIMES, "BROKEN", False),
        (timedelta(seconds=1), "declared", "BROKEN", False),
    ],
)
def test_a_clock_that_is_ahead_makes_losses_look_too_old(
    spark: SparkSession, tmp_path: Path, away: timedelta, coverage: str, verdict: str, *, has_note: bool
) -> None:
    """If the output's own times say how far it is complete, as the reading tells: they say so too early."""
    history = _history(tmp_path, away, seen=range(9), coverage=coverage)
    contract = write_evidence(history, tmp_path)

    statement = reconcile(spark, contract, WINDOW, run_id="r", now=history.read_at).statement

    assert statement["classes"]["LOST"] == 1
    assert statement["verdict"] == verdict
    assert ("no effect of 9 messages lies less than 2 h 1 s after its send" in _notes(statement)) == has_note
