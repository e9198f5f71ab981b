"""The page of the fault matrix: what makes a cell sound, and that a cell that is not shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scripts.faults.matrix import MOMENTS, Cell
from scripts.faults.report import page

SOUND = Cell(
    moment=MOMENTS[0],
    victim="task",
    was_hit=True,
    store_after_kill="as before",
    acts=0,
    seconds=12.3,
    verdict="BROKEN",
    are_rows_equal=True,
    lost=0,
    doubled=0,
    repeated=1,
    also_told=0,
)


def test_a_cell_where_nothing_is_lost_is_sound() -> None:
    """A request repeated under its key is none that was doubled."""
    assert SOUND.is_sound


@pytest.mark.parametrize(
    "change",
    [
        {"was_hit": False},
        {"store_after_kill": "TORN"},
        {"are_rows_equal": False},
        {"lost": 1},
        {"doubled": 1},
    ],
)
def test_whatever_is_wrong_makes_a_cell_unsound(change: dict[str, Any]) -> None:
    """Also where the victim was not there to be hit: nothing was tried then."""
    assert not replace(SOUND, **change).is_sound


def test_the_page_counts_what_is_sound() -> None:
    """Both lines are there, and the one that is not as it should be is not counted."""
    text = page([SOUND, replace(SOUND, victim="driver", lost=1)], [])

    assert "1 of 2 lines" in text
    assert "| window | driver | as before | no | BROKEN | equal | lost 1, doubled 0, 1 repeated |" in text
