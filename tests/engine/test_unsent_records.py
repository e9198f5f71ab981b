"""What the log has too much keeps `produced` from covering, and what it lacks the log (interpretations 133, 134)."""

from __future__ import annotations

from typing import Any

from tests.engine.histories import GRACE_END, WINDOW, contract_for

from tieout.engine.evidence import Evidence, LedgerCoverage
from tieout.engine.scope import Scope
from tieout.engine.statement.coverage import coverage_gap, limits_of, with_partitions_shown
from tieout.model import Ledger

_WRITTEN = ("accepted", "unproven", "acked_attempts", "unknown_attempts")
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


def _shown(scope: Scope, *unaccounted: dict[str, Any]) -> Scope:
    """Return the scope with what the partitions 0, 1, … of the log show."""
    partitions = [
        {"topic": "orders", "partition": number, **dict.fromkeys(_WRITTEN, 0), "offsets": {}}
        for number in range(3)
    ]
    nothing = {"topic": "orders", "unsent": 0, "unshown": 0, "supposed": 0}
    rows = [nothing | {"partition": number} | reported for number, reported in enumerate(unaccounted)]
    return with_partitions_shown(scope, partitions, rows)


def test_records_that_nobody_sent_are_sends_that_are_missing() -> None:
    """Of the partition that has them, and with how many, whatever says that `produced` is complete."""
    scope = _shown(_scope(), {}, {"unsent": 2})

    assert coverage_gap(scope, Ledger.PRODUCED) == (
        "orders-1: 2 records in the log that nobody sent: sends are missing, or a producer is"
    )
    assert coverage_gap(scope, Ledger.LOG) is None


def test_offsets_without_a_record_are_records_that_are_missing() -> None:
    """Of the partition that has them, and with how many, whatever says that `log` is complete."""
    scope = _shown(_scope(), {"unshown": 3})

    assert coverage_gap(scope, Ledger.PRODUCED) is None
    assert coverage_gap(scope, Ledger.LOG) == (
        "orders-0: 3 offsets without a record, in the window or next to it: the log's evidence lacks some"
    )


def test_offsets_that_may_be_markers_are_reported() -> None:
    """They keep nothing from covering, and the statement says that nothing else would be seen there."""
    markers = {"topic": "orders", "partition": 0, "unsent": 0, "unshown": 0, "supposed": 4}
    scope = _shown(_scope(), markers)

    assert {ledger: coverage_gap(scope, ledger) for ledger in LEDGERS} == dict.fromkeys(LEDGERS)
    (limit,) = limits_of(scope, {}, [markers])
    assert limit.startswith("orders-0: 4 offsets without a record count as transaction markers")
    assert limits_of(scope, {}, []) == []


def test_without_such_records_everything_covers() -> None:
    """A log whose records were all sent asks for nothing more."""
    scope = _shown(_scope(), {}, {})

    assert {ledger: coverage_gap(scope, ledger) for ledger in LEDGERS} == dict.fromkeys(LEDGERS)
