"""The engine against the simulation's truth: every fault at once, through the commands, on local Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tieout.simulation.reading import read_run, read_truth
from tieout.simulation.scoring import Score, score

pytestmark = pytest.mark.timeout(1_500)

DESCRIPTION = """\
version: 1
pipeline: payments
guarantee: exactly_once
messages: 6000
rate: 100
batch: 10
topics:
  - {name: payments, partitions: 8}
  - {name: balances, partitions: 3, cleanup_policy: compact}
producers:
  - {name: checkout, kind: idempotent}
  - {name: legacy, kind: plain}
  - {name: clearing, kind: transactional}
faults: {all: 0.001}
"""


def tieout(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "tieout.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1_400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a simulation of every fault, and the statement about it."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "payments.yml").write_text(DESCRIPTION)
    made = tieout("simulate", folder / "payments.yml", "--output", folder / "simulated")
    assert made.returncode == 0, made.stderr
    window = (folder / "simulated" / "window.args").read_text().split()
    judged = tieout(
        "reconcile", folder / "simulated" / "contract.yml", *window, "--output", folder / "statement"
    )
    assert judged.returncode == 1, judged.stderr
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> Score:
    """The score of the run."""
    summary, truth = read_truth(folder / "simulated")
    statement, breaks = read_run(folder / "statement")
    return score(truth, breaks, summary, statement)


def test_classes_and_flags_are_found_without_fault(found: Score) -> None:
    """Every break, none that is not one, and every sum of the statement."""
    assert found.classes.total().truth > 200
    assert found.classes.differences == []
    assert found.flags.differences == []
    assert found.counts == ()


def test_every_break_lies_where_its_fault_struck(found: Score) -> None:
    """By docs/reference/taxonomy.md, sections 3 and 4."""
    assert found.loci.differences == []


def test_no_cause_is_wrong(found: Score) -> None:
    """A cause may be left open, and none may be guessed; most are told."""
    wrong = {cause: line for cause, line in found.causes.lines.items() if line.precision != 1}
    assert wrong == {}
    assert found.causes.total().recall > 0.5
