"""Golden histories without each of their parts, under every form of coverage: what a short history allows, all of it.

Random histories are long, so that `deleting` draws a few parts of each; of a golden one every row, producer, session,
partition, head, tail, stretch and file of every ledger is removed in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from tests.engine.histories import Case
from tests.oracle.deleting import FORMS, Deletion, numbered, order_in, said_in, without
from tests.oracle.history import Row
from tests.oracle.random_histories import RandomHistory

from tieout.model import Ledger

AS_WRITTEN = "as written"
"""The coverage that the golden history itself states."""
GOLDEN_FORMS = (AS_WRITTEN, *FORMS)
_NUMBERS = frozenset({"producer_id", "producer_session", "sequence"})
_COLUMNS = (
    ("producer", "producer_id"),
    ("session", "producer_session"),
    ("consumer", "consumer_id"),
    ("topic", "topic"),
    ("partition", "partition"),
)


def golden_deletions(case: Case, form: str) -> Iterator[Deletion]:
    """Yield the golden history under a form of coverage, each time without another part."""
    before = _before(case, form)
    for ledger, rows in before.rows.items():
        seen = set()
        for kind, removed in _parts(ledger, rows):
            key = frozenset(map(id, removed))
            if removed and key not in seen:
                seen.add(key)
                after = without(before, ledger, removed, is_stated=form == AS_WRITTEN)
                yield Deletion(kind, ledger, form, before, after, tuple(removed))
                if ledger is Ledger.LOG and kind in ("head", "tail"):
                    read_off = replace(
                        after, rows={**after.rows, ledger: _bounds_read_off(after.rows[ledger])}
                    )
                    yield Deletion(f"{kind}, bounds read off", ledger, form, before, read_off, tuple(removed))


def _before(case: Case, form: str) -> RandomHistory:
    whole = RandomHistory(
        str(case), case.contract, case.window, case.rows, dict(case.coverage), dict(case.present)
    )
    if form == AS_WRITTEN:
        return whole
    rng = Random(f"{case.name}/{form}")  # noqa: S311 - repeatable, not secret
    sends = whole.rows.get(Ledger.PRODUCED, [])
    if sends and not any(row.get("sequence") is not None for row in sends):
        present = whole.present[Ledger.PRODUCED] | _NUMBERS
        rows = {**whole.rows, Ledger.PRODUCED: numbered(rng, sends, present)}
        whole = replace(whole, rows=rows, present={**whole.present, Ledger.PRODUCED: present})
    return said_in(rng, whole, form)


def _parts(ledger: Ledger, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield every part that a file, a producer, a partition or a clumsy copy may leave out."""
    for kind, column in _COLUMNS:
        for value in sorted({row[column] for row in rows if row.get(column) is not None}, key=str):
            yield kind, [row for row in rows if row.get(column) == value]
    ordered = sorted(rows, key=lambda row: order_in(ledger, row))
    count = len(ordered)
    for place in range(count):
        yield "one row", [ordered[place]]
    for place in range(1, count):
        yield "head", ordered[:place]
        yield "tail", ordered[place:]
    for first in range(1, count):
        for last in range(first + 2, count):
            yield "middle", ordered[first:last]
    for files in (2, 3):
        for file in range(files):
            yield "file", ordered[file::files]
    yield "everything", list(rows)


def _bounds_read_off(rows: list[Row]) -> list[Row]:
    """Return a log's rows with the bounds that a reader of segments finds: from its first record to its last one."""
    offsets: dict[Any, list[int]] = {}
    for row in rows:
        if row.get("offset") is not None:
            offsets.setdefault(_partition(row), []).append(row["offset"])
    return [row | _shown(row, offsets.get(_partition(row), [])) for row in rows]


def _shown(row: Row, offsets: list[int]) -> Mapping[str, int]:
    if not offsets:
        return {}
    shown = {"log_start_offset": min(offsets), "end_offset": max(offsets) + 1}
    shown["last_stable_offset"] = min(
        row.get("last_stable_offset") or shown["end_offset"], shown["end_offset"]
    )
    return {name: value for name, value in shown.items() if row.get(name) is not None}


def _partition(row: Row) -> tuple[Any, Any]:
    return row.get("topic"), row.get("partition")
