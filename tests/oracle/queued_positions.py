"""Histories of queues: what is acknowledged is a set, and positions are no consecutive numbers (section 8, 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tests.oracle.random_histories import RandomHistory, Setting, draw_setting, history_in

from tieout.model import Ledger

Row = dict[str, Any]
_POSITIONS = (
    *("offset", "first_offset", "committed_offset"),
    *("log_start_offset", "last_stable_offset", "end_offset"),
)


def queued_family(name: str, size: int) -> list[RandomHistory]:
    """Return histories of one setting that has a log and acknowledgements, one by one, sparse, or both."""
    rng = Random(name)  # noqa: S311 - repeatable, not secret
    setting = _setting_with_positions(rng)
    has_sets, is_sparse = rng.choice(((True, True), (True, False), (False, True)))
    if rng.random() < 0.5:
        setting = replace(setting, terms=setting.terms | {"consumption": "queue"})
    made = (history_in(setting, rng, f"{name}/{number}") for number in range(size))
    return [_queued(rng, history, has_sets=has_sets, is_sparse=is_sparse) for history in made]


def _setting_with_positions(rng: Random) -> Setting:
    while True:
        setting = draw_setting(rng, is_wild=False)
        if {Ledger.LOG, Ledger.COMMITTED} <= set(setting.ledgers):
            return setting


def _queued(rng: Random, history: RandomHistory, *, has_sets: bool, is_sparse: bool) -> RandomHistory:
    rows, present = dict(history.rows), dict(history.present)
    if has_sets:
        rows[Ledger.COMMITTED] = list(_one_by_one(rng, rows[Ledger.COMMITTED]))
        present[Ledger.COMMITTED] |= {"first_offset", "is_individual"}
    if is_sparse:
        width = rng.choice((2, 3, 7))
        rows = {ledger: [_spread(row, width) for row in found] for ledger, found in rows.items()}
        says = rng.choice(("all", "all", "some"))
        rows[Ledger.LOG] = [
            row | {"is_sparse": True} if says == "all" or row.get("partition") == 0 else row
            for row in rows[Ledger.LOG]
        ]
        present[Ledger.LOG] |= {"is_sparse"}
    return replace(history, rows=rows, present=present)


def _one_by_one(rng: Random, commits: list[Row]) -> Iterator[Row]:
    """Yield each commit as it is, as a mark of a set, or as acknowledgements of some positions below it."""
    gone, is_dated = rng.choice((0.0, 0.3, 0.6)), rng.random() < 0.7
    for row in commits if is_dated else [row | {"committed_at": None} for row in commits]:
        kind, end = rng.choice(("prefix", "marked", "set", "set")), row.get("committed_offset")
        if kind != "set" or end is None:
            yield row | ({"is_individual": True} if kind == "marked" else {})
            continue
        for offset in range(max(0, end - 3), end):
            if rng.random() >= gone:
                width = rng.choice((1, 1, 1, 0, 2))
                yield row | {
                    "first_offset": offset,
                    "committed_offset": offset + width,
                    "is_individual": True,
                }


def _spread(row: Row, width: int) -> Row:
    """Return the row with its positions so many times as far apart."""
    return row | {
        name: row[name] * width for name in _POSITIONS if row.get(name) is not None and row[name] > 0
    }
