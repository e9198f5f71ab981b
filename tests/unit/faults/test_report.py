"""The page of the fault matrix: what makes a cell sound, and that a cell that is not shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.faults.found import CELL, REPLAY
from tools.faults.matrix import MOMENTS
from tools.faults.replays import ANSWERS, REJECT
from tools.faults.report import page

SOUND = replace(CELL, moment=MOMENTS[0], victim="task", also_told=0)
REJECTED = replace(REPLAY, answer=REJECT)


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


def test_the_page_says_what_was_not_tried() -> None:
    """A page of a part must not look like one of the whole."""
    text, with_one = page([SOUND], []), page([SOUND], [REJECTED])

    assert "task at window" not in text
    assert "Not tried: scheduler at window, postgres at window, scheduler at judging" in text
    assert "the replay answered with Reject, the replay answered with Approve." in text
    assert ", the replay answered with Approve." in with_one
    assert "the replay answered with Reject" not in with_one


def test_a_page_of_the_whole_names_nothing_untried() -> None:
    """Each moment's victims and both replays are there."""
    cells = [replace(SOUND, moment=moment, victim=victim) for moment in MOMENTS for victim in moment.victims]

    assert "Not tried" not in page(cells, [replace(REPLAY, answer=answer) for answer in ANSWERS])


def test_the_page_says_of_how_many_runs_it_is() -> None:
    """Put together from parts, it names each of them, and every line the time it was tried at."""
    later = replace(SOUND, victim="postgres", run_at="2026-11-21 09:00", tried_at="2026-11-21 09:07")

    whole, parts = page([SOUND], []), page([SOUND, later], [])

    assert "All lines are of one run of it, which began at 2026-11-20 10:00 UTC." in whole
    assert "of 2 runs of it, each of a part, which began at 2026-11-20 10:00, 2026-11-21 09:00 UTC" in parts
    assert "| 12 | 2026-11-21 09:07 |" in parts
