"""The embedded PostgreSQL: made once, started again after anything, reachable with its password only."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg2
import pytest

from tieout.testing import postgres


def _answer(url: str, query: str) -> object:
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
            return None if row is None else row[0]
    finally:
        connection.close()


def test_server_keeps_its_rows_over_a_restart(tmp_path: Path) -> None:
    """A second start serves what the first one stored, on the same password."""
    data_dir = tmp_path / "data"
    with postgres.running_postgres(data_dir) as url:
        connection = psycopg2.connect(url)
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept AS SELECT 7 AS n")
        connection.close()
    assert not postgres.running(data_dir)

    with postgres.running_postgres(data_dir) as url:
        assert _answer(url, "SELECT n FROM kept") == 7
        assert _answer(url, "SHOW fsync") == "on"
        assert _answer(url, "SHOW listen_addresses") == "127.0.0.1"


def test_server_starts_again_after_kill_9(tmp_path: Path) -> None:
    """A killed server's lock file and children do not keep the next one from starting."""
    data_dir = tmp_path / "data"
    postgres.initialise(data_dir)
    postgres.start(data_dir, postgres.free_port())
    os.kill(int((data_dir / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while postgres.running(data_dir) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (data_dir / "postmaster.pid").exists()

    url = postgres.start(data_dir, postgres.free_port())

    try:
        assert _answer(url, "SELECT 1") == 1
    finally:
        postgres.stop(data_dir)


def test_lock_file_of_another_process_is_stale(tmp_path: Path) -> None:
    """A lock file whose process id belongs to another program now does not count as a running server."""
    data_dir = tmp_path / "data"
    postgres.initialise(data_dir)
    (data_dir / "postmaster.pid").write_text(f"{os.getpid()}\n{data_dir}\n0\n5432\n")

    assert not postgres.running(data_dir)
    with postgres.running_postgres(data_dir) as url:
        assert _answer(url, "SELECT 1") == 1


def test_starting_twice_gives_the_same_server(tmp_path: Path) -> None:
    """A second start on another port returns the URL of the server that runs already."""
    data_dir = tmp_path / "data"
    with postgres.running_postgres(data_dir) as url:
        assert postgres.start(data_dir, postgres.free_port()) == url


def test_wrong_password_is_refused(tmp_path: Path) -> None:
    """Another user of the machine cannot connect without the password."""
    with (
        postgres.running_postgres(tmp_path / "data") as url,
        pytest.raises(psycopg2.OperationalError, match="password authentication failed"),
    ):
        psycopg2.connect(url, password="guess")  # noqa: S106 - wrong on purpose


def test_taken_port_is_one_clear_error(tmp_path: Path) -> None:
    """A port that another server has is named, with what PostgreSQL said about it."""
    first, second = tmp_path / "first", tmp_path / "second"
    postgres.initialise(second)
    port = postgres.free_port()
    postgres.initialise(first)
    postgres.start(first, port)
    try:
        with pytest.raises(postgres.PostgresError, match=rf"(?s)did not start on port {port}.*in use"):
            postgres.start(second, port)
    finally:
        postgres.stop(first)


def test_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """A data folder that holds anything else is refused, not overwritten."""
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(postgres.PostgresError, match="found others"):
        postgres.initialise(tmp_path)

    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_stop_of_a_stopped_server_does_nothing(tmp_path: Path) -> None:
    """Stopping is safe to repeat."""
    data_dir = tmp_path / "data"
    postgres.initialise(data_dir)

    postgres.stop(data_dir)

    assert not postgres.running(data_dir)


def test_programs_that_nobody_else_may_run_are_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below root's home PostgreSQL refuses its own programs: the error says where a checkout can be."""
    refused = subprocess.CompletedProcess([], 1, "", "invalid binary: Permission denied")
    monkeypatch.setattr(postgres, "_run", lambda *_: refused)
    monkeypatch.setattr(postgres, "_is_open", lambda _: False)

    with pytest.raises(postgres.PostgresError, match=r"Permission denied; .* such as below /srv"):
        postgres.initialise(tmp_path / "data")
