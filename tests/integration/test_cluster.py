"""The job on a real standalone cluster, one of whose two workers is killed: that costs time, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.store.conftest import made_database
from tools.record.jars import SHORT_LIVED
from tools.stack import processes
from tools.stack.processes import Process

from tieout.contracts import load_contract
from tieout.orchestration.submitting import CONF, TieoutSparkSubmit
from tieout.store import Store
from tieout.testing.postgres import free_port

pytestmark = pytest.mark.timeout(1_800)

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "commit_before_process"
TRIES = 3
"""As the task `reconcile` has."""

_PATIENCE_SECONDS = 600
_SHORT_LIVED = " ".join(SHORT_LIVED)
_SECRET = "known to the driver, the master and the workers"  # noqa: S105 - of this test


@dataclass(frozen=True)
class Cluster:
    """A master and two workers of one core each, on this machine's loopback."""

    port: int
    page: int
    workers: tuple[Process, ...]

    def at_work(self) -> int:
        """Return how many workers run a part of an application now."""
        found = self._cluster_status()
        return sum(worker["coresused"] > 0 and worker["state"] == "ALIVE" for worker in found["workers"])

    def alive(self) -> int:
        """Return how many workers the master knows as alive; none while it does not answer."""
        try:
            return sum(worker["state"] == "ALIVE" for worker in self._cluster_status()["workers"])
        except OSError:
            return 0

    def _cluster_status(self) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=30) as answer:
            return json.load(answer)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster from PySpark's own jars, stopped afterwards with all that it started."""
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": f"{_SHORT_LIVED} -Dspark.authenticate=true -Dspark.network.crypto.enabled=true",
        "_SPARK_AUTH_SECRET": _SECRET,
        "PYSPARK_PYTHON": sys.executable,
        processes.MARK: str(tmp_path),
    }
    port, page = free_port(), free_port()
    words = {"master": ["master.Master", "--port", str(port), "--webui-port", str(page)]}
    for name in ("worker-1", "worker-2"):
        limits = ["-c", "1", "-m", "1g", "-d", str(tmp_path / name), "--webui-port", str(free_port())]
        words[name] = ["worker.Worker", *limits, f"spark://127.0.0.1:{port}"]
    started = []
    try:
        for name, (kind, *rest) in words.items():
            command = [
                str(programs / "spark-class"),
                f"org.apache.spark.deploy.{kind}",
                "--host",
                "127.0.0.1",
            ]
            started.append(processes.start(name, [*command, *rest], environment, tmp_path / f"{name}.log"))
        made = Cluster(port, page, tuple(started[1:]))
        _await(lambda: made.alive() == 2, "two workers")
        yield made
    finally:
        processes.stop(started, mark=str(tmp_path), timeout=5.0)


@pytest.fixture
def store(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, tmp_path: Path
) -> Iterator[Store]:
    """A store of this test's own, in an environment such as Airflow's worker has."""
    master = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": cluster.port}
    with made_database(postgres_url, "template0") as url:
        for name, value in {
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({**master, "extra": {"deploy-mode": "client"}}),
            "TIEOUT_DATABASE_URL": url,
            "TIEOUT_HOME": str(tmp_path / "home"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": _SHORT_LIVED,
            "_SPARK_AUTH_SECRET": _SECRET,
            processes.MARK: str(tmp_path),
        }.items():
            monkeypatch.setenv(name, value)
        yield Store(url)


def test_a_killed_worker_costs_time_and_not_correctness(store: Store, cluster: Cluster) -> None:
    """The same application and command as on one machine; what was kept on the worker is computed anew."""
    truth = json.loads((EXAMPLE / "truth.json").read_text())
    expected = truth["stages"][0]["contracts"]["contract.yml"]
    contract = load_contract(EXAMPLE / "contract.yml")
    window = {name: truth["window"][name].replace("Z", "+00:00") for name in ("start", "end")}
    given = {**window, "contract": contract.to_json(), "base_dir": str(contract.base_dir)}
    killed: list[str] = []
    watcher = threading.Thread(target=_kill_one_at_work, args=(cluster, killed), daemon=True)

    watcher.start()
    result = _judged(given)
    watcher.join()

    assert killed, "the job ended before a worker could be killed"
    assert cluster.alive() == 1
    run = store.run(result["run_id"])
    assert run is not None
    assert run.is_current
    assert run.statement["classes"] == expected["classes"]
    assert run.statement["flags"] == {**run.statement["flags"], **expected["flags"]}
    assert len(store.runs_of(contract.pipeline)) == 1


def _judged(given: dict[str, str]) -> dict[str, Any]:
    """Return the job's result, tried as often as Airflow tries it."""
    for number in range(1, TRIES + 1):
        task = SimpleNamespace(
            dag_id="readings_to_archive",
            run_id="manual__1",
            try_number=number,
            xcom_pull=lambda task_ids: {"window": given}[task_ids],
        )
        application = str(ROOT / "spark_apps" / "reconcile.py")
        submit = TieoutSparkSubmit(
            task_id="reconcile", application=application, name="tieout", conf=dict(CONF)
        )
        try:
            found: dict[str, Any] = submit.execute({"ti": task})
        except AirflowFailException:
            raise
        except AirflowException as error:
            print(f"try {number}: {error}")
        else:
            print(f"try {number}: {found['verdict']}")
            return found
    raise AssertionError(f"no result after {TRIES} tries")


def _kill_one_at_work(cluster: Cluster, killed: list[str]) -> None:
    """Kill a worker and its executor once both run a part of the job, and note it."""
    _await(lambda: cluster.at_work() == 2, "both workers at work")
    time.sleep(2)  # the executors have begun with the evidence
    if cluster.at_work() == 2:
        victim = cluster.workers[1]
        os.killpg(victim.pid, signal.SIGKILL)
        killed.append(victim.name)


def _await(is_there: Any, what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_there():
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} after {_PATIENCE_SECONDS} s")
        time.sleep(0.1)
