"""Records of the log that nobody sent keep `produced` from covering (interpretation 133)."""

from __future__ import annotations

from typing import Any

from tests.engine.histories import GRACE_END, WINDOW, contract_for

from tieout.engine.evidence import Evidence, LedgerCoverage
from tieout.engine.scope import Scope
from tieout.engine.statement.coverage import coverage_gap, with_partitions_shown
from tieout.model import Ledger

LEDGERS = [Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED]


def _scope() -> Scope:
    covered = LedgerCoverage(
        is_present=True,
        covers_from=None,
        complete_until=GRACE_END,
        names_all_producers=True,
        is_within_tolerance=True,
        has_sequence_gaps=False,
        rows=1,
        unparsed=0,
        undated=0,
        digests=(),
        notes=(),
    )
    rows: Any = None  # no rule looks at rows here
    evidence = {
        ledger: Evidence(ledger, rows, frozenset({"topic", "partition"}), covered) for ledger in LEDGERS
    }
    return Scope(contract_for(LEDGERS, {}), WINDOW, evidence)


def _partition(number: int, unattempted: int | None) -> dict[str, Any]:
    offsets = None if unattempted is None else {"unattempted": unattempted}
    return {"topic": "orders", "partition": number, "accepted": 0, "unproven": 0, "offsets": offsets}


def test_records_that_nobody_sent_are_sends_that_are_missing() -> None:
    """Of the partition that has them, and with how many, whatever says that `produced` is complete."""
    scope = with_partitions_shown(_scope(), [_partition(0, 0), _partition(1, 2), _partition(2, None)])

    assert coverage_gap(scope, Ledger.PRODUCED) == (
        "orders-1: 2 records in the log that nobody sent: sends are missing, or a producer is"
    )
    assert coverage_gap(scope, Ledger.LOG) is None


def test_without_such_records_everything_covers() -> None:
    """A log whose records were all sent asks for nothing more."""
    scope = with_partitions_shown(_scope(), [_partition(0, 0), _partition(2, None)])

    assert {ledger: coverage_gap(scope, ledger) for ledger in LEDGERS} == dict.fromkeys(LEDGERS)
