"""The local stack's databases: what a killed scheduler leaves open in Airflow's does not stop its successor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from tools.stack import database
from tools.stack.database import Databases
from tools.stack.layout import Layout

# Takes a lock, has a child that was forked with the connection, as a scheduler has workers, and is killed.
SCHEDULER = """
import os, signal, sys, time
import psycopg2

session = psycopg2.connect(sys.argv[1])
session.cursor().execute("SELECT pg_advisory_xact_lock(7)")
worker = os.fork()
if not worker:
    time.sleep(300)
    os._exit(0)
print(worker, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Databases]:
    """Both databases on a server of their own; in Airflow's a transaction may be idle for a second."""
    monkeypatch.delenv("TIEOUT_DATABASE_URL", raising=False)
    monkeypatch.setattr(database, "LONGEST_IDLE", "1s")
    layout = Layout(tmp_path)
    try:
        yield database.provide(layout, is_fresh=True)
    finally:
        database.stop(layout)


def answer(url: str, query: str) -> Any:
    """Return the one value that a query gives in a session of its own."""
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute(query)
        (value,) = cursor.fetchone() or (None,)
        return value


def test_what_a_killed_scheduler_locked_is_free_again_while_its_workers_live(databases: Databases) -> None:
    """They hold its connection open, so PostgreSQL does not see that nobody is there."""
    killed = [sys.executable, "-c", SCHEDULER, databases.airflow]
    with subprocess.Popen(killed, stdout=subprocess.PIPE) as scheduler:
        assert scheduler.stdout
        worker = int(scheduler.stdout.readline())
    try:
        assert scheduler.returncode == -signal.SIGKILL

        deadline = time.monotonic() + 30
        while not (is_free := answer(databases.airflow, "SELECT pg_try_advisory_lock(7)")):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)

        assert is_free
        assert Path(f"/proc/{worker}").exists()
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_transaction_on_the_results_may_take_its_time(databases: Databases) -> None:
    """The job reads its breaks from Spark while it publishes them."""
    assert answer(databases.tieout, "SHOW idle_in_transaction_session_timeout") == "0"
