"""What a session says by itself, beside what a run tells."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tieout.engine.bundle import making, parts
from tieout.engine.bundle.packing import BundleRequest
from tieout.engine.materialising import materialised
from tieout.engine.session import (
    explained_spark_errors,
    guarded_ports,
    set_to,
    silence_duplicate_errors,
    suited_to,
)
from tieout.engine.sources.source import cluster_failure, is_of_spark
from tieout.errors import DiskFullError, JavaMemoryError, UsageError


def test_an_error_in_an_expression_is_raised_and_not_printed(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """PySpark logs the stack of Java of each; a user who mistyped a column is told so in one line."""
    silence_duplicate_errors()

    with pytest.raises(AnalysisException, match="nothing"):
        spark.range(1).selectExpr("nothing").collect()

    assert capfd.readouterr().err == ""


def test_a_full_disk_is_reported_as_such(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark's own files lie, and what to do; no file of the evidence is to blame, or left out for it."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/full")
    failing = spark.range(1).select(F.raise_error(F.lit("java.io.IOException: No space left on device")))

    with (
        pytest.raises(DiskFullError, match="Spark's own files in /full; free some") as found,
        explained_spark_errors(),
    ):
        failing.collect()

    assert isinstance(found.value.__cause__, Exception)
    assert not is_of_spark(found.value.__cause__)
    with pytest.raises(AnalysisException), explained_spark_errors():
        spark.range(1).selectExpr("nothing")


def test_a_bundle_without_space_names_its_own_folder(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's own files have space: other folders in SPARK_LOCAL_DIRS would not help."""
    failing = spark.range(1).select(
        F.raise_error(F.lit("java.io.IOException: No space left on device")).alias("id")
    )
    found: Any = SimpleNamespace()
    request = BundleRequest(tmp_path / "orders.zip", max_mb=1, has_contents=True)
    monkeypatch.setattr(
        making, "write_parts", lambda *_: parts._written(failing, tmp_path / "evidence.parquet")
    )

    with pytest.raises(DiskFullError) as raised, explained_spark_errors():
        making.make_bundle(found, found, request, lambda _: None)

    assert str(raised.value) == f"no space left on the device of {tmp_path}"


def test_a_java_machine_without_memory_is_reported_as_such(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever failed first: the task on a record that unpacks to more, or a call to the machine that ended of it."""
    failing = spark.range(1).select(F.raise_error(F.lit("java.lang.OutOfMemoryError: Java heap space")))
    with pytest.raises(JavaMemoryError, match="may unpack to more") as found, explained_spark_errors():
        failing.collect()
    assert isinstance(found.value.__cause__, Exception)
    assert not is_of_spark(found.value.__cause__)
    assert cluster_failure(found.value.__cause__, "ledgers.log.source") is None

    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=ended))
        for reported in (
            ConnectionRefusedError(111, "Connection refused"),
            Py4JError("does not exist in the JVM"),
        ):
            with pytest.raises(JavaMemoryError, match="or has ended"), explained_spark_errors():
                raise reported
        monkeypatch.setattr(SparkContext, "_gateway", None)
        with pytest.raises(ConnectionRefusedError), explained_spark_errors():
            raise ConnectionRefusedError(111, "Connection refused")


def test_little_evidence_is_joined_and_grouped_where_it_lies(spark: SparkSession) -> None:
    """Of a few thousand rows each exchange, and each broadcast, costs more than the work on them."""
    with suited_to(spark, is_small=True):
        left = materialised(spark.range(9).repartition(3).withColumnRenamed("id", "key"))
        right = materialised(spark.range(9).repartition(3))

        joined = (
            left.join(right.hint("broadcast"), left["key"] == right["id"], how="left").groupBy("key").count()
        )
        plan = joined._jdf.queryExecution().executedPlan().toString()

        assert "Join" in plan
        assert "Exchange" not in plan
        assert joined.count() == 9


@pytest.mark.parametrize("partitions", ["1", "2"])
def test_much_evidence_stays_spread_out(spark: SparkSession, partitions: str) -> None:
    """The cores, and the executors, share the work, into however many partitions the session shuffles by itself."""
    with set_to(spark, {"spark.sql.shuffle.partitions": partitions}), suited_to(spark, is_small=False):
        assert materialised(spark.range(9).repartition(3)).rdd.getNumPartitions() == 3


LOCAL: Final = """
import json, os, sys
import pyarrow as pa
from pyspark.sql import Window, functions as F
from tieout.engine.judging.warming import warm_up
from tieout.engine.session import local_session, stop

def found(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"has_kernel": ["tieout.engine.judging.task" in sys.modules]})

def has_kernel(spark):
    return spark.range(1, numPartitions=1).mapInArrow(found, "has_kernel boolean").collect()[0].has_kernel

spark = local_session("told")
told = {
    "has_kernel": [has_kernel(spark)],
    "java": str(spark.sparkContext._jvm.System.getenv()),
    "workers": spark.sparkContext.parallelize([0], 1).map(lambda _: dict(os.environ)).collect(),
    "command": os.environ["AIRFLOW_CONN_WAREHOUSE"],
}
in_line = Window.partitionBy("place").orderBy("id")
wide = F.repeat(F.md5(F.col("id").cast("string")), 8).alias("wide")
rows = spark.range(600_000).select("id", F.lit(0).alias("place"), wide)
lagged = rows.withColumn("before", F.lag("wide").over(in_line))
begun = F.when(F.col("before") < F.col("wide"), F.col("id"))
run = F.last(begun, ignorenulls=True).over(in_line)
told["rows"] = lagged.withColumn("run", run).localCheckpoint().count()
stop(spark)
spark = local_session("told again")
warm_up(spark).join()
told["has_kernel"].append(has_kernel(spark))
stop(spark)
print("told:" + json.dumps(told))
"""
"""Starts two sessions of a command, one after the other, and prints what the tests below want to know of them.

In between it lines up more than the heap holds, then once more by what that tells, and keeps it.
"""
SECRETS: Final = ("AIRFLOW_CONN_WAREHOUSE", "AIRFLOW__CORE__FERNET_KEY", "TIEOUT_DATABASE_URL", "PGPASSWORD")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the sessions of a command with secrets and a small heap tell: each is a start of Java, so all in one."""
    small = {"SPARK_DRIVER_MEMORY": "512m", "SPARK_LOCAL_IP": "127.0.0.1"}
    secrets = dict.fromkeys(SECRETS, "guarded")
    return _told(
        subprocess.run(
            [sys.executable, "-c", LOCAL],
            env=os.environ | small | secrets,
            check=False,
            capture_output=True,
            text=True,
            timeout=500,
        )
    )


def _told(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what a process printed after `told:`."""
    assert ended.returncode == 0, ended.stderr[-2_000:]
    lines = [line for line in ended.stdout.splitlines() if line.startswith("told:")]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("told:"))
    return found


def test_lines_longer_than_the_memory_are_lined_up_twice(told: dict[str, Any]) -> None:
    """What one window function holds is not all there is for the next."""
    assert told["rows"] == 600_000


def test_java_and_workers_of_a_command_see_no_secret_of_it(told: dict[str, Any]) -> None:
    """On this machine executors are in the Java process that the command starts, Python's workers its children."""
    assert told["command"] == "guarded"
    assert "SPARK_" in told["java"]
    assert "PATH" in told["workers"][0]
    assert "guarded" not in told["java"]
    assert "guarded" not in json.dumps(told["workers"])


def test_python_beside_an_executor_has_imported_what_judges_before_it_is_asked(told: dict[str, Any]) -> None:
    """The same process takes the next task; and a second session starts after the first was stopped."""
    assert told["has_kernel"] == [False, True]


PORTS: Final = '''
import json
import os
import re
import socket
import struct
from pathlib import Path
from types import SimpleNamespace

from tieout.engine.session import submitted_session


def listening(pid: int) -> list[str]:
    """Return the addresses on which a process listens, as the kernel tells them."""
    links = (os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink())
    sockets = {found[1] for link in links if (found := re.fullmatch(r"socket:\\[(\\d+)\\]", link))}
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                packed = bytes.fromhex(words[1].partition(":")[0])
                parts = struct.unpack(f"<{len(packed) // 4}I", packed)
                found.append(socket.inet_ntop(family, struct.pack(f">{len(parts)}I", *parts)))
    return found


spark = submitted_session("ports")
spark.range(10).repartition(2).count()
conf = spark.sparkContext.getConf()
names = ("spark.driver.host", "spark.driver.bindAddress", "spark.authenticate")
found = {"listening": listening(os.getppid()) + listening(os.getpid()), **{name: conf.get(name) for name in names}}
print("told:" + json.dumps(found))
spark.stop()
'''
"""Starts the session of a submitted job, and prints its settings and the addresses that its processes listen on."""


def test_a_job_on_this_machine_listens_on_its_loopback(tmp_path: Path) -> None:
    """Also one that spark-submit started, and whatever address the machine's name has."""
    (tmp_path / "ports.py").write_text(PORTS)
    programs = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
    }
    ran = subprocess.run(
        [
            programs / "spark-submit",
            "--master",
            "local[2,1]",
            "--conf",
            "spark.ui.enabled=false",
            tmp_path / "ports.py",
        ],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )

    reported = _told(ran)
    assert reported["listening"], "the driver listens for its executors"
    assert {
        ipaddress.ip_address(one).is_loopback or one == "::ffff:127.0.0.1" for one in reported["listening"]
    } == {True}
    assert (reported["spark.driver.host"], reported["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    for master in ("local", "local[*]"):
        assert guarded_ports({"spark.master": master}, secret=None) == guarded_ports(
            {"spark.master": "local[2,1]"},
            secret="word",  # noqa: S106 - of nothing
        )


def test_elsewhere_who_connects_must_know_a_secret() -> None:
    """A standalone cluster's is in the environment; the others make one; who has decided otherwise is left alone."""
    needed = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    for master in ("yarn", "k8s://https://k:443"):
        assert guarded_ports({"spark.master": master}, secret=None) == needed
    cluster = {"spark.master": "spark://a:7077,b:7077"}
    assert guarded_ports(cluster, secret="word") == {**needed, "spark.authenticate.secret": "word"}  # noqa: S106 - of nothing
    for master in ("yarn", "k8s://https://k:443", "spark://a:7077"):
        assert guarded_ports({"spark.master": master, "spark.authenticate": "false"}, secret=None) == {}


def test_a_cluster_without_a_secret_is_refused() -> None:
    """The error names the variable and what the cluster's own processes need."""
    with pytest.raises(UsageError, match=r"_SPARK_AUTH_SECRET.*SPARK_DAEMON_JAVA_OPTS"):
        guarded_ports({"spark.master": "spark://cluster:7077"}, secret=None)
