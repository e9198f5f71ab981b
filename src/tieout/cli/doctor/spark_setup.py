"""Checks of Spark: Java, spark-submit, the master, and the executors' Python, packages and folder."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tieout import __version__, settings
from tieout.cli.doctor.finding import Finding
from tieout.cli.java import JavaError, require_java
from tieout.shipped import SPARK_APPS, shipped
from tieout.spark_environment import spark_environment

_REACH_SECONDS: Final = 5.0
_JOB_SECONDS: Final = 300.0
_ADDRESS: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:/,]+):(?P<port>\d+)")
_QUIET_OPTIONS: Final = ("--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR")


def examine_programs() -> Iterator[Finding]:
    """Yield whether Java and spark-submit are found as a task would find them."""
    try:
        require_java()
        yield Finding("java", True, str(settings.java_home() or shutil.which("java")))
    except JavaError as error:
        yield Finding("java", False, str(error))
    submit = shutil.which("spark-submit")
    remedy = f"put {Path(sys.executable).parent} on the PATH of Airflow's workers"
    yield Finding("spark-submit", submit is not None, submit or "not on the PATH", "" if submit else remedy)


def examine_master(master: str) -> Iterator[Finding]:
    """Yield whether the master's port accepts connections; a local master and YARN are not contacted."""
    if master.startswith("local"):
        yield Finding("spark master", True, f"{master}: on the worker itself")
        return
    if master.startswith("yarn"):
        is_configured = any(settings.is_set(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
        remedy = "" if is_configured else "set HADOOP_CONF_DIR to the folder with yarn-site.xml"
        yield Finding("spark master", is_configured, "yarn", remedy)
        return
    addresses = [(match["host"].strip("[]"), int(match["port"])) for match in _ADDRESS.finditer(master)]
    unreachable = [f"{host}:{port}" for host, port in addresses if not _listens(host, port)]
    if len(unreachable) < len(addresses):
        yield Finding("spark master", True, master)
    else:
        problem = f"{master}: {', '.join(unreachable) or 'no host and port in it'}"
        yield Finding(
            "spark master", False, f"{problem} cannot be reached", "start it, or correct the connection"
        )


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_REACH_SECONDS):
            return True
    except OSError:
        return False


def examine_executors(master: str) -> Iterator[Finding]:
    """Yield the findings of a small job on the executors: Python, packages, and the shared folder."""
    with tempfile.TemporaryDirectory(prefix="tieout-") as folder:
        result = Path(folder) / "result.json"
        with settings.defined({settings.RESULT_PATH: str(result)}):
            failure = _submit(master)
        try:
            executors: Sequence[Mapping[str, Any]] = json.loads(result.read_text())
        except (OSError, ValueError):
            yield Finding(
                "executors", False, failure or "the job left no result", "docs/how-to/deploy.md#spark"
            )
            return
    yield from _of_executors(executors)


def _submit(master: str) -> str:
    """Run the job, and return its last output line if it failed, else an empty text."""
    submit = ["spark-submit", "--master", master, "--deploy-mode", "client", *_QUIET_OPTIONS]
    command = [*submit, str(shipped(SPARK_APPS, "doctor.py")), "--home", str(settings.home())]
    try:
        done = subprocess.run(  # noqa: S603 - the program that Airflow's tasks start
            command,
            env=spark_environment(),
            capture_output=True,
            text=True,
            timeout=_JOB_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a small Spark job did not end within {_JOB_SECONDS:.0f} s: has the master a free worker?"
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "" if done.returncode == 0 or not lines else lines[-1]


def _of_executors(executors: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    hosts = ", ".join(sorted({str(executor["host"]) for executor in executors}))
    pythons = sorted({f"Python {executor['python']} at {executor['executable']}" for executor in executors})
    yield Finding("executors' python", True, f"{', '.join(pythons)} on {hosts}")
    wrong = sorted(
        {
            f"{name} {version or 'missing'} on {executor['host']}"
            for executor in executors
            for name, version in _wrong(executor["packages"])
        }
    )
    remedy = f"install tieout {__version__} there, and name its Python in PYSPARK_PYTHON" if wrong else ""
    yield Finding("executors' packages", not wrong, ", ".join(wrong) or f"tieout {__version__}", remedy)
    without_home = sorted({str(executor["host"]) for executor in executors if not executor["sees_home"]})
    place = f"TIEOUT_HOME {settings.home()}"
    if without_home:
        yield Finding(
            "shared folder",
            False,
            f"{place} is not that of {', '.join(without_home)}",
            "mount one volume everywhere",
        )
    else:
        yield Finding("shared folder", True, place)


def _wrong(packages: Mapping[str, str | None]) -> Iterator[tuple[str, str | None]]:
    """Yield the packages that are missing, and Tieout if its version differs."""
    for name, version in packages.items():
        if version is None or (name == "tieout" and version != __version__):
            yield name, version
