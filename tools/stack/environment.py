"""The environment of Airflow's processes, which replaces a configuration file, for one home."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.stack import spark
from tools.stack.database import Databases
from tools.stack.layout import ROOT, Layout
from tools.stack.processes import MARK

SPARK_SLOTS = 2
WORKERS = 4
_LOCAL = "127.0.0.1"
_PREFIX = "TIEOUT_STACK_"


def airflow_environment(
    layout: Layout, databases: Databases, *, port: int, secrets: dict[str, str], contracts: Iterable[Path]
) -> dict[str, str]:
    """Return the environment shared by the api-server, scheduler, DAG processor, triggerer and tasks.

    There is no login and everybody is an administrator, so everything listens on 127.0.0.1 only.

    Args:
        layout: The home of the stack.
        databases: The databases of Airflow and Tieout.
        port: The port of Airflow's page and API.
        secrets: The keys `fernet`, `jwt` and `session`.
        contracts: The folders whose contracts become DAGs.
    """
    address = f"http://{_LOCAL}:{port}"
    return {
        **_machine(layout),
        **_tieout(layout, databases, contracts),
        "AIRFLOW_HOME": str(layout.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(WORKERS),
        "AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE": "True",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": secrets["fernet"],
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets["jwt"],
        "AIRFLOW__API__SECRET_KEY": secrets["session"],
        "AIRFLOW__API__HOST": _LOCAL,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__WORKERS": "1",
        # On a busy machine the one API server is slow to let a task begin; after five tries of 5 s the task would fail.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": databases.sqlalchemy,
        # The end of a task is noticed at the next poll, and a run has five tasks: the default of 1 s costs 5 s of 27.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "great_expectations=WARNING",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        **_overrides(),
    }


def _overrides() -> dict[str, str]:
    """Return Airflow's settings and connections that the caller's environment has with our prefix.

    Its own `AIRFLOW_…` are not inherited: they are meant for another Airflow.
    """
    prefixed = {name: value for name, value in os.environ.items() if name.startswith(f"{_PREFIX}AIRFLOW_")}
    return {name.removeprefix(_PREFIX): value for name, value in prefixed.items()}


def webhook(port: int) -> str:
    """Return the connection to the demonstration's receiver in the form of `AIRFLOW_CONN_<NAME>`."""
    return json.dumps({"conn_type": "http", "schema": "http", "host": _LOCAL, "port": port})


def _machine(layout: Layout) -> dict[str, str]:
    """Return this machine's environment, with our programs first on the path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    # In a virtual environment the interpreter is a link, which must not be resolved here.
    programs = Path(sys.executable).parent
    without_proxy = [name for name in (os.environ.get("NO_PROXY"), _LOCAL, "localhost") if name]
    return {
        **inherited,
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": sys.executable,
        "NO_PROXY": ",".join(without_proxy),
        "no_proxy": ",".join(without_proxy),
        MARK: str(layout.home),
    }


def _tieout(layout: Layout, databases: Databases, contracts: Iterable[Path]) -> dict[str, str]:
    """Return Tieout's settings and connections in this stack."""
    master = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    return {
        "TIEOUT_DATABASE_URL": databases.tieout,
        "TIEOUT_CONTRACTS": os.pathsep.join(str(folder) for folder in contracts),
        "TIEOUT_HOME": str(layout.home),
        "TIEOUT_JARS": str(ROOT / ".tieout" / "jars"),
        "TIEOUT_PRELOAD_CHECKS": "1",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(master),
        **spark.environment(),
    }
