"""What was found is kept line by line, so that a page can be made of parts that were run one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.faults.found import CELL, REPLAY
from tools.faults.keeping import Kept
from tools.faults.matrix import MOMENTS
from tools.faults.replays import REJECT


def test_what_is_kept_is_what_was_found(tmp_path: Path) -> None:
    """Another reader of the folder finds the same values, in the order of the page."""
    first = replace(CELL, moment=MOMENTS[0], victim="task")
    rejected = replace(REPLAY, answer=REJECT, rows=(0,))

    for one in (REPLAY, rejected, CELL, first):
        Kept(tmp_path / "found").save(one)

    assert Kept(tmp_path / "found").cells() == [first, CELL]
    assert Kept(tmp_path / "found").replays() == [rejected, REPLAY]


def test_a_line_that_is_tried_again_is_kept_once(tmp_path: Path) -> None:
    """What was found the last time counts, also where it is worse."""
    kept = Kept(tmp_path / "found")
    kept.save(CELL)

    kept.save(replace(CELL, lost=1))

    assert kept.cells() == [replace(CELL, lost=1)]


def test_nothing_is_kept_after_clearing(tmp_path: Path) -> None:
    """Nor where nothing ever was."""
    kept = Kept(tmp_path / "found")
    assert (kept.cells(), kept.replays()) == ([], [])
    kept.save(CELL)
    kept.save(REPLAY)

    kept.clear()

    assert (kept.cells(), kept.replays()) == ([], [])
