"""The matrix as a page: victims, moments and results."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from tools.faults.matrix import HEARTBEAT_SECONDS, MOMENTS, Cell
from tools.faults.orders import LOST, SENT
from tools.faults.receiver import REFUSALS
from tools.faults.replays import ANSWERS, Replayed

_TABLE_COLUMNS = (
    *("at", "hit", "store right after", "by hand", "verdict", "rows", "alerts", "also told", "seconds"),
    "tried (UTC)",
)
HEAD = f"| {' | '.join(_TABLE_COLUMNS)} |\n|{'---|' * len(_TABLE_COLUMNS)}"
_REPLAY_COLUMNS = (
    "answer",
    "killed -9",
    "to produce",
    "rows after each kill, and in the end",
    "of messages",
    "run",
    "breaks resolved as replayed",
    "verdict of the window",
    "tried (UTC)",
)

_INTRODUCTION = """\
# The fault matrix

Written by `make fire`: Airflow {airflow}, PySpark {pyspark}, the local stack of `make up`, and one window of a small
pipeline whose undisturbed run is BROKEN: of {sent} orders, {lost} were lost. {runs}

Each line begins with an empty store. Something is killed with signal 9, or taken away, at one moment of the run; what
is dead then is started again after a second, as a supervisor would, and nothing else is touched until Airflow's run has
ended.
"""
_EXECUTOR = """\
The stack's Spark is one JVM, so it has no executor of its own to be killed: `tests/integration/test_cluster.py` kills
one with its worker on a standalone cluster of Spark, on every run of the tests.
"""
_COLUMNS = """\
- **store right after**: *as before* the run, or *as after*: everything of it that is published at once. Anything
  between is called TORN.
- **by hand**: how often a person had to clear the run for the window to be judged.
- **rows**: whether the window's statement, incidents, breaks, checks and verdict are those of the undisturbed run.
- **alerts**: of those that the undisturbed run sends. The receiver refuses the first {refusals} tries of each with 503.
  *Repeated* are requests under the `Idempotency-Key` of an alert that had been taken before: its sender died before it
  could note that ([at least once](alerts.md#delivery-at-least-once)).
- **also told**: alerts about the fault itself, a run without a verdict.
- Airflow gives up a task after {heartbeat} s without a heartbeat here, not after its default of 300 s. Leases and
  pauses of the outbox were ended early instead of waiting up to five minutes.
- A killed scheduler's workers are left alive, as containers and units would not leave them: what they were at goes on,
  and its connection stays open ([why that matters](../how-to/deploy.md#where-parts-are-killed)).
"""
_REPLAYS = """\
## Replays

The DAG `tieout_replay`, answered over REST, planned by `spark_apps/replay.py` through spark-submit, into a PostgreSQL
table ([how](../how-to/replay-lost-messages.md)). The approved one is killed in the middle of the table's transaction,
and on its second try between that transaction and the ledger of replays; its third try ends it.
"""


def row_of(cell: Cell) -> str:
    """Return a cell as a line of its table."""
    alerts = f"lost {cell.lost}, doubled {cell.doubled}"
    alerts += f", {cell.repeated} repeated" if cell.repeated else ""
    return _row(
        f"{cell.moment.name}",
        f"{cell.victim}" + ("" if cell.was_hit else " (NOT HIT)"),
        cell.store_after_kill,
        cell.acts or "no",
        cell.verdict,
        "equal" if cell.are_rows_equal else "DIFFER",
        alerts,
        cell.also_told or "nothing",
        round(cell.seconds),
        cell.tried_at,
    )


def replay_row_of(replay: Replayed) -> str:
    """Return a replay as a line of its table."""
    rows = ", ".join(map(str, replay.rows))
    cells = (
        replay.answer,
        replay.killed,
        replay.planned,
        rows,
        replay.keys,
        replay.state,
        replay.resolved,
        replay.verdict,
    )
    return _row(*cells, replay.tried_at)


def page(cells: Sequence[Cell], replays: Sequence[Replayed]) -> str:
    """Return the page."""
    versions = {"airflow": version("apache-airflow-core"), "pyspark": version("pyspark")}
    parts = [_INTRODUCTION.format(sent=SENT, lost=LOST, runs=_runs(cells, replays), **versions)]
    sound = sum(cell.is_sound for cell in cells)
    parts.append(
        f"{sound} of {len(cells)} lines are as they should be: the store whole, the window judged as if nothing had "
        f"happened, no alert lost and none doubled.{_untried(cells, replays)}\n"
    )
    parts.append(_EXECUTOR)
    parts.append("## Moments\n")
    parts.append(
        "\n".join(f"- **{moment.name}** (task `{moment.task}`): {moment.meaning}." for moment in MOMENTS)
        + "\n"
    )
    parts.append("## What was found\n")
    parts.append("\n".join((HEAD, *(row_of(cell) for cell in cells))) + "\n")
    parts.append(_COLUMNS.format(refusals=REFUSALS, heartbeat=HEARTBEAT_SECONDS))
    if replays:
        parts.append(_REPLAYS)
        head = f"| {' | '.join(_REPLAY_COLUMNS)} |\n|{'---|' * len(_REPLAY_COLUMNS)}"
        parts.append("\n".join((head, *(replay_row_of(replay) for replay in replays))) + "\n")
    return "\n".join(parts)


def _runs(cells: Sequence[Cell], replays: Sequence[Replayed]) -> str:
    """Return a sentence on the run or runs of the command that the lines come from."""
    began = sorted({line.run_at for line in cells} | {line.run_at for line in replays})
    if len(began) == 1:
        return f"All lines are of one run of it, which began at {began[0]} UTC."
    return (
        f"The lines are of {len(began)} runs of it, each of a part, which began at {', '.join(began)} UTC; "
        "the last column says when a line was tried."
    )


def _untried(cells: Sequence[Cell], replays: Sequence[Replayed]) -> str:
    """Return a sentence about the missing lines."""
    tried = {(cell.moment.name, cell.victim) for cell in cells}
    expected = [(moment.name, victim) for moment in MOMENTS for victim in moment.victims]
    missing = [f"{victim} at {moment}" for moment, victim in expected if (moment, victim) not in tried]
    missing += [
        f"the replay answered with {answer}"
        for answer in ANSWERS
        if answer not in {replay.answer for replay in replays}
    ]
    return f" Not tried: {', '.join(missing)}." if missing else ""


def _row(*values: object) -> str:
    return f"| {' | '.join(str(value) for value in values)} |"
