"""Starts the whole stack on one home, waits until it is ready, and stops it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tieout.testing.postgres import free_port
from tools.stack import database, processes, spark, state
from tools.stack.api import Api, ApiError
from tools.stack.console import Steps, print_line
from tools.stack.environment import SPARK_SLOTS, airflow_environment, webhook
from tools.stack.errors import StackError
from tools.stack.interrupts import uninterrupted
from tools.stack.layout import Layout
from tools.stack.processes import Process
from tools.stack.state import Started

READY_SECONDS = 600.0
POOL = "spark"
COMMANDS = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}


def command_of(name: str) -> list[str]:
    """Return the command that runs one of Airflow's parts."""
    return [sys.executable, "-m", "airflow", *COMMANDS[name]]


@dataclass(frozen=True)
class Plan:
    """The contents of a stack: contract folders, connections of alerts, expected DAGs."""

    contracts: tuple[Path, ...]
    webhooks: tuple[str, ...]
    dags: frozenset[str]

    def with_contracts(self, folders: Iterable[Path]) -> Plan:
        """Return the same plan with more folders, whose DAGs are not waited for."""
        return replace(self, contracts=(*self.contracts, *folders))


def start(layout: Layout, plan: Plan, steps: Steps, *, is_fresh: bool = True) -> Started:
    """Start everything and return once Airflow answers, its parts are healthy and it lists the DAGs.

    Processes that an earlier, killed command left running on this home are stopped first.

    Args:
        layout: The home; its lock is held by the caller.
        plan: What to serve.
        steps: Records the seconds.
        is_fresh: Whether to begin with empty databases.

    Raises:
        StackError: if something does not start; the others are left for `stop`.
    """
    stop(layout)
    port = chosen_port(layout)
    with steps.step("starting PostgreSQL and creating the schemas"):
        databases = database.provide(layout, is_fresh=is_fresh)
        environment = airflow_environment(
            layout, databases, port=port, secrets=state.shared_secrets(layout), contracts=plan.contracts
        )
        archiving = spark.start_archiving(environment, layout.logs / "class-archive.log")
        receiver_port = free_port()
        for name in plan.webhooks:
            environment[f"AIRFLOW_CONN_{name.upper()}"] = webhook(receiver_port)
        state.save_environment(layout, environment)
        with ThreadPoolExecutor() as pool:
            results = pool.submit(database.migrate_results, databases)
            _migrate_airflow(layout, environment)
            results.result()
    with steps.step("starting Airflow"):
        started = Started(port, databases.tieout, ())
        commands = {name: command_of(name) for name in COMMANDS}
        receiver = [
            "-m",
            "tools.stack.receiver",
            "--port",
            str(receiver_port),
            "--file",
            str(layout.alerts),
        ]
        commands["receiver"] = [sys.executable, *receiver]
        for name, command in commands.items():
            process = processes.start(name, command, environment, layout.logs / f"{name}.log")
            started = Started(port, databases.tieout, (*started.processes, process))
            state.save_started(layout, started)
        await_ready(started, plan.dags, layout.logs)
    if archiving is not None:
        with steps.step("archiving Spark's classes, once an installation"):
            _finish_archiving(archiving, layout.logs / "class-archive.log")
    return started


def stop(layout: Layout, timeout: float = 10.0) -> int:
    """Stop all processes on this home, including those of a killed command; return their number.

    It is quick, so signals are ignored until it is done.
    """
    with uninterrupted():
        started = state.load_started(layout)
        count = processes.stop(started.processes if started else (), mark=str(layout.home), timeout=timeout)
        database.stop(layout)
        state.clear_started(layout)
    return count


def clear(layout: Layout) -> None:
    """Remove the files of an earlier demonstration, except the lock."""
    for path in (layout.postgres, layout.airflow, layout.logs, layout.examples, layout.statements):
        shutil.rmtree(path, ignore_errors=True)
    layout.alerts.unlink(missing_ok=True)


def is_running(started: Started) -> bool:
    """Return whether all processes of a stack are alive."""
    return bool(started.processes) and all(processes.is_alive(process) for process in started.processes)


def chosen_port(layout: Layout) -> int:
    """Return the port for Airflow's page: TIEOUT_PORT if set, else a fixed one per home.

    Raises:
        StackError: if TIEOUT_PORT is not a port, or taken.
    """
    port = os.environ.get("TIEOUT_PORT")
    if not port:
        usual = 20_000 + zlib.crc32(str(layout.home).encode()) % 10_000
        return usual if _is_free(usual) else free_port()
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise StackError(f"TIEOUT_PORT: expected a number from 1 to 65535, found {port!r}")
    if not _is_free(int(port)):
        raise StackError(
            f"port {port} on 127.0.0.1 (TIEOUT_PORT) is taken: stop what listens there, choose another, "
            "or unset TIEOUT_PORT to get a free one"
        )
    return int(port)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def await_ready(started: Started, dags: Collection[str], logs: Path) -> None:
    """Wait until Airflow's parts are healthy and it lists `dags`; also create the pool.

    Raises:
        StackError: if a process ends, a DAG file is broken, or it takes more than ten minutes.
    """
    api = Api(started.address)
    began = reported = time.monotonic()
    has_pool = False
    while True:
        missing: Iterable[str] = api.unhealthy()
        if not missing:
            has_pool = has_pool or _create_pool(api)
            missing = sorted(set(dags) - api.dag_ids())
            if missing and (errors := api.import_errors()):
                raise StackError(f"a DAG file cannot be imported: {'; '.join(errors)}")
        _require_alive(started.processes, logs)
        if not missing:
            return
        if time.monotonic() - began > READY_SECONDS:
            raise StackError(
                f"not ready after {READY_SECONDS:.0f} s: {', '.join(missing)}; the logs are in {logs}"
            )
        if time.monotonic() - reported >= 5:
            reported = time.monotonic()
            print_line(f"    … {reported - began:.0f} s, waiting for {', '.join(missing)}")
        time.sleep(0.5)


def _create_pool(api: Api) -> bool:
    """Create the pool that limits Spark's memory; without it a task would wait forever."""
    body = {
        "name": POOL,
        "slots": SPARK_SLOTS,
        "description": "Spark jobs at a time",
        "include_deferred": False,
    }
    try:
        api.post("/pools", body)
    except ApiError as error:
        if error.status != 409:
            raise
    return True


def _require_alive(started: Iterable[Process], logs: Path) -> None:
    for process in started:
        if not processes.is_alive(process):
            raise StackError(f"{process.name} ended: {_last_line(logs / f'{process.name}.log')}")


def _migrate_airflow(layout: Layout, environment: Mapping[str, str]) -> None:
    log = layout.logs / "migrate.log"
    process = processes.start("migrate", [sys.executable, "-m", "airflow", "db", "migrate"], environment, log)
    state.save_started(layout, Started(0, "", (process,)))
    began = reported = time.monotonic()
    while processes.is_alive(process):
        if time.monotonic() - reported >= 5:
            reported = time.monotonic()
            print_line(f"    … {reported - began:.0f} s, Airflow's schema")
        time.sleep(0.1)
    _, status = os.waitpid(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise StackError(f"Airflow's schema could not be created: {_last_line(log)}")


def _finish_archiving(process: Process, log: Path) -> None:
    """Wait for the class archive; without it jobs only start more slowly, and the next start tries again."""
    while processes.is_alive(process):
        time.sleep(0.2)
    if not spark.finish_archiving():
        print_line(f"    no class archive, so jobs take longer to start: {_last_line(log)}")


def _last_line(log: Path) -> str:
    lines = (
        [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if log.exists()
        else []
    )
    return f"{lines[-1].strip() if lines else 'it said nothing'} ({log})"
