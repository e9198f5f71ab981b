"""Starting processes that outlive this one, and finding exactly those again to stop them.

A process is known by its number and its start time, so that a number used again by a stranger is left alone.
What it started is found by its session and process group, and, where a killed parent left strays in sessions
of their own (Spark's JVM), by a mark in their environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.stack.errors import StackError

MARK = "TIEOUT_STACK"
_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process that was started here: `started` is the kernel's start time in ticks since boot."""

    name: str
    pid: int
    started: int


@dataclass(frozen=True)
class _Running:
    """A line of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    is_zombie: bool


def start(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start `command` in a session of its own, with its output appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Process(name, child.pid, _started(child.pid))


def is_alive(process: Process) -> bool:
    """Return whether `process` itself still runs; a zombie or a stranger with its number does not count."""
    found = _look(process.pid)
    return found is not None and not found.is_zombie and found.started == process.started


def stop(processes: Collection[Process], mark: str, patience: float = 20.0) -> int:
    """End `processes` and all they started, politely at first, and return how many there were.

    Args:
        processes: What `start` returned, of this or an earlier program.
        mark: The value of the environment variable `MARK` by which strays are known.
        patience: The seconds given to them before they are killed.
    """
    ours = _family(processes, mark)
    count = len(ours)
    _signal((process.pid for process in processes if is_alive(process)), signal.SIGTERM)
    deadline = time.monotonic() + patience
    while any(is_alive(process) for process in processes) and time.monotonic() < deadline:
        _reap(processes)
        time.sleep(0.1)
    for _ in range(50):
        ours = _family(processes, mark)
        if not ours:
            break
        _signal(ours, signal.SIGKILL)
        _reap(processes)
        time.sleep(0.1)
    return count


def kill(pids: Iterable[int], patience: float = 60.0) -> bool:
    """Kill processes, and return whether there were any and all were there; back when they are dead.

    On a busy machine that takes seconds, in which a process looks alive, and is not: it would not be started again.

    Raises:
        StackError: where one is still there after `patience` seconds.
    """
    killed: list[int] = []
    were_there = True
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        except ProcessLookupError:
            were_there = False
    deadline = time.monotonic() + patience
    while left := [pid for pid in killed if (found := _look(pid)) is not None and not found.is_zombie]:
        if time.monotonic() > deadline:
            raise StackError(f"processes {left}: killed, and still there after {patience:.0f} s")
        time.sleep(0.02)
    return bool(killed) and were_there


def _family(processes: Iterable[Process], mark: str) -> set[int]:
    """Return the pids of `processes`, what they started and what carries `mark`; never our own parents."""
    table = {
        entry.pid: entry for path in _PROC.glob("[0-9]*") if (entry := _look(int(path.name))) is not None
    }
    leaders = {
        known.pid
        for known in processes
        if known.pid not in table or table[known.pid].started == known.started
    }
    excluded = _ancestors(os.getpid(), table)
    return {
        entry.pid
        for entry in table.values()
        if entry.pid not in excluded
        and not entry.is_zombie
        and (not leaders.isdisjoint({entry.pid, entry.group, entry.session}) or _carries(entry.pid, mark))
    }


def _ancestors(pid: int, table: Mapping[int, _Running]) -> set[int]:
    found: set[int] = set()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found


def _carries(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _look(pid: int) -> _Running | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    state, parent, group, session = fields[0], *(int(number) for number in fields[1:4])
    return _Running(pid, parent, group, session, int(fields[19]), state == "Z")


def _started(pid: int) -> int:
    found = _look(pid)
    return found.started if found else 0


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _reap(processes: Iterable[Process]) -> None:
    """Collect those of `processes` that are children of this program, so that they do not stay as zombies."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue
