"""Deleted and recreated topics: several topics share one name (taxonomy section 7, trap 8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tests.oracle.history import BEGINNING, OracleCoverage, Row

from tieout.model import Ledger

_KEPT_BY_BROKERS = (Ledger.LOG, Ledger.COMMITTED)


def by_topic_generation(
    ledgers: dict[Ledger, list[Row]], coverage: dict[Ledger, OracleCoverage]
) -> tuple[dict[Ledger, list[Row]], dict[Ledger, OracleCoverage]]:
    """Give each topic that shares a name a name with its id; return the rows and the remaining coverage (76).

    A row of such a topic without a `topic_id` loses its position, and its ledger covers nothing.
    """
    ids: dict[str, set[str]] = {}
    for rows in ledgers.values():
        for row in rows:
            if row.get("topic") is not None and row.get("topic_id") is not None:
                ids.setdefault(row["topic"], set()).add(row["topic_id"])
    recreated = {topic for topic, found in ids.items() if len(found) > 1}
    renamed: dict[Ledger, list[Row]] = {}
    covered = dict(coverage)
    for ledger, rows in ledgers.items():
        renamed[ledger] = [_named(row) if row.get("topic") in recreated else row for row in rows]
        without_id = [row for row in rows if row.get("topic") in recreated and row.get("topic_id") is None]
        if ledger in covered and any(_is_placed(row) for row in without_id):
            covered[ledger] = replace(covered[ledger], complete_until=None)
    return renamed, covered


def deleted(ledgers: dict[Ledger, list[Row]], skew: timedelta) -> frozenset[str]:
    """Return the topics that are gone, by their own names: the log was last seen to be another's (86).

    One ledger of the brokers, the log or the commits, has to show both: then one cluster had them. What took a message
    or a commit later than that is still there.
    """
    seen = _latest(ledgers.get(Ledger.LOG, []), "observed_at")
    alive = _latest(ledgers.get(Ledger.COMMITTED, []), "committed_at")
    acked = [row for row in ledgers.get(Ledger.PRODUCED, []) if row.get("outcome") == "acked"]
    for column in ("attempted_at", "completed_at"):
        for name, at in _latest(acked, column).items():
            alive[name] = max(alive.get(name, BEGINNING), at)
    found = set()
    for ledger in _KEPT_BY_BROKERS:
        shown = {_name(row) for row in ledgers.get(ledger, [])} - {None}
        for name in shown:
            others = [
                at for other, at in seen.items() if other in shown and other[0] == name[0] and other != name
            ]
            last = max(others, default=BEGINNING)
            if last > seen.get(name, BEGINNING) and last >= alive.get(name, BEGINNING) + skew:
                found.add(f"{name[0]}@{name[1]}")
    return frozenset(found)


def _name(row: Row) -> tuple[str, str] | None:
    topic, topic_id = row.get("topic"), row.get("topic_id")
    return None if topic is None or topic_id is None else (topic, topic_id)


def _latest(rows: list[Row], column: str) -> dict[tuple[str, str], datetime]:
    found: dict[tuple[str, str], datetime] = {}
    for row in rows:
        name = _name(row)
        if name is not None and row.get(column) is not None:
            found[name] = max(found.get(name, BEGINNING), row[column])
    return found


def _is_placed(row: Row) -> bool:
    return row.get("offset") is not None or row.get("committed_offset") is not None


def _named(row: Row) -> Row:
    if row.get("topic_id") is not None:
        return row | {"topic": f"{row['topic']}@{row['topic_id']}"}
    return row | {"offset": None, "first_offset": None, "committed_offset": None}
