"""Each fault alone: what the truth says of it is what the taxonomy's oracle finds in the rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.oracle import judge_history
from tests.simulation.running import Run, described, run

from tieout.simulation.faults import FAULTS
from tieout.simulation.scoring import Score, score


def judged(made: Run) -> Score:
    """Return the score of the oracle, which tells no causes."""
    statement = judge_history(made.contract, made.window, made.dated(), made.coverage())
    breaks = [row | {"cause": None, "admissible": []} for row in statement["breaks"]]
    return score(made.truth, breaks, made.summary, statement)


def test_there_are_faults() -> None:
    """An empty catalogue must not look like success."""
    assert len(FAULTS) > 50


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_of_a_fault_is_what_the_oracle_finds(tmp_path: Path, name: str, seed: int) -> None:
    """Classes, flags, sums and verdict agree; the oracle shares no code with the simulation."""
    made = run(tmp_path, described(faults={name: 0.01}), seed)

    found = judged(made)

    assert made.summary["faults"][name] >= 1
    assert found.counts == ()
    assert found.classes.differences == []
    assert found.flags.differences == []


@pytest.mark.parametrize("seed", [1])
def test_all_faults_together_leave_each_other_alone(tmp_path: Path, seed: int) -> None:
    """Every fault has a place of its own, so that the truth of each stays true beside the others."""
    made = run(tmp_path, described(messages=1_600, rate=80, topics=_WIDE, faults={"all": 0.001}), seed)

    found = judged(made)

    assert made.summary["faults"].keys() == FAULTS.keys()
    assert found.counts == ()
    assert found.classes.differences == []
    assert found.flags.differences == []


_WIDE = [
    {"name": "orders", "partitions": 8},
    {"name": "prices", "partitions": 2, "cleanup_policy": "compact"},
]


def test_a_clean_pipeline_keeps_every_guarantee(tmp_path: Path) -> None:
    """Without faults there is not one break, and the verdict is KEPT."""
    made = run(tmp_path, described())

    found = judged(made)

    assert made.truth == []
    assert made.summary["verdict"] == "KEPT"
    assert found.counts == ()
    assert found.classes.lines == {}
