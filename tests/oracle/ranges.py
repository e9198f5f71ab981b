"""Ranges of positions in `committed`: where two of them intersect, and what lies between them (section 8, 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle.commits import covers, is_individual, is_range
from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import NEVER, Place, Position, Row, state_of
from tests.oracle.ordering import claimed_positions, positions_set_aside
from tests.oracle.position_findings import is_annotated, position_finding
from tests.oracle.queues import is_queue

from tieout.model import BreakClass, Ledger, Locus

_TELLING = (
    "topic",
    "partition",
    "first_offset",
    "committed_offset",
    "committed_at",
    "generation",
    "metadata",
)
"""What makes two ranges two: not when their table was taken."""


def ranges_of(fates: Fates) -> dict[Place, list[Row]]:
    """Return per partition its ranges that hold a position, each once, by where they begin, end and by time."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in fates.history.rows(Ledger.COMMITTED):
        if None in (
            row.get("topic"),
            row.get("partition"),
            row.get("first_offset"),
            row.get("committed_offset"),
        ):
            continue
        if row["first_offset"] >= row["committed_offset"] or is_individual(row):
            continue
        name = tuple(row.get(column) for column in (*_TELLING, "leader_epoch"))
        taken = [one.get("taken_at") for one in (row, found.get(name, {})) if one.get("taken_at") is not None]
        found[name] = {**row, "taken_at": max(taken, default=None)}
    places: dict[Place, list[Row]] = {}
    for row in found.values():
        places.setdefault((row["topic"], row["partition"]), []).append(row)
    return {place: sorted(rows, key=_in_order) for place, rows in places.items()}


def _in_order(row: Row) -> tuple[Any, ...]:
    return (row["first_offset"], row["committed_offset"], *_instant(row), repr(row.get("metadata")))


def _instant(row: Row) -> tuple[bool, float]:
    """Return the commit's time for sorting, one without time before all others."""
    time = row.get("committed_at")
    return (time is not None, 0.0 if time is None else time.timestamp())


def _neighbours(rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield each range but the first with the one that ends last among those before it, of several the latest."""
    for number in range(1, len(rows)):
        before = max(rows[:number], key=lambda row: (row["committed_offset"], *_instant(row)))
        yield before, rows[number]


def intersections(fates: Fates) -> list[Finding]:
    """Return each range that begins below the end of one that begins no later."""
    found = []
    for place, rows in ranges_of(fates).items():
        for before, row in _neighbours(rows):
            if row["first_offset"] < before["committed_offset"]:
                finding = _pair(fates, BreakClass.COMMIT_REGRESSION, place, row["first_offset"], before, row)
                if finding is not None:
                    found.append(_annotated(fates, finding, before, row))
    return found


def gaps(fates: Fates) -> list[Finding]:
    """Return each hole between ranges in which something lies, or may, that no row covers and nothing set aside."""
    if is_queue(fates.history.contract):
        return []
    found = []
    for place, rows in ranges_of(fates).items():
        if place[0] in fates.individual_topics:
            continue
        for before, row in _neighbours(rows):
            whole = [
                at
                for at in _between(place, before["committed_offset"], row["first_offset"])
                if not any(
                    not is_range(one) and covers(one, at) for one in fates.history.rows(Ledger.COMMITTED)
                )
            ]
            lying = _lying_in(fates, whole)
            if lying:
                finding = _pair(fates, BreakClass.COMMIT_GAP, place, min(lying)[2], before, row)
                found += [] if finding is None else [finding]
    return found


def _between(place: Place, first: int, end: int) -> list[Position]:
    return [(*place, offset) for offset in range(first, end)]


def _lying_in(fates: Fates, hole: list[Position]) -> list[Position]:
    """Return the positions of the hole that are owed to somebody.

    A log that covers the hole shows them. Else they are those of visible records, accepted sends and reads; where none
    is known, all, unless the topic has transactions, or its log is compacted: then nothing may have been there.
    """
    if not hole:
        return []
    history, place = fates.history, hole[0][:2]
    visible = [at for at, row in history.records.items() if history.is_visible(row) and at in hole]
    aside = positions_set_aside(fates)
    if _shows(fates, hole):
        return [at for at in visible if at not in aside]
    claimed = [at for at in claimed_positions(fates) if at in hole]
    known = {*visible, *claimed} - aside
    if known or _may_hold_nothing(fates, place):
        return sorted(known)
    return [at for at in hole if at not in aside]


def _shows(fates: Fates, hole: list[Position]) -> bool:
    bounds = fates.history.bounds.get(hole[0][:2])
    if bounds is None or not fates.history.is_sound(Ledger.LOG):
        return False
    return bounds.start <= hole[0][2] and hole[-1][2] < bounds.end


def _may_hold_nothing(fates: Fates, place: Place) -> bool:
    """Return whether the topic has transactions, which leave markers, or is compacted or sparse."""
    history = fates.history
    sent = any(
        row.get("topic") == place[0] and row.get("transaction_id") is not None
        for row in history.rows(Ledger.PRODUCED)
    )
    logged = any(
        row.get("topic") == place[0] and (row.get("is_control") or state_of(row) != "none")
        for row in history.rows(Ledger.LOG)
    )
    compacted = any(
        other[0] == place[0] and ("compact" in bounds.policy or bounds.is_sparse)
        for other, bounds in history.bounds.items()
    )
    return sent or logged or compacted


def _pair(fates: Fates, name: BreakClass, place: Place, offset: int, before: Row, row: Row) -> Finding | None:
    """Return the finding of two ranges, in the window of the later one; None where it is no window's that is judged.

    Ranges without times are what their table shows: of every window that begins before that was taken.
    """
    times = [one["committed_at"] for one in (before, row) if one.get("committed_at") is not None]
    at = (*place, offset)
    if len(times) == 2:
        shown = [(Ledger.COMMITTED, min(times)), (Ledger.COMMITTED, max(times))]
    else:
        shown = [(Ledger.COMMITTED, None)]
    time = max(times, default=None)
    if time is None:
        taken = max((one["taken_at"] for one in (before, row) if one.get("taken_at")), default=None)
        if taken is not None and taken < fates.history.window.start:
            return None
        time = fates.history.window.start
    return position_finding(name, at, Locus.OFFSET_STORE, time, shown)


def _annotated(fates: Fates, finding: Finding, before: Row, row: Row) -> Finding:
    """Return the finding with what an operator's reset explains; without both times it may explain anything."""
    times = [one["committed_at"] for one in (before, row) if one.get("committed_at") is not None]
    contract = fates.history.contract
    resets = [
        note
        for note in contract.annotations
        if note.kind == "offset_reset" and note.group in (None, contract.group)
    ]
    if len(times) == 2 and is_annotated(fates, min(times), max(times)):
        finding.also.add("annotated")
    if len(times) < 2 and resets:
        finding.shown_by[str(BreakClass.COMMIT_REGRESSION)].append((Ledger.COMMITTED, NEVER))
    return finding
