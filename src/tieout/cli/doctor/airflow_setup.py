"""Checks of Airflow: its version, the DAG files, the pool, and the connection to Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from tieout.cli.dag_files import DAG_FILES, is_current
from tieout.cli.doctor.airflow_cli import CommandAnswer, airflow_answer
from tieout.cli.doctor.finding import Finding

POOL: Final = "spark"
CONNECTION: Final = "spark_default"
SUPPORTED_VERSIONS: Final = ((3, 1), (3, 2), (3, 3))
_COMMANDS: Final = {
    "dags": ("config", "get-value", "core", "dags_folder"),
    "pool": ("pools", "get", POOL, "--output", "json"),
    "connection": ("connections", "get", CONNECTION, "--output", "json"),
}
"""Each command takes some seconds, so they run in parallel."""


def airflow_version() -> str | None:
    """Return the version of the Airflow in this environment, or None."""
    try:
        return version("apache-airflow-core")
    except PackageNotFoundError:
        return None


def examine_airflow() -> tuple[list[Finding], str | None]:
    """Return the findings, and the Spark master of the connection, if it has one."""
    installed = airflow_version()
    if installed is None:
        remedy = 'pip install "tieout[airflow]" into the environment of Airflow'
        return [Finding("airflow", False, "not installed beside this tieout", remedy)], None
    is_supported = tuple(int(part) for part in installed.split(".")[:2]) in SUPPORTED_VERSIONS
    findings = [
        Finding(
            "airflow",
            is_supported,
            f"version {installed}",
            "" if is_supported else "3.1, 3.2 or 3.3 is needed",
        )
    ]
    with ThreadPoolExecutor() as pool:
        answers = dict(
            zip(
                _COMMANDS,
                pool.map(lambda command: airflow_answer(*command), _COMMANDS.values()),
                strict=True,
            )
        )
    findings += [_dag_files(answers["dags"]), _pool(answers["pool"])]
    connection, master = _connection(answers["connection"])
    return [*findings, connection], master


def _dag_files(answer: CommandAnswer) -> Finding:
    if not answer.is_answered:
        return Finding("DAG files", False, answer.last_line, "airflow db migrate, then try again")
    folder = Path(answer.last_line)
    outdated = [name for name in DAG_FILES if not is_current(folder / name)]
    if outdated:
        remedy = f"tieout airflow init {folder}"
        return Finding("DAG files", False, f"{folder} lacks {', '.join(outdated)} of this version", remedy)
    return Finding("DAG files", True, f"{len(DAG_FILES)} in {folder}")


def _pool(answer: CommandAnswer) -> Finding:
    remedy = f'airflow pools set {POOL} 2 "Spark jobs at a time"; without it jobs wait for ever'
    if not answer.record:
        return Finding("pool", False, answer.last_line, _migrated_first(answer, remedy))
    return Finding("pool", True, f"{POOL}, {answer.record.get('slots')} slots")


def _migrated_first(answer: CommandAnswer, remedy: str) -> str:
    return f"airflow db migrate; then {remedy}" if answer.lacks_tables else remedy


def _connection(answer: CommandAnswer) -> tuple[Finding, str | None]:
    example = '{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}'
    remedy = f"airflow connections add {CONNECTION} --conn-json '{example}', or another master"
    if not answer.record:
        problem = f"{CONNECTION}: {answer.last_line}"
        return Finding("connection", False, problem, _migrated_first(answer, remedy)), None
    master, mode = _master(answer.record), _extra(answer.record).get("deploy-mode", "client")
    if not master:
        return Finding("connection", False, f"{CONNECTION} names no master", remedy), None
    if mode != "client":
        problem = f"{CONNECTION} has deploy-mode {mode}"
        return Finding(
            "connection", False, problem, "only client works: the driver reads files of its task"
        ), None
    return Finding("connection", True, f"{CONNECTION}: {master}"), master


def _master(record: Mapping[str, Any]) -> str:
    """Return the master as Airflow's provider builds it from host and port."""
    host, port = str(record.get("host") or ""), record.get("port")
    if not host and record.get("conn_type") == "yarn":
        return "yarn"
    return f"{host}:{port}" if host and port else host


def _extra(record: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = record.get("extra_dejson") or record.get("extra") or {}
    try:
        parsed = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
