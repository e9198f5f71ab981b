"""What Spark's processes see of the environment of the task that starts them: what they need, and no secret."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.dags.test_submitting import CONTRACT, LOCAL

from tieout.contracts import Contract
from tieout.orchestration.submitting import CONF, TieoutSparkSubmit

URL: Final = "postgresql://tieout:guarded-1@127.0.0.1:5432/tieout"
SECRETS: Final = {
    "TIEOUT_DATABASE_URL": URL,
    "AIRFLOW_CONN_WAREHOUSE": "postgresql://reader:guarded-2@db/warehouse",
    "AIRFLOW_CONN_OTHER": "postgresql://reader:guarded-3@db/other",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://airflow:guarded-4@db/airflow",
    "AIRFLOW__CORE__FERNET_KEY": "guarded-5",
    "AIRFLOW__API_AUTH__JWT_SECRET": "guarded-6",
    "PGPASSWORD": "guarded-7",
    "AWS_SECRET_ACCESS_KEY": "guarded-8",
    "VAULT_TOKEN": "guarded-9",
    "TIEOUT_STACK_AIRFLOW_CONN_OTHER": "guarded-10",
}
JOB: Final = """\
import json, os
from pathlib import Path
from tieout import settings
from tieout.engine.session import submitted_session
from tieout.spark_environment import take_handed_over

given = os.environ.get("TIEOUT_HANDOVER_PATH")
take_handed_over()
spark = submitted_session("environments")
seen = {
    "driver": Path("/proc/self/environ").read_text(),
    "java": str(spark.sparkContext._jvm.System.getenv()),
    "worker": json.dumps(spark.sparkContext.parallelize([0], 1).map(lambda _: dict(os.environ)).collect()),
}
own = {name: os.environ.get(name) for name in ("TIEOUT_DATABASE_URL", "AIRFLOW_CONN_WAREHOUSE", "PGPASSWORD")}
own["AIRFLOW_CONN_OTHER"] = os.environ.get("AIRFLOW_CONN_OTHER")
spark.stop()
left = given is not None and Path(given).exists()
settings.result_path().write_text(json.dumps({"seen": seen, "own": own, "left": left}))
"""


def test_no_process_of_spark_is_started_with_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads what it needs from a file, which is gone then; Java and Python's workers never see it."""
    for name, value in {**SECRETS, "AIRFLOW_CONN_SPARK_DEFAULT": LOCAL, "MY_SETTING": "mine"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIEOUT_SPARK_VARIABLES", "NOTHING, MY_*")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="utf-8")
    task: Any = SimpleNamespace(dag_id="orders")
    operator = TieoutSparkSubmit(task_id="reconcile", application=str(job), conf=dict(CONF))

    found = operator.submitted({"ti": task}, Contract.from_json(CONTRACT, tmp_path), lambda _: [])

    assert {
        place: [name for name in SECRETS if SECRETS[name] in text] for place, text in found["seen"].items()
    } == {
        "driver": [],
        "java": [],
        "worker": [],
    }
    assert all("mine" in text for text in found["seen"].values())
    assert found["own"] == {
        "TIEOUT_DATABASE_URL": URL,
        "AIRFLOW_CONN_WAREHOUSE": SECRETS["AIRFLOW_CONN_WAREHOUSE"],
        "PGPASSWORD": "guarded-7",
        "AIRFLOW_CONN_OTHER": None,
    }
    assert not found["left"]
