"""Evidence that is taken away never turns what was BROKEN or UNKNOWN into KEPT, if anybody expects it (132).

Of each random history, under each form of coverage, one part after another is removed: a producer's rows, a
session's, a partition's, the head, middle or tail of a ledger, one of its files, all of it. `TIEOUT_RANDOM_SEED` and
`TIEOUT_DELETIONS` choose other histories, and more of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.engine.histories import READ_AT
from tests.oracle import judge_history
from tests.oracle.covering import said_coverage
from tests.oracle.deleting import FORMS, WATERMARK, Deletion, drawn
from tests.oracle.expecting import expected_by
from tests.oracle.random_histories import RandomHistory

SEED = int(os.environ.get("TIEOUT_RANDOM_SEED", "1"))
HISTORIES = int(os.environ.get("TIEOUT_DELETIONS", "150"))
KINDS = {"producer", "session", "partition", "head", "middle", "tail", "one row", "file", "everything"}
EXPECTING = {"producers", "sequences", "log", "output", "partition", "bounds", "produced"}


def verdict_of(history: RandomHistory) -> str:
    """Return the oracle's verdict."""
    return str(
        judge_history(history.contract, history.window, history.rows, history.coverage, history.present)[
            "verdict"
        ]
    )


def judged(found: Iterator[Deletion]) -> Iterator[tuple[Deletion, str, str]]:
    """Yield each deletion with the verdicts before and after."""
    whole: RandomHistory | None = None
    for one in found:
        if one.before is not whole:
            whole, before = one.before, verdict_of(one.before)
        yield one, before, verdict_of(one.after)


def test_what_somebody_expects_is_missed() -> None:
    """Where a list, numbers, bounds or another ledger expect what is gone, BROKEN and UNKNOWN never become KEPT."""
    kinds: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    expecting: Counter[str | None] = Counter()
    hidden: list[str] = []
    unvouched: list[str] = []
    turned = 0
    for deletion, before, after in judged(drawn(SEED, HISTORIES)):
        by = expected_by(deletion)
        kinds[deletion.kind] += 1
        forms[deletion.form] += 1
        expecting[by] += 1
        if after != "KEPT" or before == "KEPT":
            continue
        turned += 1
        if by is not None:
            hidden.append(f"{deletion}: expected by {by}, {before} became KEPT")
        if deletion.form == "nothing":
            unvouched.append(str(deletion))

    assert hidden == []
    assert unvouched == []
    assert set(kinds) == KINDS
    assert set(forms) == set(FORMS)
    assert {by for by in expecting if by} == EXPECTING
    assert sum(kinds.values()) > 15 * HISTORIES
    assert sum(expecting[by] for by in EXPECTING) > 3 * HISTORIES
    assert turned > 0, "what nobody expects can hide a break, or these histories try nothing"


def test_only_coverage_that_is_said_can_be_complete() -> None:
    """Without a word about it no ledger is complete, whatever its rows."""
    for deletion in drawn(SEED + 1, 10):
        for ledger, rows in deletion.after.rows.items():
            terms: dict[str, Any] = {
                "window": deletion.after.window,
                "read_at": READ_AT,
                "watermark": WATERMARK,
            }
            spec = deletion.after.contract.ledgers[ledger].model_copy(update={"coverage": None})
            silent = deletion.after.contract.model_copy(update={"ledgers": {ledger: spec}})

            assert said_coverage(silent, ledger, rows, **terms).complete_until is None
