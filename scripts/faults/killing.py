"""Finding one part of a running stack and killing it with signal 9, and starting again what then is dead."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from scripts.stack import processes, state
from scripts.stack.errors import StackError
from scripts.stack.layout import Layout
from scripts.stack.processes import MARK
from scripts.stack.services import COMMANDS
from scripts.stack.state import Started

from tieout.testing import postgres

VICTIMS = ("scheduler", "task", "driver", "postgres")


@dataclass(frozen=True)
class Stack:
    """A running stack: where it lies, and the environment that its processes have."""

    layout: Layout
    started: Started
    environment: dict[str, str]
    postgres_port: int

    def kill(self, victim: str, dag_id: str, step: str) -> bool:
        """Kill a victim at a step, and return whether it was there to be killed."""
        pids = {
            "scheduler": self._scheduler,
            "task": lambda: self._task(dag_id, step),
            "driver": self._driver,
            "postgres": self._postmaster,
        }[victim]()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(pids)

    def restore(self) -> None:
        """Start PostgreSQL and Airflow's processes again where they are dead."""
        postgres.start(self.layout.postgres, self.postgres_port)
        alive = []
        for process in state.recalled(self.layout).processes:
            if processes.is_alive(process) or process.name not in COMMANDS:
                alive.append(process)
                continue
            log = self.layout.logs / f"{process.name}.log"
            command = [sys.executable, "-m", "airflow", *COMMANDS[process.name]]
            alive.append(processes.start(process.name, command, self.environment, log))
        state.remember(self.layout, Started(self.started.port, self.started.database_url, tuple(alive)))

    def running_step(self, dag_id: str) -> str | None:
        """Return the step whose task is running now; asked of the database, which answers faster than the API."""
        rows = self._asked(
            "SELECT task_id FROM task_instance WHERE dag_id = %s AND state = 'running'", dag_id
        )
        return str(rows[0][0]) if rows else None

    def _scheduler(self) -> list[int]:
        return [one.pid for one in state.recalled(self.layout).processes if one.name == "scheduler"]

    def _task(self, dag_id: str, step: str) -> list[int]:
        query = "SELECT pid FROM task_instance WHERE dag_id = %s AND task_id = %s AND state = 'running'"
        return [int(pid) for (pid,) in self._asked(query, dag_id, step) if pid]

    def _driver(self) -> list[int]:
        """Return Spark's JVM among the processes that carry the home's mark."""
        mark = f"{MARK}={self.layout.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = mark in (path / "environ").read_bytes().split(b"\0")
                if is_ours and b"org.apache.spark.deploy.SparkSubmit" in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def _postmaster(self) -> list[int]:
        return [int((self.layout.postgres / "postmaster.pid").read_text().splitlines()[0])]

    def _asked(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        url = self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].replace("+psycopg2", "", 1)
        try:
            with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
                cursor.execute(query, values)
                return list(cursor.fetchall())
        except psycopg2.Error:
            return []


def stack_of(layout: Layout) -> Stack:
    """Return the stack that runs on a home.

    Raises:
        StackError: where none does.
    """
    started = state.recalled(layout)
    scheduler = next((one for one in started.processes if one.name == "scheduler"), None)
    if scheduler is None:
        raise StackError(f"{layout.home}: expected a running stack with a scheduler, found none")
    pairs = Path(f"/proc/{scheduler.pid}/environ").read_bytes().split(b"\0")
    environment = dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair)
    port = int((layout.postgres / "postmaster.pid").read_text().splitlines()[3])
    return Stack(layout, started, environment, port)
