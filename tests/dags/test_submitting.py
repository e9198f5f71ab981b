"""What the Spark job is given, and what becomes of its result; the end-to-end tests run the job itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tieout.contracts import Contract
from tieout.java_options import QUICK_BYTES
from tieout.orchestration.submitting import TieoutSparkSubmit
from tieout.spark_environment import spark_environment

URL = "postgresql://tieout:secret@127.0.0.1:5432/tieout"
LOCAL = json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}})
LEDGERS: dict[str, Any] = {
    "produced": {"source": {"kind": "files", "format": "jsonl", "path": "sent.jsonl"}},
    "delivered": {"source": {"kind": "jdbc", "connection": "warehouse", "table": "orders"}},
}
CONTRACT = json.dumps(
    {"version": 1, "pipeline": "orders", "guarantee": "at_least_once", "group": "loader", "ledgers": LEDGERS}
)
GIVEN = {
    "start": "2026-11-20T10:00:00+00:00",
    "end": "2026-11-20T11:00:00+00:00",
    "contract": CONTRACT,
    "base_dir": "/contracts",
}


@pytest.fixture
def context() -> dict[str, Any]:
    """What Airflow hands to the task."""
    task = SimpleNamespace(
        dag_id="orders",
        run_id="backfill__1",
        try_number=2,
        xcom_pull=lambda task_ids: {"window": GIVEN}[task_ids],
    )
    return {"ti": task}


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TieoutSparkSubmit:
    """The task, with a connection to local Spark."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", LOCAL)
    monkeypatch.setenv("TIEOUT_DATABASE_URL", URL)
    monkeypatch.setenv("TIEOUT_HOME", str(tmp_path))
    return TieoutSparkSubmit(task_id="reconcile", application="reconcile.py")


class Job:
    """Stands for spark-submit: notes how it was called and writes a result."""

    def __init__(self, result: dict[str, Any] | None, error: Exception | None = None) -> None:
        self.result, self.error = result, error
        self.command: list[str] = []
        self.environment: dict[str, str] = {}
        self.handed_over: dict[str, str] = {}
        self.contract = ""

    def run(self, operator: Any, _context: Any) -> None:
        """Do what the job does."""
        self.command = operator._get_hook()._build_spark_submit_command("reconcile.py")
        self.environment = spark_environment()
        self.handed_over = json.loads(Path(self.environment["TIEOUT_HANDOVER_PATH"]).read_text())
        words = operator.application_args
        self.contract = Path(words[words.index("--contract-json") + 1]).read_text()
        if self.result is not None:
            Path(self.environment["TIEOUT_RESULT_PATH"]).write_text(json.dumps(self.result))
        if self.error is not None:
            raise self.error


def run_with(job: Job, operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what the task returns when `job` is its Spark job."""
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda task, given: job.run(task, given))  # noqa: PLW0108 - binds the task
    return operator.execute(context)


def test_the_result_of_the_job_is_the_tasks(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Window, contract and the run's names go along; the database's URL is not on the command line."""
    job = Job({"run_id": "r1", "verdict": "KEPT"})

    assert run_with(job, operator, context, monkeypatch) == {"run_id": "r1", "verdict": "KEPT"}
    assert Contract.from_json(job.contract, Path()) == Contract.from_json(CONTRACT, Path())
    assert all(isinstance(word, str) for word in job.command)
    assert "secret" not in " ".join(job.command)
    assert job.handed_over["TIEOUT_DATABASE_URL"] == URL
    given = dict(zip(operator.application_args[::2], operator.application_args[1::2], strict=True))
    assert given.pop("--contract-json").endswith("contract.json")
    assert given == {
        "--base-dir": "/contracts",
        "--from": "2026-11-20T10:00:00+00:00",
        "--to": "2026-11-20T11:00:00+00:00",
        "--output": str(tmp_path / "statements" / "orders" / "2026-11-20T100000Z"),
        "--dag-id": "orders",
        "--dag-run-id": "backfill__1",
        "--try-number": "2",
    }


@pytest.mark.parametrize(("host", "heap"), [("local[2]", "3g"), ("spark://master", None)])
def test_a_spark_on_the_worker_gets_memory(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch, host: str, heap: str | None
) -> None:
    """What a driver needs that leaves the work to a cluster is told by whoever runs the cluster."""
    monkeypatch.setattr("tieout.settings.driver_memory", lambda: "3g")
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": host}))
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert job.environment.get("SPARK_DRIVER_MEMORY") == heap


@pytest.mark.parametrize(
    ("rows", "options"),
    [(10, "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m -Xss2m"), (QUICK_BYTES + 1, "-Xss2m")],
)
def test_java_compiles_quickly_unless_the_evidence_is_large(
    operator: TieoutSparkSubmit,
    context: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rows: int,
    options: str,
) -> None:
    """What the deployment says to Java comes last, and so counts."""
    (tmp_path / "sent.jsonl").touch()
    os.truncate(tmp_path / "sent.jsonl", rows)
    ledgers = {name: {"source": LEDGERS["produced"]["source"]} for name in LEDGERS}
    contract = json.dumps(json.loads(CONTRACT) | {"ledgers": ledgers})
    context["ti"].xcom_pull = lambda **_: GIVEN | {"contract": contract, "base_dir": str(tmp_path)}
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xss2m")
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert job.environment["SPARK_SUBMIT_OPTS"] == options
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Xss2m"


@pytest.mark.parametrize("host", ["yarn", "k8s://https://cluster"])
def test_secrets_are_on_no_command_line_whatever_the_master(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The provider writes variables that it is given into the arguments of spark-submit there."""
    # Stands for the package `kubernetes`, which submits nothing.
    client = "airflow.providers.apache.spark.hooks.spark_submit.kube_client"
    monkeypatch.setattr(client, object(), raising=False)
    extra = {"deploy-mode": "client", "namespace": "tieout"}
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": host, "extra": extra})
    )
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert host in job.command
    assert URL not in " ".join(job.command)
    assert job.handed_over["TIEOUT_DATABASE_URL"] == URL


def test_connections_of_the_evidence_are_handed_over(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job runs outside Airflow, and inherits no connection."""
    found = Connection(conn_id="warehouse", conn_type="postgres", host="db", password="geheim")  # noqa: S106 - of nothing
    spark = Connection(conn_id="spark_default", conn_type="spark", host="local[2]")
    known = {"warehouse": found, "spark_default": spark}
    monkeypatch.setattr(BaseHook, "get_connection", classmethod(lambda _, name: known[name]))
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert "geheim" in job.handed_over["AIRFLOW_CONN_WAREHOUSE"]
    assert "geheim" not in " ".join(job.command)
    assert "AIRFLOW_CONN_WAREHOUSE" not in os.environ
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://db")
    run_with(job, operator, context, monkeypatch)
    assert job.handed_over["AIRFLOW_CONN_WAREHOUSE"] == "postgresql://db"


def test_a_connection_that_is_not_defined_is_the_jobs_to_name(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error says which variable would define it."""
    job = Job({"run_id": "r1"})
    run_with(job, operator, context, monkeypatch)
    assert "AIRFLOW_CONN_WAREHOUSE" not in job.handed_over
    assert "--jars" not in job.command


@pytest.mark.parametrize(
    ("source", "jar"),
    [
        ({"kind": "kafka", "connection": "events", "topic": "orders"}, "connector.jar"),
        ({"kind": "files", "format": "delta", "path": "lake/log"}, "delta-spark.jar"),
    ],
    ids=["cluster", "table"],
)
def test_the_jars_that_a_ledger_needs_go_along(
    operator: TieoutSparkSubmit,
    context: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: dict[str, Any],
    jar: str,
) -> None:
    """What a contract reads decides: a cluster needs the connector, a Delta table what is Delta's and not Iceberg's."""
    for name in (jar, "iceberg-runtime.jar"):
        (tmp_path / name).touch()
    monkeypatch.setenv("TIEOUT_JARS", str(tmp_path))
    contract = {**json.loads(CONTRACT), "ledgers": {**LEDGERS, "log": {"source": source}}}
    monkeypatch.setitem(GIVEN, "contract", json.dumps(contract))
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert job.command[job.command.index("--jars") + 1] == str(tmp_path / jar)


def test_an_error_that_the_job_explained_is_not_tried_again(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing column will be missing the next time too."""
    job = Job({"error": "orders.yml: no column id"}, AirflowException("exit 2"))

    with pytest.raises(AirflowFailException, match="no column id"):
        run_with(job, operator, context, monkeypatch)


def test_a_temporary_error_is_tried_again(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as another run that is publishing the same window."""
    job = Job({"error": "another run is publishing", "is_temporary": True}, AirflowException("exit 2"))

    with pytest.raises(AirflowException, match="another run is publishing") as caught:
        run_with(job, operator, context, monkeypatch)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_job_that_just_dies_is_tried_again(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exit code is all that is known."""
    job = Job(None, AirflowException("exit 137"))

    with pytest.raises(AirflowException, match="exit 137") as caught:
        run_with(job, operator, context, monkeypatch)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_job_without_a_result_is_a_failure(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing found is never taken for nothing wrong."""
    with pytest.raises(AirflowException, match="without a result"):
        run_with(Job(None), operator, context, monkeypatch)


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (None, "not defined or unreadable"),
        ("spark://local[2]", "not defined or unreadable"),
        ("{", "not defined or unreadable"),
        ('{"conn_type": "spark"}', "names no master"),
        ('{"conn_type": "spark", "host": ""}', "names no master"),
    ],
)
def test_a_connection_that_would_silently_mean_yarn_is_refused(
    operator: TieoutSparkSubmit,
    context: Any,
    monkeypatch: pytest.MonkeyPatch,
    connection: str | None,
    message: str,
) -> None:
    """The provider takes every connection that it cannot read for the master `yarn`."""
    if connection is None:
        monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    else:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)

    with pytest.raises(AirflowFailException, match=message):
        run_with(Job({"run_id": "r1"}), operator, context, monkeypatch)


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        ('{"conn_type": "spark", "host": "yarn"}', "yarn"),
        ('{"conn_type": "spark", "host": "spark://10.0.0.1", "port": 7077}', "spark://10.0.0.1:7077"),
        ("spark://local%5B2%5D", "local[2]"),
        (LOCAL, "local[2]"),
    ],
)
def test_a_connection_that_names_its_master_is_used(
    operator: TieoutSparkSubmit, context: Any, monkeypatch: pytest.MonkeyPatch, connection: str, master: str
) -> None:
    """YARN too, where it is meant."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
    job = Job({"run_id": "r1"})

    run_with(job, operator, context, monkeypatch)

    assert job.command[job.command.index("--master") + 1] == master
