"""A window judged in several buckets gives what one bucket gives, to the byte.

`TIEOUT_RANDOM_FAMILIES` says how many families of random histories are tried. Of the golden ones each run has the
largest batches, as one costs the same however many histories it has; with TIEOUT_GOLDEN=all, which `make fuzz` sets,
there are more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.histories import History, load_cases
from tests.engine.marking import Batch, batches, marked_window, number_of, rows_together
from tests.judging import buckets
from tests.judging.buckets import Rows, buckets_of, judged_in
from tests.judging.kernel import is_of_one_topic_each, judged, scope_of
from tests.oracle.random_histories import families

from tieout.engine.scope import Scope
from tieout.model import Identity

FAMILIES, SIZE = int(os.environ.get("TIEOUT_RANDOM_FAMILIES", "1")), 40
LEAST = 10 if os.environ.get("TIEOUT_GOLDEN") == "all" else 20
GOLDEN = [
    batch
    for batch in batches([case for case in load_cases() if is_of_one_topic_each(case)])
    if len(batch.histories) >= LEAST
]
_UNORDERED = frozenset({"lengths", "held", "doubtful"})
"""Columns that are sets."""


def _of(batch: Batch) -> tuple[Scope, Rows] | None:
    """Return the scope and the rows of histories that are judged together, None where one bucket has all.

    Payloads are marked as their history's, too: those of rows without an id tie them to every message that has them.
    """
    first: History = batch.histories[0]
    if first.contract.identity is Identity.CONTENT or first.window.offsets:
        return None
    rows, present = rows_together(batch.histories)
    for row in (row for found in rows.values() for row in found):
        if row.get("payload_hash") is not None:
            row["payload_hash"] = f"{number_of(row.get('topic'))}-{row['payload_hash']}"
    scope = scope_of(first, rows, present)
    return replace(scope, window=marked_window(first.window, len(batch.histories))), rows


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as texts in order, without the number that a break has in its bucket."""
    return sorted(
        repr(
            {
                name: sorted(value) if name in _UNORDERED else value
                for name, value in row.items()
                if name != "number"
            }
        )
        for row in rows
    )


def _differences(scope: Scope, rows: Rows, counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return for each count of buckets, by table, rows that only one bucket, or only so many, hand out; breaks too."""
    tables, breaks = judged(scope, rows)
    differing: list[dict[str, Any]] = []
    for count in counts:
        found, others = judged_in(scope, buckets_of(scope, rows, count))
        differing.append({})
        for name, one in {**tables, "breaks": breaks}.items():
            ours, theirs = _plain(one), _plain(others if name == "breaks" else found[name])
            if ours != theirs:
                differing[-1][name] = (sorted({*ours} - {*theirs})[:2], sorted({*theirs} - {*ours})[:2])
    return differing


@pytest.mark.parametrize("number", range(FAMILIES))
def test_random_histories_are_judged_alike_in_one_two_and_seven_buckets(number: int) -> None:
    """Small tables and breaks are the same, ids and evidence included, however the histories are cut."""
    histories = next(iter(families(f"buckets/{number}", 1, SIZE, wild_share=0)))
    for batch in batches(histories):
        found = _of(batch)
        if found is not None:
            assert _differences(*found, (2, 7)) == [{}, {}]


@pytest.mark.parametrize("share", range(2))
def test_golden_histories_are_judged_alike_in_two_buckets(share: int) -> None:
    """So are those that were written by hand, of which each shows what one rule asks."""
    assert len(GOLDEN) > 4
    assert sum(len(batch.histories) for batch in GOLDEN) > 300
    for batch in GOLDEN[share::2]:
        found = _of(batch)
        if found is not None:
            assert _differences(*found, (2,)) == [{}], str(batch.histories[0])


def test_what_buckets_tell_each_other_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property would not hold if each bucket knew its own topics alone: the histories are cut where it shows."""
    histories = next(iter(families("buckets/0", 1, SIZE, wild_share=0)))
    monkeypatch.setattr(buckets, "SHARED", ())
    found = [one for batch in batches(histories) if (one := _of(batch)) is not None]
    assert any(differing for one in found for differing in _differences(*one, (3,)))
