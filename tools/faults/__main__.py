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
from tools.stack.console import Steps, print_error, print_line
from tools.stack.environment import webhook
from tools.stack.errors import StackError
from tools.stack.examples import RECEIVER
from tools.stack.layout import ROOT, Layout
from tools.stack.services import Plan

REPLAY = "replay"
DISK = "64m"
SETTINGS = {
    # A dead scheduler's or worker's task is failed after a minute without a heartbeat instead of five. Not sooner: on
    # a busy machine a living scheduler may get no turn for most of a minute, takes itself for dead, and begins its
    # tasks anew, again and again.
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_SECONDS),
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
    "TIEOUT_STACK_AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": str(HEARTBEAT_SECONDS),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the matrix, or a part of it, and return 0 if every cell is sound, 1 if not, 2 if it could not run."""
    options = _arguments(argv)
    layout = Layout(options.home.absolute())
    kept = Kept(layout.home / "found")
    os.environ.update(SETTINGS)
    interrupts.end_as_by_ctrl_c()
    sound = []
    try:
        with state.lock(layout), _started(layout) as disturbed:
            if not (options.moment or options.victim or options.rest):
                kept.clear()
            for result in _results(
                disturbed, _chosen(options, kept), has_replays=_has_replays(options, kept)
            ):
                kept.save(result)
                sound.append(result.is_sound)
                if options.report:
                    options.report.write_text(report.page(kept.cells(), kept.replays()), encoding="utf-8")
    except TieoutError as error:
        print_error(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        print_error("interrupted; what was started is stopped, what was found is kept")
        return interrupts.INTERRUPTED
    unsound = sound.count(False)
    print_line(f"{len(sound)} cells, {unsound} not as they should be")
    return 1 if unsound else 0


@contextmanager
def _started(layout: Layout) -> Iterator[Disturbed]:
    """Yield a fresh stack that sends its alerts to this process and has its statements on a disk of their own."""
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
    """Mount a small file system at a folder, which can then be filled.

    Raises:
        StackError: if this user may not mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        raise StackError(
            f"{folder}: expected to mount a small file system to fill, found: {mounted.stderr.strip()}; run as root"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _chosen(options: argparse.Namespace, kept: Kept) -> list[tuple[Moment, str]]:
    """Return the cells to run, in the order of the page."""
    done = {(cell.moment, cell.victim) for cell in kept.cells()} if options.rest else set()
    return [
        (moment, victim)
        for moment in MOMENTS
        for victim in moment.victims
        if moment.name in (options.moment or [moment.name])
        and victim in (options.victim or [victim])
        and (moment, victim) not in done
    ]


def _has_replays(options: argparse.Namespace, kept: Kept) -> bool:
    """Return whether to run the replays, which always run together."""
    is_done = options.rest and len(kept.replays()) == len(ANSWERS)
    return REPLAY in (options.moment or [REPLAY]) and not options.victim and not is_done


def _results(
    disturbed: Disturbed, chosen: Sequence[tuple[Moment, str]], *, has_replays: bool
) -> Iterator[Cell | Replayed]:
    """Run the lines of the page in order."""
    yield from _cells(disturbed, chosen)
    if has_replays:
        yield from _replays(disturbed)


def _cells(disturbed: Disturbed, chosen: Sequence[tuple[Moment, str]]) -> Iterator[Cell]:
    if not chosen:
        return
    expected = disturbed.undisturbed()
    print_line(f"undisturbed: {expected.verdict}, {len(expected.alerts)} alerts")
    print_line(report.HEAD)
    for moment, victim in chosen:
        cell = disturbed.cell(moment, victim, expected)
        print_line(report.row_of(cell))
        yield cell


def _replays(disturbed: Disturbed) -> Iterator[Replayed]:
    replays = Replays(disturbed)
    for play in (replays.rejected, replays.killed_and_approved):
        result = play()
        print_line(report.replay_row_of(result))
        yield result


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("--home", type=Path, default=ROOT / ".tieout" / "faults", help="the stack's folder")
    moments = [*(moment.name for moment in MOMENTS), REPLAY]
    parser.add_argument("--moment", action="append", choices=moments, help="just this moment; again for more")
    parser.add_argument("--victim", action="append", choices=VICTIMS, help="just this victim; again for more")
    parser.add_argument("--rest", action="store_true", help="just what is not kept of earlier runs")
    parser.add_argument("--report", type=Path, help="the page to write")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
