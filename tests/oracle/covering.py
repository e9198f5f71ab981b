"""How far a ledger is complete, by what its contract says and its rows show (taxonomy section 1, Coverage).

Read once more, apart from the engine: from a contract's `coverage` and canonical rows to an `OracleCoverage`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle.history import OracleCoverage, Row

from tieout.contracts import Contract, CoverageSpec
from tieout.model import Ledger, Window

_CLOCKS_ARE_SET = datetime(1971, 1, 1, tzinfo=UTC)
_TIME_OF = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.LOG: "record_timestamp",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
    Ledger.ASSIGNED: "assigned_at",
    Ledger.COMMITTED: "committed_at",
}
_SOURCES_OF = {
    Ledger.PRODUCED: ("producer_id", "producer_session"),
    Ledger.DELIVERED: ("consumer_group", "consumer_id"),
    Ledger.READ: ("consumer_group", "consumer_id"),
    Ledger.ASSIGNED: ("consumer_group", "consumer_id"),
    Ledger.COMMITTED: ("consumer_group",),
}


def said_coverage(
    contract: Contract,
    ledger: Ledger,
    rows: list[Row],
    *,
    window: Window,
    read_at: datetime,
    watermark: datetime | None = None,
) -> OracleCoverage:
    """Return how far the ledger covers; `watermark` is what its watermark file holds, if there is one.

    Of aggregates only `max` over the ledger's own time and `now()` are read here.
    """
    said = contract.ledgers[ledger].coverage
    if said == "declared":
        until = window.end + contract.grace if window.offsets or read_at >= window.end else read_at
        return OracleCoverage(window.start - contract.margin, min(until, read_at), True, True)
    if not isinstance(said, CoverageSpec):
        return OracleCoverage(complete_until=None)
    shown = _producers_shown(rows, read_at)
    is_sound = set(said.producers) <= shown
    if said.sequences == "gapless":
        begins_later = said.complete_from is not None or contract.ledgers[ledger].reach is not None
        is_sound = is_sound and all(_is_gapless(found, begins_later) for found in _sessions(rows))
    everybody = {row.get("producer_id") for row in rows}
    until = _until(said, ledger, rows, read_at, watermark)
    return OracleCoverage(
        covers_from=said.complete_from,
        complete_until=None if until is None else min(until, read_at),
        is_sound=is_sound,
        names_all_producers=bool(said.producers) and everybody <= set(said.producers),
    )


def _producers_shown(rows: Iterable[Row], read_at: datetime) -> set[str | None]:
    """Return the producers of which a row with a time that can be true was read (130)."""
    return {row.get("producer_id") for row in rows if _can_be_true(row.get("attempted_at"), read_at)}


def _can_be_true(time: datetime | None, read_at: datetime) -> bool:
    return time is not None and _CLOCKS_ARE_SET <= time <= read_at + timedelta(days=1)


def _sessions(rows: Iterable[Row]) -> list[list[int | None]]:
    """Return the numbers of each session."""
    found: dict[tuple[Any, ...], list[int | None]] = defaultdict(list)
    for row in rows:
        found[row.get("producer_id"), row.get("producer_session")].append(row.get("sequence"))
    return list(found.values())


def _is_gapless(numbers: list[int | None], begins_later: bool) -> bool:
    """Return whether no number is missing: not between the first and the last, and not before the first (131)."""
    known = sorted({number for number in numbers if number is not None})
    if len(known) < len(set(numbers)) or known != list(range(known[0], known[-1] + 1)):
        return False
    return begins_later or known[0] <= 1


def _until(
    said: CoverageSpec, ledger: Ledger, rows: list[Row], read_at: datetime, watermark: datetime | None
) -> datetime | None:
    if said.watermark_file is not None:
        return watermark
    if said.complete_until is None:
        return None
    if said.complete_until == "now()":
        return read_at
    if said.complete_until != f"max({_TIME_OF.get(ledger)})":
        return datetime.fromisoformat(said.complete_until)
    return _slowest(said, ledger, rows, read_at)


def _slowest(said: CoverageSpec, ledger: Ledger, rows: list[Row], read_at: datetime) -> datetime | None:
    """Return the lowest of the latest times of the declared producers, or of all sources that rows name."""
    names = ("producer_id",) if said.producers else _SOURCES_OF.get(ledger, ())
    latest: dict[tuple[Any, ...], datetime] = {}
    for row in rows:
        time, source = row.get(_TIME_OF[ledger]), tuple(row.get(name) for name in names)
        if _can_be_true(time, read_at) and (not said.producers or source[0] in said.producers):
            latest[source] = max(time, latest.get(source, time))
    if not latest or len(latest) < len(set(said.producers)):
        return None
    return min(*latest.values(), read_at)
