"""The snapshots that are kept: readable without Spark, and of golden histories what these expect."""

from __future__ import annotations

import pytest
from tests.engine.comparing import differences
from tests.snapshots.drawing import digest_of, golden
from tests.snapshots.keeping import FOLDER, OF_THE_RUN, read

PARTS = sorted(path.name for path in FOLDER.glob("*.jsonl.gz"))


def test_there_are_snapshots() -> None:
    """An empty folder must not look like agreement."""
    assert {"golden.jsonl.gz", "random.jsonl.gz"} <= set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_nothing_of_the_run_is_kept(part: str) -> None:
    """Neither run nor marks of a shared run are in a snapshot; each break has its ids."""
    found = read(FOLDER / part).values()

    assert found
    assert not {name for one in found for name in OF_THE_RUN if name in one.statement}
    ids = [row[name] for one in found for row in one.breaks for name in ("break_id", "incident_id")]
    assert ids
    assert {len(one) for one in ids} == {32}


def test_golden_histories_are_kept_as_they_expect() -> None:
    """A history that changed since is left to `make snapshots`, which tells that it has to be kept anew."""
    kept, histories = read(FOLDER / "golden.jsonl.gz"), golden()
    same = {
        name: one for name, one in histories.items() if name in kept and kept[name].digest == digest_of(one)
    }

    assert same
    wrong = {
        name: differences(one.expect, kept[name].statement, kept[name].breaks) for name, one in same.items()
    }
    assert {name: reported for name, reported in wrong.items() if reported} == {}
