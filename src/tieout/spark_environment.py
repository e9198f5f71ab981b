"""What Spark's processes get of this process's environment, and what their driver alone gets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tieout import settings
from tieout.errors import UsageError

FOR_SPARK: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "LD_*",
    "SSL_CERT_*", "JAVA_*", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "PYTHON*", "VIRTUAL_ENV",
    "SPARK_*", "PYSPARK_*", settings.SPARK_SECRET, "HADOOP_*", "YARN_*", "KRB5*", "KUBECONFIG", "KUBERNETES_SERVICE_*",
    settings.HOME, settings.JARS, settings.RESULT_PATH, settings.HANDOVER_PATH,
    settings.UNPACKED_RECORD_MB, settings.UNPACKED_FILE_MB, settings.BUCKET_MB, settings.BUNDLES, "TIEOUT_STACK",
)  # fmt: skip
"""Patterns of the environment variables of Spark's processes: the system's, Java's, Python's, Spark's, Tieout's."""


def spark_environment() -> dict[str, str]:
    """Return the environment of Spark's processes: what they need of this one's, and what the deployment adds to it.

    Executors run in it where Spark works on this machine, so it holds no secret but the one of Spark's own parts.
    """
    more = (name.strip() for name in os.environ.get(settings.SPARK_VARIABLES, "").split(","))
    patterns = (*FOR_SPARK, *more)
    return {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


@contextmanager
def trimmed_for_spark() -> Iterator[None]:
    """Let this process, and those that it starts, have the environment of Spark's while the block runs."""
    hidden = {name: os.environ.pop(name) for name in os.environ.keys() - spark_environment().keys()}
    try:
        yield
    finally:
        os.environ.update(hidden)


def hand_over(variables: Mapping[str, str], file: Path) -> None:
    """Write variables for a Spark driver alone, and libpq's, into a new file that only this user can read."""
    libpq = {name: value for name, value in os.environ.items() if name.startswith("PG")}
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as written:
        json.dump({**libpq, **variables}, written)


def take_handed_over() -> None:
    """Let this process have what was handed over to it, if anything was, and delete the file.

    Processes that run beside it, as Java and Python's workers do, do not see it.

    Raises:
        UsageError: where the file cannot be read.
    """
    named = os.environ.pop(settings.HANDOVER_PATH, None)
    if not named:
        return
    file = Path(named)
    try:
        os.environ.update(json.loads(file.read_text(encoding="utf-8")))
        file.unlink()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it holds no variables"
        raise UsageError(
            f"{settings.HANDOVER_PATH}: expected the file {named} with the store's URL and the connections, which the "
            f"task writes for the driver of its Spark job; it cannot be read: {reason}. Run the driver on the machine "
            "of the task (deploy-mode client), once per task: docs/how-to/deploy.md"
        ) from None
