"""Which lines of the page a command tries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.faults.found import CELL, REPLAY
from tools.faults.__main__ import _arguments, _chosen, _has_replays
from tools.faults.keeping import Kept
from tools.faults.matrix import MOMENTS
from tools.faults.replays import REJECT

ALL = sum(len(moment.victims) for moment in MOMENTS)


@pytest.mark.parametrize(
    ("words", "cells", "has_replays"),
    [
        ((), ALL, True),
        (("--moment", "window"), 3, False),
        (("--victim", "disk"), 1, False),
        (("--moment", "replay"), 0, True),
        (("--moment", "judging", "--moment", "replay", "--victim", "disk"), 1, False),
    ],
)
def test_a_part_is_what_was_asked_for(
    tmp_path: Path, words: tuple[str, ...], cells: int, has_replays: bool
) -> None:
    """Replays have no victims, so a command that names one tries none."""
    given, kept = _arguments(words), Kept(tmp_path)

    assert (len(_chosen(given, kept)), _has_replays(given, kept)) == (cells, has_replays)


def test_the_rest_is_what_is_not_kept(tmp_path: Path) -> None:
    """Replays are tried together: one alone is none."""
    given, kept = _arguments(["--rest"]), Kept(tmp_path)
    kept.save(CELL)
    kept.save(REPLAY)

    assert len(_chosen(given, kept)) == ALL - 1
    assert (CELL.moment, CELL.victim) not in _chosen(given, kept)
    assert _has_replays(given, kept)

    kept.save(replace(REPLAY, answer=REJECT))
    assert not _has_replays(given, kept)
