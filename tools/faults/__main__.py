"""`python -m tools.faults`: take away each part of the stack at each moment of a run, and tell what was found.

Every cell begins with an empty store and judges the same window, so that what it leaves can be compared with what a
run leaves that nobody disturbs. Each row is printed as it is there, and kept; `--report` writes a page of all that are
kept. A run of all begins with nothing kept, a run of a part replaces that part, and `--rest` tries what is not kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tieout.errors import TieoutError
from tieout.testing.postgres import free_port
from tools.faults import orders, report
from tools.faults.keeping import Kept
from tools.faults.killing import VICTIMS, stack_of
from tools.faults.matrix import HEARTBEAT_SECONDS, MOMENTS, Cell, Disturbed, Moment
from tools.faults.receiver import Receiver, serving
from tools.faults.replays import ANSWERS, Replayed, Replays
from tools.stack import interrupts, services, state
from tools.stack.console import Steps, complain, say
from tools.stack.environment import webhook
from tools.stack.errors import StackError
from tools.stack.examples import RECEIVER
from tools.stack.layout import ROOT, Layout
from tools.stack.services import Plan

REPLAY = "replay"
DISK = "64m"
SETTINGS = {
    # A dead scheduler's or worker's task is given up after a minute without a heartbeat instead of five. Not sooner: on
    # a busy machine a living scheduler may get no turn for most of a minute, takes itself for dead, and begins its
    # tasks anew, again and again.
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_SECONDS),
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": str(HEARTBEAT_SECONDS),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the matrix, or a part of it, and return 0 where every cell is sound, 1 where not, 2 where it could not be."""
    given = _arguments(words)
    layout = Layout(given.home.absolute())
    kept = Kept(layout.home / "found")
    os.environ.update(SETTINGS)
    interrupts.end_as_by_ctrl_c()
    sound = []
    try:
        with state.lock(layout), _started(layout) as disturbed:
            if not (given.moment or given.victim or given.rest):
                kept.clear()
            for one in _found(disturbed, _chosen(given, kept), has_replays=_has_replays(given, kept)):
                kept.keep(one)
                sound.append(one.is_sound)
                if given.report:
                    given.report.write_text(report.page(kept.cells(), kept.replays()), encoding="utf-8")
    except TieoutError as error:
        complain(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        complain("interrupted; what was started is stopped, what was found is kept")
        return interrupts.INTERRUPTED
    unsound = sound.count(False)
    say(f"{len(sound)} cells, {unsound} not as they should be")
    return 1 if unsound else 0


@contextmanager
def _started(layout: Layout) -> Iterator[Disturbed]:
    """Give a fresh stack whose alerts come to this process, and whose statements are on a disk of their own."""
    receiver, port = Receiver(), free_port()
    os.environ[f"TIEOUT_STACK_AIRFLOW_CONN_{RECEIVER.upper()}"] = webhook(port)
    try:
        with serving(receiver, port):
            services.stop(layout)
            services.clear(layout)
            with _disk(layout.statements):
                orders.prepare(layout.examples)
                plan = Plan((layout.examples,), webhooks=(), dags=frozenset({orders.PIPELINE}))
                services.start(layout, plan, Steps())
                disturbed = Disturbed(stack_of(layout), receiver)
                for dag in (orders.PIPELINE, "tieout_replay"):
                    disturbed.api.patch(f"/dags/{dag}", {"is_paused": False})
                yield disturbed
                services.stop(layout)
    finally:
        services.stop(layout)


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """Mount a small file system of its own at a folder, which can then be filled.

    Raises:
        StackError: where this user may not mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise StackError(
            f"{folder}: expected to mount a small file system to fill, found: {told.stderr.strip()}; run as root"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _chosen(given: argparse.Namespace, kept: Kept) -> list[tuple[Moment, str]]:
    """Return the cells to try, in the order of the page."""
    known = {(cell.moment, cell.victim) for cell in kept.cells()} if given.rest else set()
    return [
        (moment, victim)
        for moment in MOMENTS
        for victim in moment.victims
        if moment.name in (given.moment or [moment.name])
        and victim in (given.victim or [victim])
        and (moment, victim) not in known
    ]


def _has_replays(given: argparse.Namespace, kept: Kept) -> bool:
    """Return whether to try the replays, which are tried together."""
    is_known = given.rest and len(kept.replays()) == len(ANSWERS)
    return REPLAY in (given.moment or [REPLAY]) and not given.victim and not is_known


def _found(
    disturbed: Disturbed, chosen: Sequence[tuple[Moment, str]], *, has_replays: bool
) -> Iterator[Cell | Replayed]:
    """Try one line of the page after the other."""
    yield from _cells(disturbed, chosen)
    if has_replays:
        yield from _replays(disturbed)


def _cells(disturbed: Disturbed, chosen: Sequence[tuple[Moment, str]]) -> Iterator[Cell]:
    if not chosen:
        return
    expected = disturbed.undisturbed()
    say(f"undisturbed: {expected.verdict}, {len(expected.alerts)} alerts")
    say(report.HEAD)
    for moment, victim in chosen:
        cell = disturbed.cell(moment, victim, expected)
        say(report.row_of(cell))
        yield cell


def _replays(disturbed: Disturbed) -> Iterator[Replayed]:
    replays = Replays(disturbed)
    for play in (replays.rejected, replays.killed_and_approved):
        found = play()
        say(report.replay_row_of(found))
        yield found


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("--home", type=Path, default=ROOT / ".tieout" / "faults", help="the stack's folder")
    names = [*(moment.name for moment in MOMENTS), REPLAY]
    parser.add_argument("--moment", action="append", choices=names, help="just this moment; again for more")
    parser.add_argument("--victim", action="append", choices=VICTIMS, help="just this victim; again for more")
    parser.add_argument("--rest", action="store_true", help="just what is not kept of earlier runs")
    parser.add_argument("--report", type=Path, help="the page to write")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
