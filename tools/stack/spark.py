"""Spark's settings in the stack: short jobs on a few thousand rows, on two cores.

They belong to this stack and not to the pipelines' DAGs, because they are wrong for large evidence. The main cost of
such a job is Java's cold start, so its classes are stored in an archive that every later job maps (JDK 17, "Java
Virtual Machine Guide", Class Data Sharing): half the time of loading 23,000 classes, a fifth of a job.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tieout.cli.java import archive_name, require_java
from tieout.java_options import METASPACE, QUICK_COMPILER
from tools.stack import examples, processes
from tools.stack.layout import ROOT
from tools.stack.processes import Process

FOLDER = ROOT / ".tieout" / "spark"
"""Shared by all stacks of the checkout: the archive is valid only for the class path that it was made with."""

_JAVA_OPTIONS = (
    # The optimising compiler's work does not pay in a job of half a minute: half the time without it.
    QUICK_COMPILER,
    # Memory taken at once is memory not collected: 12 short collections instead of 48 and no full one.
    f"-XX:+UseSerialGC -Xms1g -Xmn512m {METASPACE}",
)
_EXAMPLE = "clean_transactional"


def environment() -> dict[str, str]:
    """Return the environment variables of every Spark job of the stack."""
    return {**_configuration(), "SPARK_SUBMIT_OPTS": _options("SharedArchiveFile", _archive())}


def start_archiving(inherited: Mapping[str, str], log: Path) -> Process | None:
    """Start judging an example to record the classes of a job, and return the process; None if there is an archive.

    It runs through spark-submit, as jobs do, so that Java exits last: it then writes the archive to `_draft`, which
    `finish_archiving` renames.
    """
    if _archive().is_file():
        return None
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "conf").mkdir(parents=True)
    (example,) = examples.read(ROOT / "examples", [_EXAMPLE])
    start, end = example.window.start.isoformat(), example.window.end.isoformat()
    command = [
        *(
            str(Path(sys.executable).with_name("spark-submit")),
            str(ROOT / "src" / "tieout" / "cli" / "__main__.py"),
        ),
        *("reconcile", str(example.folder / "contract.yml"), "--from", start, "--to", end),
        *("--output", str(FOLDER / "judged")),
    ]
    changed = {**_configuration(), "SPARK_SUBMIT_OPTS": _options("ArchiveClassesAtExit", _draft())}
    return processes.start("class-archive", command, {**inherited, **changed}, log)


def finish_archiving() -> bool:
    """Move the archive of a finished `start_archiving` into place; return whether there is one."""
    if not _draft().is_file():
        return False
    _draft().rename(_archive())
    return True


def _configuration() -> dict[str, str]:
    # Java archives no class path with a folder that holds files, and the configuration's folder is on it.
    return {"SPARK_CONF_DIR": str(FOLDER / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}


def _options(option: str, archive: Path) -> str:
    return " ".join((*_JAVA_OPTIONS, f"-XX:{option}={archive}"))


def _draft() -> Path:
    return _archive().with_suffix(".new")


def _archive() -> Path:
    """Return the archive's path, which differs for another Java or another installation of PySpark."""
    pyspark = find_spec("pyspark")
    spark_home = Path(str(pyspark.origin if pyspark else ROOT)).parent
    return FOLDER / archive_name(require_java(), spark_home)
