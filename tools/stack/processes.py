"""Starts processes that outlive this one, and finds exactly these again to stop them.

A process is identified by its pid and start time, so that a reused pid is left alone. Its descendants are found by
session and process group, and orphans of a killed parent in sessions of their own (Spark's JVM) by a mark in their
environment.
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
    """Start `command` in a new session, with its output appended to `log`."""
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
    """Return whether `process` itself still runs; a zombie or another process with its pid does not count."""
    entry = _table_entry(process.pid)
    return entry is not None and not entry.is_zombie and entry.started == process.started


def stop(processes: Collection[Process], mark: str, timeout: float = 20.0) -> int:
    """End `processes` and all their descendants, first with SIGTERM, and return their number.

    Args:
        processes: Results of `start`, of this or an earlier program.
        mark: The value of the environment variable `MARK` that identifies orphans.
        timeout: Seconds before they are killed.
    """
    pids = _family(processes, mark)
    count = len(pids)
    _signal((process.pid for process in processes if is_alive(process)), signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while any(is_alive(process) for process in processes) and time.monotonic() < deadline:
        _reap(processes)
        time.sleep(0.1)
    for _ in range(50):
        pids = _family(processes, mark)
        if not pids:
            break
        _signal(pids, signal.SIGKILL)
        _reap(processes)
        time.sleep(0.1)
    return count


def kill(pids: Iterable[int], timeout: float = 60.0) -> bool:
    """Kill processes, wait until they are dead, and return whether there were any and all of them existed.

    On a busy machine death takes seconds, in which a process still looks alive and would not be restarted.

    Raises:
        StackError: if one still exists after `timeout` seconds.
    """
    killed: list[int] = []
    all_existed = True
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        except ProcessLookupError:
            all_existed = False
    deadline = time.monotonic() + timeout
    while remaining := [
        pid for pid in killed if (entry := _table_entry(pid)) is not None and not entry.is_zombie
    ]:
        if time.monotonic() > deadline:
            raise StackError(f"processes {remaining}: killed, and still there after {timeout:.0f} s")
        time.sleep(0.02)
    return bool(killed) and all_existed


def _family(processes: Iterable[Process], mark: str) -> set[int]:
    """Return the pids of `processes`, their descendants and all with `mark`; never our own ancestors."""
    table = {
        entry.pid: entry
        for path in _PROC.glob("[0-9]*")
        if (entry := _table_entry(int(path.name))) is not None
    }
    leaders = {
        process.pid
        for process in processes
        if process.pid not in table or table[process.pid].started == process.started
    }
    excluded = _ancestors(os.getpid(), table)
    return {
        entry.pid
        for entry in table.values()
        if entry.pid not in excluded
        and not entry.is_zombie
        and (not leaders.isdisjoint({entry.pid, entry.group, entry.session}) or _has_mark(entry.pid, mark))
    }


def _ancestors(pid: int, table: Mapping[int, _Running]) -> set[int]:
    ancestors: set[int] = set()
    while pid in table and pid not in ancestors:
        ancestors.add(pid)
        pid = table[pid].parent
    return ancestors


def _has_mark(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _table_entry(pid: int) -> _Running | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    state, parent, group, session = fields[0], *(int(number) for number in fields[1:4])
    return _Running(pid, parent, group, session, int(fields[19]), state == "Z")


def _started(pid: int) -> int:
    entry = _table_entry(pid)
    return entry.started if entry else 0


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
