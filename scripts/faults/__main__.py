"""`python -m scripts.faults`: kill each part of the stack at each step of a run, and print what was found.

Every cell begins with an empty store and judges the same example, so that what it leaves can be compared with what a
run leaves that nobody disturbs. The table is printed as Markdown, row by row: docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.faults.killing import VICTIMS, stack_of
from scripts.faults.matrix import STEPS, Cell, Disturbed
from scripts.stack import demo, services, state
from scripts.stack.console import Steps, complain, say
from scripts.stack.layout import ROOT, Layout

from tieout.errors import TieoutError

EXAMPLE = "commit_before_process"
HEAD = (
    "killed",
    "at step",
    "hit",
    "store right after",
    "repeated by hand",
    "seconds",
    "verdict",
    "rows",
    "alerts",
)
SETTINGS = {
    # A dead scheduler's or worker's task is given up after 30 s without a heartbeat instead of five minutes.
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the matrix, or a part of it, and return 0 where every cell is sound, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=ROOT / ".tieout" / "faults", help="the stack's folder")
    parser.add_argument("--step", action="append", choices=tuple(STEPS), help="just this step")
    parser.add_argument("--victim", action="append", choices=VICTIMS, help="just this victim")
    given = parser.parse_args(words)
    layout = Layout(given.home.absolute())
    os.environ.update(SETTINGS)
    cells: list[Cell] = []
    try:
        with state.lock(layout):
            try:
                services.clear(layout)
                chosen = demo.examples_of(layout, [EXAMPLE], keep=False)
                services.start(layout, demo.plan_of(chosen), Steps())
                disturbed = Disturbed(stack_of(layout), chosen[0])
                disturbed.api.patch(f"/dags/{disturbed.pipeline}", {"is_paused": False})
                expected = disturbed.undisturbed()
                say(f"undisturbed: {expected.verdict}, {expected.alerts} alerts")
                for line in (HEAD, tuple("---" for _ in HEAD)):
                    say(row(line))
                for step in given.step or STEPS:
                    for victim in STEPS[step]:
                        if not given.victim or victim in given.victim:
                            cells.append(disturbed.cell(step, victim, expected))
                            say(row(values_of(cells[-1])))
            finally:
                services.stop(layout)
    except TieoutError as error:
        complain(f"error: {error}")
        return 2
    unsound = sum(not cell.is_sound for cell in cells)
    say(f"{len(cells)} cells, {unsound} not as they should be")
    return 1 if unsound else 0


def values_of(cell: Cell) -> tuple[str, ...]:
    """Return a cell as a row's values, in the order of `HEAD`."""
    hit = "yes" if cell.was_hit else "NO"
    acts = str(cell.acts) if cell.acts else "no"
    told = (cell.victim, cell.step, hit, cell.store_after_kill, acts, f"{cell.seconds:.0f}")
    return (*told, cell.verdict, cell.rows, cell.alerts)


def row(values: Sequence[str]) -> str:
    """Return a line of a Markdown table.

    >>> row(("a", "b"))
    '| a | b |'
    """
    return f"| {' | '.join(values)} |"


if __name__ == "__main__":
    sys.exit(main())
