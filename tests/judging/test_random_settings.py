"""The rounds against the oracle, on histories of settings that are drawn too rarely, or never, elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Final

import pytest
from tests.engine.histories import GRACE_END, TOPIC, WINDOW
from tests.judging.expected import expected_of, wrong_in
from tests.judging.kernel import kernel_statements
from tests.oracle import OracleCoverage
from tests.oracle.random_histories import RandomHistory, Setting, families, history_in

from tieout.model import Ledger, OffsetRange

SEED: Final = os.environ.get("TIEOUT_RANDOM_SEED", "1")
SIZE: Final = 60
WILD_FAMILIES, WILD_SIZE = 2, 40
RANGES: Final = (OffsetRange(TOPIC, 0, 1, 5), OffsetRange(TOPIC, 1, 0, 3))
BY_OFFSETS: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)


def test_arbitrary_rows_are_never_kept_or_broken_falsely() -> None:
    """Of rows that no pipeline would leave behind the engine may say that it cannot tell, but nothing that is false."""
    drawn = families(SEED, WILD_FAMILIES, WILD_SIZE, wild_share=1)
    histories = [history for family in drawn for history in family]

    verdicts = [
        (history.name, expected_of(history)["verdict"], statement["verdict"])
        for history, statement in zip(histories, kernel_statements(histories), strict=True)
    ]

    definite = {"KEPT", "BROKEN"}
    assert {verdict for _, _, verdict in verdicts} >= {"BROKEN", "UNKNOWN"}, "these histories try nothing"
    assert [one for one in verdicts if one[2] in definite and one[1] != one[2]] == []


def test_windows_of_offsets() -> None:
    """What a range of offsets holds is the same to both, whether or not the log shows it whole."""
    coverage = dict.fromkeys(BY_OFFSETS, OracleCoverage(None, GRACE_END, True, True))
    setting = Setting(
        False, {"guarantee": "at_least_once", "windows": "offsets"}, BY_OFFSETS, coverage, (), {}
    )
    window = replace(WINDOW, offsets=RANGES)

    drawn = [replace(history, window=window) for history in _drawn(setting, "offsets")]

    assert wrong_in(drawn) == {}


@pytest.mark.parametrize("has_log", [True, False], ids=["log", "no log"])
def test_kept_positions(has_log: bool) -> None:
    """Ranges that are lost, repeated or overlap, and a second position, are the same to both."""
    # Where no log shows what lies in a hole, reads do.
    ledgers = (*BY_OFFSETS, Ledger.MIRRORED, Ledger.READ, Ledger.STAGED, Ledger.DEAD_LETTERS)
    chosen = tuple(ledger for ledger in ledgers if has_log or ledger is not Ledger.LOG)
    coverage = dict.fromkeys(chosen, OracleCoverage(None, GRACE_END + timedelta(hours=1), True, True))
    setting = Setting(False, {"guarantee": "at_most_once"}, chosen, coverage, (), {})

    drawn = _drawn(setting, "positions")

    shown = {name for history in drawn for name in expected_of(history)["classes"]}
    assert {"COMMIT_GAP", "COMMIT_REGRESSION", "POSITION_DISAGREEMENT"} <= shown, (
        "these histories try nothing"
    )
    assert wrong_in(drawn) == {}


def _drawn(setting: Setting, name: str) -> list[RandomHistory]:
    return [
        history_in(setting, Random(f"{SEED}/{name}/{number}"), f"{name}/{number}")  # noqa: S311 - repeatable, not secret
        for number in range(SIZE)
    ]
