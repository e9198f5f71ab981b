"""What is looked at in Airflow: its version, the DAG files, the pool, and the connection to Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from tieout.cli.dag_files import DAG_FILES, is_current
from tieout.cli.doctor.airflow_cli import Told, ask
from tieout.cli.doctor.finding import Finding

POOL: Final = "spark"
CONNECTION: Final = "spark_default"
KNOWN: Final = ((3, 1), (3, 2), (3, 3))
_QUESTIONS: Final = {
    "dags": ("config", "get-value", "core", "dags_folder"),
    "pool": ("pools", "get", POOL, "--output", "json"),
    "connection": ("connections", "get", CONNECTION, "--output", "json"),
}
"""Each takes Airflow some seconds, so they are asked at once."""


def airflow_version() -> str | None:
    """Return the version of the Airflow beside this, or None where there is none."""
    try:
        return version("apache-airflow-core")
    except PackageNotFoundError:
        return None


def examine_airflow() -> tuple[list[Finding], str | None]:
    """Return what was found, and the Spark master that the connection names, where it does."""
    found = airflow_version()
    if found is None:
        remedy = 'pip install "tieout[airflow]" into the environment of Airflow'
        return [Finding("airflow", False, "not installed beside this tieout", remedy)], None
    is_known = tuple(int(part) for part in found.split(".")[:2]) in KNOWN
    findings = [
        Finding("airflow", is_known, f"version {found}", "" if is_known else "3.1, 3.2 or 3.3 is needed")
    ]
    with ThreadPoolExecutor() as pool:
        told = dict(zip(_QUESTIONS, pool.map(lambda words: ask(*words), _QUESTIONS.values()), strict=True))
    findings += [_dag_files(told["dags"]), _pool(told["pool"])]
    of_connection, master = _connection(told["connection"])
    return [*findings, of_connection], master


def _dag_files(told: Told) -> Finding:
    if not told.is_answered:
        return Finding("DAG files", False, told.last_line, "airflow db migrate, then try again")
    folder = Path(told.last_line)
    lacking = [name for name in DAG_FILES if not is_current(folder / name)]
    if lacking:
        remedy = f"tieout airflow init {folder}"
        return Finding("DAG files", False, f"{folder} lacks {', '.join(lacking)} of this version", remedy)
    return Finding("DAG files", True, f"{len(DAG_FILES)} in {folder}")


def _pool(told: Told) -> Finding:
    remedy = f'airflow pools set {POOL} 2 "Spark jobs at a time"; without it jobs wait for ever'
    if not told.record:
        return Finding("pool", False, told.last_line, _migrated_first(told, remedy))
    return Finding("pool", True, f"{POOL}, {told.record.get('slots')} slots")


def _migrated_first(told: Told, remedy: str) -> str:
    return f"airflow db migrate; then {remedy}" if told.lacks_tables else remedy


def _connection(told: Told) -> tuple[Finding, str | None]:
    example = '{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}'
    remedy = f"airflow connections add {CONNECTION} --conn-json '{example}', or another master"
    if not told.record:
        found = f"{CONNECTION}: {told.last_line}"
        return Finding("connection", False, found, _migrated_first(told, remedy)), None
    master, mode = _master(told.record), _extra(told.record).get("deploy-mode", "client")
    if not master:
        return Finding("connection", False, f"{CONNECTION} names no master", remedy), None
    if mode != "client":
        found = f"{CONNECTION} has deploy-mode {mode}"
        return Finding(
            "connection", False, found, "only client works: the driver reads files of its task"
        ), None
    return Finding("connection", True, f"{CONNECTION}: {master}"), master


def _master(record: Mapping[str, Any]) -> str:
    """Return the master as Airflow's provider makes it of host and port."""
    host, port = str(record.get("host") or ""), record.get("port")
    if not host and record.get("conn_type") == "yarn":
        return "yarn"
    return f"{host}:{port}" if host and port else host


def _extra(record: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = record.get("extra_dejson") or record.get("extra") or {}
    try:
        found = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
