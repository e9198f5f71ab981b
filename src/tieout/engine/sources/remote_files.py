"""Lists files that only Hadoop can read, such as those of an object store, and explains why a listing fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tieout.encodings import encoding_of
from tieout.engine.sources.file_faults import LEFT_OUT, empty_archive_fault, is_left_out
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.left_out import SKIPPED, STILL_WRITTEN, WRITING, is_skipped
from tieout.engine.table_folders import SINK_MANIFEST
from tieout.errors import SourceError, SourceUnreachableError

_JARS: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws in the version of Spark's Hadoop",
    "abfss": "org.apache.hadoop:hadoop-azure in the version of Spark's Hadoop",
    "gs": "the Cloud Storage connector for Hadoop",
}
"""The jar for each scheme of a remote file system. Source: "Cloud Integration" of Spark's guide."""
_MOST_CAUSES: Final = 10


def remote_inputs(spark: SparkSession, path: str, *, is_text: bool) -> list[Input]:
    """Return the files of a path that only Hadoop can read, known by length and time, not by content.

    Args:
        spark: The session whose Hadoop lists them.
        path: A file, a folder or a pattern.
        is_text: Whether Spark reads their format as lines of UTF-8.

    Raises:
        SourceError: where the path cannot be listed.
    """
    try:
        return _listed(spark, path, is_text=is_text)
    except (Py4JJavaError, CapturedException) as error:
        raise _unreached(path, error) from None


def _unreached(path: str, error: Py4JJavaError | CapturedException) -> SourceError:
    """Return why a path that only Hadoop can read cannot be read, in words that say what to do."""
    causes: list[Any] = [error.java_exception if isinstance(error, Py4JJavaError) else error._origin]
    while (cause := causes[-1].getCause()) is not None and len(causes) < _MOST_CAUSES:
        causes.append(cause)
    messages = [str(cause.getMessage() or "").partition("\n")[0] for cause in causes]
    scheme = path.partition("://")[0]
    if any(
        "No FileSystem for scheme" in one or ("Class " in one and " not found" in one) for one in messages
    ):
        jar = _JARS.get(scheme, "the jar of that file system")
        return SourceError(
            f"{path}: expected a file system that Spark has a jar for, found none for {scheme}://; name {jar} in "
            "spark.jars or spark.jars.packages of Spark's configuration (SPARK_CONF_DIR/spark-defaults.conf), or copy "
            "the files to a folder"
        )
    kind = causes[-1].getClass().getSimpleName()
    if scheme.lower() in ("http", "https"):
        return SourceError(
            f"{path}: expected files that can be listed, found a web address; download them, and name the folder"
        )
    return SourceUnreachableError(
        f"{path}: expected to list it, found {kind}: {messages[-1] or 'no further words'}; check its address and the "
        "rights and credentials of Spark's configuration for it"
    )


def _listed(spark: SparkSession, path: str, *, is_text: bool) -> list[Input]:
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration())
    found = []
    for match in system.globStatus(hadoop_path) or ():
        files = system.listFiles(match.getPath(), True)
        while files.hasNext():
            status = files.next()
            name, uri, size = status.getPath().getName(), status.getPath().toString(), status.getLen()
            root = match.getPath().getParent().toString()
            below = uri.removeprefix(root).strip("/")
            aside = None if match.isFile() else _skipped(below, size)
            if aside is not None:
                place = f"{root.rstrip('/')}/{aside[0]}"
                found.append(Input(place, place, "unread", aside[1]))
            elif match.isFile() or not _is_hidden(below):
                digest = f"length:{size} modified:{status.getModificationTime()}"
                fault = LEFT_OUT if size and is_left_out(name) else None
                if size and fault is None:
                    fault = empty_archive_fault(name, partial(_remote_head, system, status.getPath()))
                file = Input(uri, uri, digest, fault, size)
                head = partial(_remote_head, system, status.getPath())
                found.append(_noted(file, head) if size and fault is None and is_text else file)
    return found


def _is_hidden(below: str) -> bool:
    """Return whether a file's path, behind the folder that was found, is passed over; a sink's manifest is not.

    >>> _is_hidden("out/_checkpoint/commits/0"), _is_hidden("out/_spark_metadata/0"), _is_hidden("_out/part-0.json")
    (True, False, False)
    """
    return any(name.startswith(("_", ".")) and name != SINK_MANIFEST for name in below.split("/")[1:])


def _skipped(below: str, size: int) -> tuple[str, str] | None:
    """Return what of the path of a file, from the folder that was found, is passed over, and the fault that it is.

    >>> _skipped("out/_temporary/0/part-0.json", 9)[0], _skipped("out/day=1/_SUCCESS", 9)
    ('out/_temporary', None)
    """
    parts = below.split("/")
    for place, name in enumerate(parts):
        fault = STILL_WRITTEN if name == WRITING else SKIPPED
        if name == WRITING or (place and size and is_skipped(name)):
            return "/".join(parts[: place + 1]), fault
    return None


def _remote_head(system: Any, path: Any) -> bytes:
    stream = system.open(path)
    try:
        read = (stream.read() for _ in range(10))
        return bytes(value for value in read if value >= 0)
    finally:
        stream.close()


def _noted(file: Input, head: Callable[[], bytes]) -> Input:
    """Return the remote file with its encoding; a text that is not UTF-8 is not copied to this machine."""
    encoding = encoding_of(head())
    if encoding.is_utf8:
        return replace(file, note=encoding.note)
    found = f"expected UTF-8 outside this machine's own file systems, found {encoding.name}"
    return replace(file, fault=f"{found}; convert it")
