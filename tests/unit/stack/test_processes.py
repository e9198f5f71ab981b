"""Finding again what was started, and ending exactly that."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tools.stack import processes

# A parent that starts a child in a session of its own, writes the child's number, and waits.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""


def environment(mark: str) -> dict[str, str]:
    """Return an environment that carries the mark."""
    return {**os.environ, processes.MARK: mark}


def started(tmp_path: Path, mark: str) -> tuple[processes.Process, int]:
    """Start the parent and return it with its child's number."""
    log = tmp_path / "parent.log"
    parent = processes.start("parent", [sys.executable, "-c", PARENT], environment(mark), log)
    deadline = time.monotonic() + 30
    while not log.read_text().strip():
        assert time.monotonic() < deadline, "the parent did not start"
        time.sleep(0.05)
    return parent, int(log.read_text())


def is_there(pid: int) -> bool:
    """Return whether a process of that number runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_stopping_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    """Also a child that went into a session of its own."""
    parent, child = started(tmp_path, str(tmp_path))
    assert processes.is_alive(parent)

    count = processes.stop([parent], mark=str(tmp_path), timeout=1)

    assert count == 2
    assert not processes.is_alive(parent)
    assert not is_there(child)


def test_a_stray_of_a_killed_parent_is_found_by_its_mark(tmp_path: Path) -> None:
    """As Spark's JVM after a kill -9 of the scheduler, with the list of processes lost as well."""
    parent, child = started(tmp_path, str(tmp_path))
    os.kill(parent.pid, signal.SIGKILL)
    os.waitpid(parent.pid, 0)
    assert is_there(child)

    processes.stop([], mark=str(tmp_path))

    assert not is_there(child)


def test_a_stack_of_another_home_is_left_alone(tmp_path: Path) -> None:
    """Two checkouts on one machine."""
    other, child = started(tmp_path, str(tmp_path / "other"))
    try:
        assert processes.stop([], mark=str(tmp_path)) == 0
        assert processes.is_alive(other)
        assert is_there(child)
    finally:
        processes.stop([other], mark=str(tmp_path / "other"), timeout=1)


def test_a_stranger_with_a_used_number_is_left_alone() -> None:
    """The kernel gives numbers away again."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        known = processes.Process("old", stranger.pid, started=1)

        assert not processes.is_alive(known)
        assert processes.stop([known], mark="no such mark", timeout=0.1) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    """After the patience given."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    log = tmp_path / "deaf.log"
    deaf = processes.start("deaf", [sys.executable, "-c", code], environment(str(tmp_path)), log)
    while not log.read_text():
        time.sleep(0.05)

    processes.stop([deaf], mark=str(tmp_path), timeout=0.2)

    assert not processes.is_alive(deaf)
    assert processes.stop([deaf], mark=str(tmp_path)) == 0


def test_a_process_is_known_by_more_than_its_number(tmp_path: Path) -> None:
    """The start time belongs to it."""
    parent, _ = started(tmp_path, str(tmp_path))
    try:
        assert not processes.is_alive(replace(parent, started=parent.started + 1))
    finally:
        processes.stop([parent], mark=str(tmp_path), timeout=1)


@pytest.mark.parametrize("text", ["", "x"])
def test_output_goes_to_the_log(tmp_path: Path, text: str) -> None:
    """Both streams."""
    log = tmp_path / "out.log"
    code = f"import sys; print({text!r}); print('error', file=sys.stderr)"
    process = processes.start("short", [sys.executable, "-c", code], environment(str(tmp_path)), log)

    with contextlib.suppress(
        ChildProcessError
    ):  # ended, and reaped with its handle, before anybody could wait
        os.waitpid(process.pid, 0)

    assert sorted(log.read_text().split()) == sorted(["error", *text.split()])


def test_what_was_killed_is_dead_at_once(tmp_path: Path) -> None:
    """So whoever looks next sees that it is, and what is dead is started again."""
    log, known = tmp_path / "log", environment(str(tmp_path))
    many = [processes.start("sleeper", ["/bin/sleep", "60"], known, log) for _ in range(8)]

    assert processes.kill(one.pid for one in many)

    assert not [one for one in many if processes.is_alive(one)]


def test_one_that_was_not_there_was_not_killed(tmp_path: Path) -> None:
    """Nor was anything where there was nothing to kill; the others are dead all the same."""
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    living = processes.start(
        "living", ["/bin/sleep", "60"], environment(str(tmp_path)), tmp_path / "living.log"
    )

    assert not processes.kill([gone.pid, living.pid])
    assert not processes.is_alive(living)
    assert not processes.kill([])
