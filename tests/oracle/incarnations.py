"""Topics that were deleted and created anew: one name, other records (taxonomy section 7, trap 8)."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.history import OracleCoverage, Row

from tieout.model import Ledger


def told_apart(
    ledgers: dict[Ledger, list[Row]], coverage: dict[Ledger, OracleCoverage]
) -> tuple[dict[Ledger, list[Row]], dict[Ledger, OracleCoverage]]:
    """Return the rows with each topic of a shared name under its own, and how far they still cover (76).

    A row that does not say of which of them it is has no position, and its ledger covers nothing.
    """
    ids: dict[str, set[str]] = {}
    for rows in ledgers.values():
        for row in rows:
            if row.get("topic") is not None and row.get("topic_id") is not None:
                ids.setdefault(row["topic"], set()).add(row["topic_id"])
    again = {topic for topic, found in ids.items() if len(found) > 1}
    told: dict[Ledger, list[Row]] = {}
    covered = dict(coverage)
    for ledger, rows in ledgers.items():
        told[ledger] = [_named(row) if row.get("topic") in again else row for row in rows]
        untold = [row for row in rows if row.get("topic") in again and row.get("topic_id") is None]
        if ledger in covered and any(_is_placed(row) for row in untold):
            covered[ledger] = replace(covered[ledger], complete_until=None)
    return told, covered


def _is_placed(row: Row) -> bool:
    return row.get("offset") is not None or row.get("committed_offset") is not None


def _named(row: Row) -> Row:
    if row.get("topic_id") is not None:
        return row | {"topic": f"{row['topic']}@{row['topic_id']}"}
    return row | {"offset": None, "committed_offset": None}
