"""Two positions of one group: where the engine restarts from, and another that it keeps as well (section 8, 7)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.oracle.acknowledging import individual_topics
from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import BEGINNING, Place, Row, known
from tests.oracle.position_findings import position_finding

from tieout.model import BreakClass, Ledger, Locus

C, M = Ledger.COMMITTED, Ledger.MIRRORED


def disagreements(fates: Fates) -> list[Finding]:
    """Return each partition of which one ledger's latest position lies beyond the other's."""
    if not (fates.history.has(C) and fates.history.has(M)):
        return []
    rows = {ledger: _by_place(fates, ledger) for ledger in (C, M)}
    found = []
    sets = individual_topics(fates.history, C) | individual_topics(fates.history, M)
    for place in sorted(one for one in {*rows[C], *rows[M]} if one[0] not in sets):
        finding = _disagreement(fates, place, rows[C].get(place, []), rows[M].get(place, []))
        found += [] if finding is None else [finding]
    return found


def _by_place(fates: Fates, ledger: Ledger) -> dict[Place, list[Row]]:
    found: dict[Place, list[Row]] = {}
    for row in fates.history.rows(ledger):
        if None not in (row.get("topic"), row.get("partition"), row.get("committed_offset")):
            found.setdefault((row["topic"], row["partition"]), []).append(row)
    return found


def _disagreement(fates: Fates, place: Place, commits: list[Row], mirrored: list[Row]) -> Finding | None:
    base = _first_position(fates, place, commits)
    one, other = _latest(commits), _latest(mirrored)
    restart = base if one is None else one["committed_offset"]
    kept = base if other is None else other["committed_offset"]
    if kept is None and restart is not None:
        kept = 0  # nowhere is the beginning
    if restart is None or kept is None or restart == kept:
        return None
    if kept > restart:
        return _found(fates, place, restart, "ahead", mirrored, one)
    return _found(fates, place, kept, "behind", commits, other)


def _found(
    fates: Fates, place: Place, lower: int, flag: str, further: list[Row], left: Row | None
) -> Finding | None:
    """Return the finding of rows beyond the other ledger's latest one, `left`; it is as old as the first of them."""
    history = fates.history
    beyond = [row for row in further if row["committed_offset"] > lower]
    dated = min(known(row.get("committed_at") for row in beyond), default=None)
    taken = min(known(row.get("taken_at") for row in beyond), default=None)
    at_left = (left or {}).get("committed_at")
    since: datetime | None = max(known([dated, at_left])) if dated else taken
    if flag == "behind" and not _is_overdue(fates, since, left):
        return None
    if dated is None and taken is not None and taken < history.window.start:
        return None
    allowed_latency = history.contract.max_latency + history.skew
    if since is None:
        shown: list[tuple[Ledger, Any]] = [(C, None), (M, None)]
    elif flag == "ahead":
        shown = [(M, since), (C, since), (C, since + history.skew)]
    else:
        shown = [(C, since), (M, since), (M, since + allowed_latency)]
    time = since if dated is not None else history.window.start
    at = (*place, lower)
    finding = position_finding(BreakClass.POSITION_DISAGREEMENT, at, Locus.OFFSET_STORE, time, shown)
    finding.also.add(flag)
    return finding


def _is_overdue(fates: Fates, since: datetime | None, left: Row | None) -> bool:
    """Return whether the mirrored position is known to have stayed behind for longer than messages may take."""
    until = fates.history.coverage[M].complete_until if M in fates.history.coverage else None
    if left is not None and left.get("committed_at") is None:
        until = left.get("taken_at")
    if since is None or until is None:
        return False
    return until > since + fates.history.contract.max_latency + fates.history.skew


def _latest(rows: list[Row]) -> Row | None:
    """Return the latest position, of one instant the highest; a row stands at its time, else at its table's taking."""
    return max(
        rows,
        key=lambda row: (
            row.get("committed_at") or row.get("taken_at") or BEGINNING,
            row["committed_offset"],
        ),
        default=None,
    )


def _first_position(fates: Fates, place: Place, commits: list[Row]) -> int | None:
    """Return the first position of the partition that anything knows of."""
    bounds = fates.history.bounds.get(place)
    if bounds is not None:
        return bounds.start
    sent = [fates.first_position(message) for message in fates.matched.messages if message.is_accepted]
    offsets = [at[2] for at in sent if at is not None and at[:2] == place]
    offsets += [row["first_offset"] for row in commits if row.get("first_offset") is not None]
    return min(offsets, default=None)
