"""Seconds, CPU seconds and peak memory of a process and its descendants, from Linux's /proc (proc(5))."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU seconds used by this process and its living descendants, including waited-for children."""
    return sum(_ticks(pid) for pid in _family(os.getpid())) / _TICKS


def peak_memory() -> int:
    """Return the sum in bytes of the peak memory of this process and its living descendants."""
    return sum(_peak(pid) for pid in _family(os.getpid()))


def workers_memory() -> int:
    """Return the peak memory in bytes of the largest Python process among the descendants."""
    workers = (pid for pid in _family(os.getpid())[1:] if "python" in _command(pid))
    return max(map(_peak, workers), default=0)


def _command(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "comm").read_text()
    except OSError:
        return ""


def _family(root: int) -> list[int]:
    parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    pids = [root]
    for pid in pids:
        pids += [child for child, parent in parents.items() if parent == pid]
    return pids


def _fields(pid: Path) -> list[str]:
    """Return the fields of `stat` after the command's name, which may hold spaces; none for a process that is gone."""
    try:
        return (pid / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(pid: Path) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _ticks(pid: int) -> int:
    return sum(int(value) for value in _fields(Path("/proc") / str(pid))[11:15])


def _peak(pid: int) -> int:
    try:
        lines = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


@dataclass(frozen=True)
class Measured:
    """The measurements of one contender on one dataset; without `seconds` it did not finish, and `failure` says why.

    `steps` are the seconds of the parts of a run, and `moved` the bytes moved and held by the last run, if reported.
    """

    seconds: float | None
    cpu: float | None
    memory: int | None
    answer: dict[str, int]
    repeats: int
    failure: str | None = None
    steps: dict[str, float] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)


def measured(command: Sequence[str], environment: dict[str, str], limit: float, log: Path) -> Measured:
    """Return the medians of a contender's runs; of several, the first, in which Java warms up, is skipped.

    After `limit` seconds in total it is stopped, and the completed runs count. Its temporary files are removed.
    """
    lines: list[dict[str, Any]] = []
    with log.open("a", encoding="utf-8") as log_file, TemporaryDirectory(dir=log.parent) as scratch:
        process = subprocess.Popen(
            command,
            env={**environment, "TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch},
            stdout=subprocess.PIPE,
            stderr=log_file,
            text=True,
            start_new_session=True,
        )
        watch = Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
        watch.start()
        try:
            for line in process.stdout or ():
                log_file.write(line)
                if line.startswith("{"):
                    lines.append(json.loads(line))
            code = process.wait()
        finally:
            watch.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    runs = [line for line in lines if "seconds" in line]
    if not runs:
        failure = (
            f"not finished after {limit:.0f} s" if code == -signal.SIGKILL else f"failed, exit code {code}"
        )
        return Measured(None, None, None, {}, 0, failure)
    counted = runs[1:] or runs
    return Measured(
        seconds=median(run["seconds"] for run in counted),
        cpu=median(run["cpu"] for run in counted),
        memory=max(run["memory"] for run in runs),
        answer=runs[-1]["answer"],
        repeats=len(counted),
        steps=_steps(lines, len(runs) - len(counted)),
        moved=next((line["moved"] for line in reversed(lines) if "moved" in line), {}),
    )


def _steps(lines: Sequence[dict[str, Any]], skipped: int) -> dict[str, float]:
    """Return the median seconds of each step, without numbers in its name, over all but the skipped runs."""
    by_name: dict[str, list[float]] = {}
    step_lines = [line for line in lines if "step" in line]
    ends = [place for place, line in enumerate(step_lines) if line["step"] == "end"]
    counted = step_lines[ends[skipped - 1] if skipped else 0 : ends[-1] + 1] if ends else []
    for step, following in pairwise(counted):
        if step["step"] != "end":
            name = re.sub(r"[0-9]+", "…", step["step"])
            by_name.setdefault(name, []).append(following["at"] - step["at"])
    return {name: median(seconds) for name, seconds in by_name.items()}
