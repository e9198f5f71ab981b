"""Spark sessions, and the settings that every run relies on."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tieout import settings
from tieout.errors import DiskFullError, JavaMemoryError, UsageError
from tieout.model import QUICK_BYTES, SMALL_BYTES
from tieout.spark_environment import trimmed_for_spark

_NO_SPACE: Final = "No space left on device"
"""What the system says of ENOSPC, in Java and in Python."""
_NO_MEMORY: Final = "java.lang.OutOfMemoryError"
_ENDING_SECONDS: Final = 5.0
_TOO_LARGE: Final = (
    "Spark's Java machine has no memory left, or has ended, with a heap of {} ({}): a record or a value of the "
    "evidence may unpack to more. Give it more memory; or read a Kafka topic from its broker's own files with kind: "
    "kafka_segments, which names a batch that is too large, and judges the others"
)
ROWS_PER_TASK: Final = 200_000
"""So many rows a task are few enough to be sorted, or counted in a hash table, in little memory."""

FOR_EVIDENCE: Final = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.variable.substitute": "false",
}
"""What every reading of evidence sets, whatever the installation's own defaults are.

A file that is corrupt or gone fails the job; rows are counted, and not believed from a file's footer. An expression of
a contract takes no `${env:…}` from the environment.
Source: "Runtime SQL Configuration" of Spark's guide.
"""

SETTINGS: Final = {
    **FOR_EVIDENCE,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.shuffle.sort.bypassMergeThreshold": "1",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.windowExec.buffer.spill.threshold": str(ROWS_PER_TASK),
    "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
}
"""What a run sets: UTC, ANSI arithmetic, plain upper and lower case; no web page, no call site noted per column.

Rows that are kept are written by Kryo, which copies a row's bytes; Java's own way looks up its class in each.
A task shuffles into one file: where it has little to say, to open one for each of 200 partitions is most of its work.
A window function holds so many rows in memory, and has more on disk: what one function holds, Spark can take back for
no other, and the second of two fails. Each file is read with one buffer instead of three, outside the heap.
Spark derives no conditions from other ones: a column that is named anew doubles those that it stands in, and what makes
one row's faults out of twenty columns has a million. Docs: Catalyst's `UnaryNode.getAllValidConstraints`.
A window with breaks generates 180 classes; Spark keeps 100 by default, so that the next window in the same session
would compile all of them again. Docs: Spark's `StaticSQLConf.CODEGEN_CACHE_MAX_ENTRIES`.
"""

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_AUTHENTICATED: Final = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
_JAVA: Final = "-XX:+UseParallelGC"
"""Of Java's collectors the one that takes least from the work, where nobody waits for a pause."""
_QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone: the other one takes two fifths of a run's processor time, and pays later."""
QUICK_JAVA: Final = f"-XX:+UseSerialGC {_QUICK_COMPILER}"
"""Java's options for little evidence."""

_TELLING_TWICE: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that print an error in an expression, with the whole stack of Java, while it is being raised."""

DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA: Final = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What Delta refuses to read without: its rules leave out rows that a deletion vector marks. Iceberg needs none."""
_DELTA_LOCAL: Final = {"spark.databricks.delta.snapshotPartitions": "2"}
"""Two tasks read the log of a table, instead of 50."""

SMALL_ROWS: Final = 100_000
"""Up to so many rows of all ledgers, as up to `SMALL_BYTES`, planning and compiling cost more than the work itself."""

_FEWEST_TASKS: Final = 8

_SINGLE_PARTITION: Final = "spark.sql.maxSinglePartitionBytes"
_SMALL: Final = {
    "spark.sql.shuffle.partitions": "1",
    # In one partition a join needs no exchange, however large Spark guesses it; a broadcast would be a job of its own.
    _SINGLE_PARTITION: f"{2**62}b",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def local_session(
    app_name: str,
    jars: Sequence[Path] = (),
    *,
    evidence_bytes: int | None = None,
    java_messages: IO[bytes] | None = None,
    java_options: str = "",
) -> SparkSession:
    """Return a Spark session on this machine's loopback with the settings that the engine relies on, and more jars.

    `evidence_bytes`, of all that the session will read, chooses Java's options; None where nobody knows how much that
    is. Results do not depend on it.
    `java_messages` is a file that takes what Java and its tools print, instead of standard error; `java_options` are
    more options for Java.
    """
    java = {"spark.driver.extraJavaOptions": f"{_java_for(evidence_bytes)} {java_options}".strip()}
    taken_along = {"spark.jars": ",".join(map(str, jars))} if jars else {}
    needed = _needed_by(jars)
    tables = {**needed, **_DELTA_LOCAL} if needed else {}
    builder = SparkSession.builder.appName(app_name).master("local[*]")
    # Executors log a stack of Java for each task that fails, as over a corrupt file; what failed is told by the error.
    return _session(
        builder, _LOCAL | java | taken_along | tables, log_level="FATAL", java_messages=java_messages
    )


def _java_for(evidence_bytes: int | None) -> str:
    """Return Java's options for a session that reads so many bytes; most windows of unknown size are not large."""
    if evidence_bytes is None:
        return f"{_JAVA} {_QUICK_COMPILER}"
    if evidence_bytes <= SMALL_BYTES:
        return QUICK_JAVA
    return _JAVA if evidence_bytes > QUICK_BYTES else f"{_JAVA} {_QUICK_COMPILER}"


def submitted_session(app_name: str, jars: Sequence[Path] = ()) -> SparkSession:
    """Return the session of a job that spark-submit started with these jars, on the master it was given.

    Raises:
        UsageError: where that is a standalone cluster, and nothing says by which secret its parts know each other.
    """
    SparkContext._ensure_initialized()
    given = dict(SparkConf().getAll())
    ports = guarded_ports(given, secret=settings.spark_secret())
    return _session(SparkSession.builder.appName(app_name), {**_needed_by(jars), **ports})


def guarded_ports(given: Mapping[str, str], *, secret: str | None) -> Mapping[str, str]:
    """Return the settings that keep strangers from the ports that a job opens.

    On this machine alone they are on its loopback. Elsewhere who connects must know a secret: a standalone cluster's is
    in the environment, YARN and Kubernetes make one for each job. Who has set `spark.authenticate` knows better.
    Source: "Security" of Spark's guide, "Spark RPC".

    Args:
        given: The settings that the job was submitted with.
        secret: A standalone cluster's secret, where the environment has one. Its master and workers read it there by
            themselves; a driver takes it as a setting only.

    Raises:
        UsageError: where a standalone cluster has none.
    """
    master = given.get("spark.master", "local")
    if master.startswith("local"):
        return _LOCAL
    if "spark.authenticate" in given:
        return {}
    if not master.startswith("spark:"):
        return _AUTHENTICATED
    if secret is None:
        raise UsageError(
            f"the standalone cluster {master}: expected its secret in the environment variable "
            f"{settings.SPARK_SECRET}, found none; set it to one text for the driver, the master and the workers, and "
            "start the latter two with SPARK_DAEMON_JAVA_OPTS=-Dspark.authenticate=true: docs/how-to/deploy.md"
        )
    return {**_AUTHENTICATED, "spark.authenticate.secret": secret}


def _needed_by(jars: Sequence[Path]) -> Mapping[str, str]:
    """Return the settings that the jars need to be of use; without the jars they would be errors."""
    return _DELTA if any(jar.name.startswith("delta-") for jar in jars) else {}


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether a class is in Spark's jars, or those that the session took along."""
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


def _session(
    builder: SparkSession.Builder,
    extra: Mapping[str, str],
    *,
    log_level: str = "ERROR",
    java_messages: IO[bytes] | None = None,
) -> SparkSession:
    for name, value in {**SETTINGS, **extra}.items():
        builder = builder.config(name, value)
    if SparkContext._gateway is None:
        _start_java(SparkConf().setAll(list(builder._options.items())), java_messages)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    tell_errors_once()
    _remember_classes(session)
    _use_this_python(session)
    return session


def _start_java(conf: SparkConf, messages: IO[bytes] | None) -> None:
    """Start the Java process of this Python process, with no secret in its environment, nor in that of its children.

    Its standard error may go to a file: Java warns of its modules, and Spark of host names and logging, before any
    setting of a session holds.
    """
    with trimmed_for_spark():
        gateway = launch_gateway(conf, {"stderr": messages})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def stop(spark: SparkSession) -> None:
    """End a session of this process and its Spark.

    PySpark's server of accumulators, of which there are none, looks once a second whether it should end, and
    `SparkSession.stop` waits for that. Source: `UpdateRequestHandler` in PySpark's `accumulators.py`.
    """
    context: Any = spark.sparkContext
    server, context._accumulatorServer = context._accumulatorServer, None
    if server is not None:
        Thread(target=server.shutdown, daemon=True).start()
    spark.stop()


def tell_errors_once() -> None:
    """Keep PySpark from printing what it raises: a wrong column in a contract is one line, and no stack."""
    for name in _TELLING_TWICE:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _use_this_python(spark: SparkSession) -> None:
    """Have readers that run Python beside the data use this interpreter, which has what they need.

    Spark would take whatever `python3` is on the path; who has set PYSPARK_PYTHON knows better.
    """
    if spark.sparkContext.pythonExec == "python3":
        spark.sparkContext.pythonExec = sys.executable


def _remember_classes(spark: SparkSession) -> None:
    """Spare every column two calls into the JVM: PySpark looks up class and method anew each time it uses one.

    A run builds thousands of columns; the lookups are a tenth of a small window's time.
    """
    jvm = spark.sparkContext._jvm
    for name in ("org.apache.spark.sql.functions", "functions", "PythonSQLUtils", "PythonUtils"):
        found = getattr(jvm, name)
        for method in dir(found):
            setattr(found, method, getattr(found, method))
        setattr(jvm, name, found)


@contextmanager
def suited_to(spark: SparkSession, *, is_small: bool, rows: int | None = None) -> Iterator[None]:
    """Set the session up for much or little evidence while the block runs; results do not depend on it.

    `rows` are how many there are of much evidence, where that is known.
    """
    with set_to(spark, _SMALL if is_small else {} if rows is None else _for_many(rows)):
        yield


def _for_many(rows: int) -> Mapping[str, str]:
    """Return the settings for many rows: all shuffles have as many tasks.

    What was kept by message then needs no shuffle to be joined by message again. Spark would else choose the number of
    tasks anew after each shuffle, so that no two agree.
    """
    tasks = max(_FEWEST_TASKS, ceil(rows / ROWS_PER_TASK))
    return {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(tasks)}


def has_one_partition(spark: SparkSession) -> bool:
    """Return whether `suited_to` set the session up for little evidence, which lies in one partition.

    A session that shuffles into one partition by itself may have much of it.
    """
    return spark.conf.get(_SINGLE_PARTITION) == _SMALL[_SINGLE_PARTITION]


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the values that the session has of all settings that `suited_to` may change."""
    return {name: spark.conf.get(name) or "" for name in _SMALL}


@contextmanager
def set_to(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Let the session have these settings while the block runs, and afterwards those that it had."""
    before = {name: spark.conf.get(name) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            spark.conf.set(name, known or "")


def is_full(error: Exception) -> bool:
    """Return whether Spark failed because a device has no space left."""
    return isinstance(error, PySparkException | Py4JJavaError) and _NO_SPACE in str(error)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether Java had no memory left, or has ended, as it does of that."""
    if isinstance(error, PySparkException | Py4JJavaError) and _NO_MEMORY in str(error):
        return True
    is_of_connection = isinstance(error, Py4JError | ConnectionError | EOFError)
    return is_of_connection and _has_java_ended()


def _has_java_ended() -> bool:
    """Return whether the Java machine that this process started has ended; one that is about to is waited for."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def space_told() -> Iterator[None]:
    """Say so where Spark's own files have no space left on the disk, or Java has none in memory.

    Raises:
        DiskFullError: instead of Spark's error.
        JavaMemoryError: instead of Spark's error, or of that of a connection to a Java machine that is gone.
    """
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise JavaMemoryError(
                _TOO_LARGE.format(settings.driver_memory(), settings.DRIVER_MEMORY)
            ) from error
        if not is_full(error):
            raise
        raise DiskFullError(
            f"no space left for Spark's own files in {settings.spark_local_folders()}; free some, or name larger "
            "folders in SPARK_LOCAL_DIRS"
        ) from error
