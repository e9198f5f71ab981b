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
from tieout.errors import DiskFullError, ExecutorLostError, JavaMemoryError, UsageError
from tieout.java_options import java_options_for
from tieout.spark_environment import trimmed_for_spark

_NO_SPACE: Final = "No space left on device"
"""The system's message for ENOSPC, in Java and in Python."""
_NO_MEMORY: Final = "java.lang.OutOfMemoryError"
_LOST: Final = ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "ExecutorLostFailure")
"""What Spark's errors say where an executor ended, and with it rows that were kept there or the last try of a task.

Source: `error-conditions.json` and `TaskEndReason.scala` of apache/spark.
"""
_ENDING_SECONDS: Final = 5.0
_TOO_LARGE: Final = (
    "Spark's Java machine has no memory left, or has ended, with a heap of {} ({}): a record or a value of the "
    "evidence may unpack to more. Give it more memory; or read a Kafka topic from its broker's own files with kind: "
    "kafka_segments, which names a batch that is too large, and judges the others"
)
ROWS_PER_TASK: Final = 200_000
"""Rows per task that can be sorted, or counted in a hash table, in little memory."""

FOR_EVIDENCE: Final = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.variable.substitute": "false",
}
"""Settings for every read of evidence, whatever the installation's defaults are.

A file that is corrupt or gone fails the job. Rows are counted, not taken from a file's footer. An expression of a
contract takes no `${env:…}` from the environment.
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
"""Settings of a run: UTC, ANSI arithmetic, plain upper and lower case; no web page, no call site recorded per column.

Checkpointed rows are written by Kryo, which copies a row's bytes; Java's serialisation looks up its class in each.
A task shuffles into one file: for little output, opening one for each of 200 partitions is most of its work.
A window function holds `ROWS_PER_TASK` rows in memory, and more on disk: Spark cannot take the memory of one function
back for another, so the second of two would fail. Each spill file is read with one buffer outside the heap, not three.
Spark derives no conditions from others: each alias doubles those that a column is in, and the expression that makes a
row's faults out of twenty columns would get a million. Docs: Catalyst's `UnaryNode.getAllValidConstraints`.
A window with breaks generates 180 classes. Spark keeps 100 by default, so the next window in the same session would
compile all of them again. Docs: Spark's `StaticSQLConf.CODEGEN_CACHE_MAX_ENTRIES`.
"""

_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_AUTHENTICATED: Final = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}

_DUPLICATE_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark loggers that print an error in an expression, with Java's whole stack, in addition to raising it."""

DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA: Final = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Delta does not read without these: its rules leave out rows that a deletion vector marks. Iceberg needs none."""
_DELTA_LOCAL: Final = {"spark.databricks.delta.snapshotPartitions": "2"}
"""Two tasks read the log of a table, instead of 50."""

SMALL_ROWS: Final = 100_000
"""Up to this many rows of all ledgers, or `SMALL_BYTES`, planning and compiling cost more than the work itself."""

_FEWEST_TASKS: Final = 8

_SINGLE_PARTITION: Final = "spark.sql.maxSinglePartitionBytes"
_SMALL: Final = {
    "spark.sql.shuffle.partitions": "1",
    # In one partition a join needs no exchange, whatever size Spark estimates; a broadcast would be a job of its own.
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

    `evidence_bytes`, the size of all that the session will read, chooses Java's options; None if it is not known.
    Results do not depend on it. `java_messages` is a file that takes what Java and its tools print, instead of standard
    error; `java_options` are more options for Java.
    """
    java = {"spark.driver.extraJavaOptions": f"{java_options_for(evidence_bytes)} {java_options}".strip()}
    jar_settings = {"spark.jars": ",".join(map(str, jars))} if jars else {}
    needed = _needed_by(jars)
    tables = {**needed, **_DELTA_LOCAL} if needed else {}
    builder = SparkSession.builder.appName(app_name).master("local[*]")
    # Executors log Java's stack for each task that fails, as over a corrupt file; the error already names what failed.
    return _session(
        builder, _LOCAL | java | jar_settings | tables, log_level="FATAL", java_messages=java_messages
    )


def submitted_session(app_name: str, jars: Sequence[Path] = ()) -> SparkSession:
    """Return the session of a job that spark-submit started with these jars, on the master it was given.

    Raises:
        UsageError: where that is a standalone cluster, and the environment has no secret for it.
    """
    SparkContext._ensure_initialized()
    given = dict(SparkConf().getAll())
    ports = guarded_ports(given, secret=settings.spark_secret())
    return _session(SparkSession.builder.appName(app_name), {**_needed_by(jars), **ports})


def guarded_ports(given: Mapping[str, str], *, secret: str | None) -> Mapping[str, str]:
    """Return the settings that protect the ports that a job opens from strangers.

    With a local master, they are on the loopback. Otherwise clients need a secret: a standalone cluster's is in the
    environment, YARN and Kubernetes make one for each job. A `spark.authenticate` that is already set is respected.
    Source: "Security" of Spark's guide, "Spark RPC".

    Args:
        given: The settings that the job was submitted with.
        secret: A standalone cluster's secret, if the environment has one. Its master and workers read it from there; a
            driver takes it as a setting only.

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
    """Return the settings that the jars need; without the jars these would be errors."""
    return _DELTA if any(jar.name.startswith("delta-") for jar in jars) else {}


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether a class is in Spark's jars or in those of the session."""
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
    silence_duplicate_errors()
    _cache_java_classes(session)
    _use_this_python(session)
    return session


def _start_java(conf: SparkConf, messages: IO[bytes] | None) -> None:
    """Start the Java process of this Python process, without secrets in its environment or that of its children.

    Its standard error may go to a file: Java warns about its modules, and Spark about host names and logging, before
    any setting of a session takes effect.
    """
    with trimmed_for_spark():
        gateway = launch_gateway(conf, {"stderr": messages})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def stop(spark: SparkSession) -> None:
    """End a session of this process and its Spark.

    PySpark's accumulator server, which is not used, checks once a second whether it should end, and `SparkSession.stop`
    waits for that. Source: `UpdateRequestHandler` in PySpark's `accumulators.py`.
    """
    context: Any = spark.sparkContext
    server, context._accumulatorServer = context._accumulatorServer, None
    if server is not None:
        Thread(target=server.shutdown, daemon=True).start()
    spark.stop()


def silence_duplicate_errors() -> None:
    """Keep PySpark from printing the errors that it raises: a wrong column in a contract is one line, and no stack."""
    for name in _DUPLICATE_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _use_this_python(spark: SparkSession) -> None:
    """Let Python workers of readers use this interpreter, which has the packages that they need.

    Spark would take whatever `python3` is on the path. PYSPARK_PYTHON is respected if it is set.
    """
    if spark.sparkContext.pythonExec == "python3":
        spark.sparkContext.pythonExec = sys.executable


def _cache_java_classes(spark: SparkSession) -> None:
    """Save two calls into the JVM per column: PySpark looks up class and method each time it uses one.

    A run builds thousands of columns; the lookups take a tenth of a small window's time.
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

    `rows` is the number of rows of much evidence, where it is known.
    """
    with set_to(spark, _SMALL if is_small else {} if rows is None else _for_many(rows)):
        yield


def _for_many(rows: int) -> Mapping[str, str]:
    """Return the settings for many rows: all shuffles have the same number of tasks.

    Rows that were checkpointed by message then need no shuffle to be joined by message. Otherwise Spark would choose
    another number of tasks after each shuffle.
    """
    tasks = max(_FEWEST_TASKS, ceil(rows / ROWS_PER_TASK))
    return {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(tasks)}


def has_one_partition(spark: SparkSession) -> bool:
    """Return whether `suited_to` set the session up for little evidence, which is in one partition.

    A session that has one shuffle partition for other reasons may have much evidence.
    """
    return spark.conf.get(_SINGLE_PARTITION) == _SMALL[_SINGLE_PARTITION]


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the values that the session has of all settings that `suited_to` may change."""
    return {name: spark.conf.get(name) or "" for name in _SMALL}


@contextmanager
def set_to(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Give the session these settings while the block runs, and afterwards those that it had before."""
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


def is_of_lost_executor(error: Exception) -> bool:
    """Return whether Spark failed because an executor ended."""
    return isinstance(error, PySparkException | Py4JJavaError) and any(text in str(error) for text in _LOST)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether Java had no memory left, or has ended, as it then does."""
    if isinstance(error, PySparkException | Py4JJavaError) and _NO_MEMORY in str(error):
        return True
    is_of_connection = isinstance(error, Py4JError | ConnectionError | EOFError)
    return is_of_connection and _has_java_ended()


def _has_java_ended() -> bool:
    """Return whether the Java machine that this process started has ended, or does within `_ENDING_SECONDS`."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def explained_spark_errors() -> Iterator[None]:
    """Explain the error if Spark's files have no space left on the disk, Java has no memory left or an executor ended.

    Raises:
        DiskFullError: instead of Spark's error.
        ExecutorLostError: instead of Spark's error.
        JavaMemoryError: instead of Spark's error, or of a connection error when the Java machine has ended.
    """
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise JavaMemoryError(
                _TOO_LARGE.format(settings.driver_memory(), settings.DRIVER_MEMORY)
            ) from error
        if is_full(error):
            raise DiskFullError(
                f"no space left for Spark's own files in {settings.spark_local_folders()}; free some, or name larger "
                "folders in SPARK_LOCAL_DIRS"
            ) from error
        if is_of_lost_executor(error):
            raise ExecutorLostError(
                "an executor of Spark ended, and with it what it kept of the window: the job can be run "
                "again. If executors end each time, Spark's page of the application says why: mostly "
                "for want of memory (spark.executor.memory, spark.executor.memoryOverhead)"
            ) from error
        raise
