"""Spark as the stack runs it: short jobs on a few thousand rows, on two cores.

These are settings of this stack and not of the pipelines' DAGs, because they are wrong for large evidence. What such a
job costs is Java starting cold, so the classes it loads are kept in an archive that every later job maps (JDK 17,
"Java Virtual Machine Guide", Class Data Sharing): half the time of loading 23,000 classes, a fifth of a job.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tieout.cli.java import archive_name, require_java
from tools.stack import examples, processes
from tools.stack.layout import ROOT
from tools.stack.processes import Process

FOLDER = ROOT / ".tieout" / "spark"
"""Shared by all stacks of the checkout: the archive is of use only with the class path that it was made with."""

_JAVA_OPTIONS = (
    # The optimising compiler's work does not pay in a job of half a minute: half the time without it.
    # Its code cache is small by default, and sweeping it costs more than the memory.
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m",
    # Memory taken at once is memory not collected: 12 short collections instead of 48 and no full one.
    "-XX:+UseSerialGC -Xms1g -Xmn512m -XX:MetaspaceSize=256m",
)
_EXAMPLE = "clean_transactional"


def environment() -> dict[str, str]:
    """Return the variables that every Spark job of the stack runs with."""
    return {**_configuration(), "SPARK_SUBMIT_OPTS": _options("SharedArchiveFile", _archive())}


def start_archiving(inherited: Mapping[str, str], log: Path) -> Process | None:
    """Start judging an example to learn which classes a job loads, and return the process; None where they are known.

    It runs through spark-submit, as jobs do, so that Java is its last process to end: it then writes the archive to
    `_draft`, which `finish_archiving` puts in place.
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
    """Put the archive in place that a finished `start_archiving` left; return whether there is one."""
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
    home = Path(str(pyspark.origin if pyspark else ROOT)).parent
    return FOLDER / archive_name(require_java(), home)
