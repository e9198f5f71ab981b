"""Kills one part of a running stack, and restarts dead parts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from tieout.testing import postgres
from tools.stack import processes, state
from tools.stack.errors import StackError
from tools.stack.layout import Layout
from tools.stack.processes import MARK
from tools.stack.services import COMMANDS, command_of
from tools.stack.state import Started

KILLED = ("scheduler", "task", "driver", "postgres")
TAKEN_AWAY = ("connection", "disk", "receiver")
VICTIMS = (*KILLED, *TAKEN_AWAY)
APPLICATION = "faults"
"""The application name of our own sessions, so that they are not terminated."""
_FILLER = "filler"


@dataclass(frozen=True)
class Stack:
    """A running stack: its home, and the environment of its processes."""

    layout: Layout
    started: Started
    environment: dict[str, str]
    postgres_port: int

    def kill(self, victim: str, dag_id: str) -> bool:
        """Kill a victim with SIGKILL, cut the store's connections or fill the disk; return whether it existed."""
        if victim == "connection":
            return self._cut_connections()
        if victim == "disk":
            return self._fill_disk()
        pids = {
            "scheduler": self._scheduler,
            "task": lambda: self._task(dag_id),
            "driver": self.driver,
            "postgres": self._postmaster,
        }[victim]()
        return processes.kill(pids)

    def restore(self) -> None:
        """Restart PostgreSQL and Airflow's processes if they are dead."""
        postgres.start(self.layout.postgres, self.postgres_port)
        started = list(state.running(self.layout).processes)
        living = {process.name for process in started if processes.is_alive(process)}
        dead = [name for name in COMMANDS if name not in living]
        if not dead:
            return
        for name in dead:
            log = self.layout.logs / f"{name}.log"
            started.append(processes.start(name, command_of(name), self.environment, log))
        # Dead processes stay in the list: their orphaned workers are found by it when the stack is stopped.
        state.save_started(self.layout, Started(self.started.port, self.started.database_url, tuple(started)))

    def free_disk(self) -> None:
        """Delete the file that filled the disk."""
        (self.layout.statements / _FILLER).unlink(missing_ok=True)

    def running_step(self, dag_id: str) -> str | None:
        """Return the step whose task is running now, from the database, which is faster than the API."""
        rows = self._query(
            self._airflow_url(),
            "SELECT task_id FROM task_instance WHERE dag_id = %s AND state = 'running'",
            dag_id,
        )
        return str(rows[0][0]) if rows else None

    def is_at_work(self, dag_id: str) -> bool:
        """Return whether a DAG has a run that has not ended."""
        query = "SELECT run_id FROM dag_run WHERE dag_id = %s AND state IN ('queued', 'running')"
        return bool(self._query(self._airflow_url(), query, dag_id))

    def progress(self) -> list[tuple[Any, ...]]:
        """Return the state and tries of every task."""
        query = "SELECT dag_id, run_id, task_id, try_number, state FROM task_instance ORDER BY id"
        return self._query(self._airflow_url(), query)

    def driver(self) -> list[int]:
        """Return the pids of Spark's JVM among the processes that carry the home's mark."""
        mark = f"{MARK}={self.layout.home}".encode()
        pids = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                is_of_stack = mark in (path / "environ").read_bytes().split(b"\0")
                if is_of_stack and b"org.apache.spark.deploy.SparkSubmit" in (path / "cmdline").read_bytes():
                    pids.append(int(path.name))
            except OSError:
                continue
        return pids

    def is_waiting_for_lock(self, url: str) -> bool:
        """Return whether a session of a database waits for a lock, in the middle of a transaction."""
        query = (
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return bool(self._query(url, query))

    def _scheduler(self) -> list[int]:
        started = state.running(self.layout).processes
        return [
            process.pid for process in started if process.name == "scheduler" and processes.is_alive(process)
        ]

    def _task(self, dag_id: str) -> list[int]:
        query = "SELECT pid FROM task_instance WHERE dag_id = %s AND state = 'running'"
        return [int(pid) for (pid,) in self._query(self._airflow_url(), query, dag_id) if pid]

    def _postmaster(self) -> list[int]:
        return [int((self.layout.postgres / "postmaster.pid").read_text().splitlines()[0])]

    def _cut_connections(self) -> bool:
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name <> %s AND backend_type = 'client backend'"
        )
        return bool(self._query(self.started.database_url, query, APPLICATION))

    def _fill_disk(self) -> bool:
        """Fill the file system of the statements, which holds nothing else, completely."""
        try:
            with (self.layout.statements / _FILLER).open("wb", buffering=0) as file:
                for size in (1 << 20, 1 << 12, 1):
                    while file.write(b"0" * size) == size:
                        pass
        except OSError:
            return True
        return False

    def _airflow_url(self) -> str:
        return self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].replace("+psycopg2", "", 1)

    @staticmethod
    def _query(url: str, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Return a query's rows, none if PostgreSQL is down."""
        try:
            with (
                closing(psycopg2.connect(url, application_name=APPLICATION)) as session,
                session.cursor() as cursor,
            ):
                cursor.execute(query, values)
                return list(cursor.fetchall())
        except psycopg2.Error:
            return []


def stack_of(layout: Layout) -> Stack:
    """Return the stack that runs on a home.

    Raises:
        StackError: if none does.
    """
    started = state.running(layout)
    if not started.processes:
        raise StackError(f"{layout.home}: expected a running stack, found no process of it; start it first")
    port = int((layout.postgres / "postmaster.pid").read_text().splitlines()[3])
    return Stack(layout, started, state.running_environment(layout), port)
