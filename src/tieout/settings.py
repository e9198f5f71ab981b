"""What the environment says of Tieout: its own variables, and those of Spark and Java that it heeds."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tieout.errors import UsageError

DATABASE_URL = "TIEOUT_DATABASE_URL"
CONTRACTS = "TIEOUT_CONTRACTS"
HOME = "TIEOUT_HOME"
JARS = "TIEOUT_JARS"
RESULT_PATH = "TIEOUT_RESULT_PATH"
HANDOVER_PATH = "TIEOUT_HANDOVER_PATH"
SPARK_VARIABLES = "TIEOUT_SPARK_VARIABLES"
DRIVER_MEMORY = "SPARK_DRIVER_MEMORY"
SPARK_LOCAL_DIRS = "SPARK_LOCAL_DIRS"
CACHES = "XDG_CACHE_HOME"
SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
SPARK_SECRET = "_SPARK_AUTH_SECRET"  # noqa: S105 - a variable's name
PRELOAD_CHECKS = "TIEOUT_PRELOAD_CHECKS"
DATA_DOCS = "TIEOUT_DATA_DOCS"
BUNDLES = "TIEOUT_BUNDLES"
KEEP_SUPERSEDED_DAYS = "TIEOUT_KEEP_SUPERSEDED_DAYS"
KEEP_BREAKS_DAYS = "TIEOUT_KEEP_BREAKS_DAYS"
KEEP_STATEMENTS_DAYS = "TIEOUT_KEEP_STATEMENTS_DAYS"
UNPACKED_RECORD_MB = "TIEOUT_UNPACKED_RECORD_MB"
UNPACKED_FILE_MB = "TIEOUT_UNPACKED_FILE_MB"
BUCKET_MB = "TIEOUT_BUCKET_MB"
LEAST_DAYS: Final = 35
"""What is younger is never deleted: windows are still judged again, and people still ask."""


_MOST_DIGITS: Final = 9
_TABLE_FORMATS: Final = ("delta", "iceberg")
_CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where Linux says how much memory a container may take: control groups, version 2 ("max" is no limit) and 1."""
_LEAST: Final = 1 << 30
_LINES_PER_HEAP: Final = 64
_OF_EXECUTOR: Final = 2 << 30


def database_url() -> str | None:
    """Return the libpq URL of the result store, or None where none is set."""
    return os.environ.get(DATABASE_URL) or None


def required_database_url() -> str:
    """Return the libpq URL of the result store.

    Raises:
        UsageError: where none is set.
    """
    url = database_url()
    if url is None:
        raise UsageError(
            f"{DATABASE_URL} is not set: expected the result store's URL, "
            "postgresql://user:password@host:port/database"
        )
    return url


def contract_folders(dags: Path) -> tuple[Path, ...]:
    """Return the folders whose `*.yml` files are contracts; by default `contracts` beside the DAG files.

    Args:
        dags: The folder of the DAG files; relative folders start at the one above it.
    """
    named = os.environ.get(CONTRACTS)
    if not named:
        return (dags / "contracts",)
    return tuple(dags.parent / folder for folder in named.split(os.pathsep) if folder)


def is_set(variable: str) -> bool:
    """Return whether an environment variable says anything."""
    return bool(os.environ.get(variable))


def home() -> Path:
    """Return the folder that takes the statements: `.tieout` of the working directory by default."""
    return Path(os.environ.get(HOME) or ".tieout").absolute()


@dataclass(frozen=True)
class Retention:
    """How long results are kept; None is for ever, which is the default of each."""

    superseded: timedelta | None
    breaks: timedelta | None
    statements: timedelta | None


def retention() -> Retention:
    """Return how long results are kept, docs/reference/retention.md.

    Raises:
        UsageError: where a variable is no number of days, or one below the least.
    """
    return Retention(_days(KEEP_SUPERSEDED_DAYS), _days(KEEP_BREAKS_DAYS), _days(KEEP_STATEMENTS_DAYS))


def _days(variable: str) -> timedelta | None:
    text = os.environ.get(variable) or None
    if text is None:
        return None
    if not text.isdecimal() or not LEAST_DAYS <= int(text) <= 100_000:
        raise UsageError(
            f"{variable}: expected a whole number of days from {LEAST_DAYS} on, or nothing to keep for ever, "
            f"found {text!r}"
        )
    return timedelta(days=int(text))


@dataclass(frozen=True)
class Unpacking:
    """How many bytes evidence may unpack to: one batch or page, `record`, one file, and one line or row of a table."""

    record: int = 128 << 20
    file: int = 16_384 << 20
    line: int = 128 << 20


def unpacking() -> Unpacking:
    """Return how many bytes evidence may unpack to, as the environment says.

    Where it does not, a line may have a sixty-fourth of the heap of a Spark on this machine, if that is less: with a
    line of a twelfth Java ended, and every task may hold one.

    Raises:
        UsageError: where a variable is no number of megabytes.
    """
    default = Unpacking()
    return Unpacking(
        _megabytes(UNPACKED_RECORD_MB, default.record),
        _megabytes(UNPACKED_FILE_MB, default.file),
        _megabytes(UNPACKED_RECORD_MB, min(default.line, _line_of(_bytes(driver_memory())))),
    )


def bucket_memory(*, is_here: bool) -> int:
    """Return how many bytes of memory a task that judges may take, docs/reference/environment.md.

    Where nobody says it, a task on this machine may take as much as the heap of Spark beside it.

    Raises:
        UsageError: where the variable is no whole number of megabytes.
    """
    return _megabytes(BUCKET_MB, _quarter() if is_here else _OF_EXECUTOR)


def spill_folder() -> str:
    """Return the folder in which a task on this machine keeps what does not fit into its memory: Spark's first one."""
    return spark_local_folders().partition(",")[0]


def _megabytes(variable: str, default: int) -> int:
    found = _number(variable, "megabytes")
    return default if found is None else found << 20


def _number(variable: str, what: str) -> int | None:
    text = os.environ.get(variable) or None
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS or int(text) == 0:
        raise UsageError(f"{variable}: expected a whole number of {what} from 1 on, found {text!r}")
    return int(text)


def jars(connectors: Collection[str]) -> tuple[Path, ...]:
    """Return the jars that Spark takes along for what a contract reads; none where none are needed, or were fetched.

    Those of a table format, `delta-….jar` and `iceberg-….jar`, go along with it alone, all others with any connector.
    """
    if not connectors:
        return ()
    folder = Path(os.environ.get(JARS) or Path(".tieout") / "jars").absolute()
    unneeded = tuple(f"{name}-" for name in _TABLE_FORMATS if name not in connectors)
    return tuple(sorted(jar for jar in folder.glob("*.jar") if not jar.name.startswith(unneeded)))


def preloads_checks() -> bool:
    """Return whether Airflow's scheduler imports Great Expectations once, for the tasks that it forks."""
    return os.environ.get(PRELOAD_CHECKS) == "1"


def writes_data_docs() -> bool:
    """Return whether each run's checks become a page of Great Expectations' Data Docs."""
    return os.environ.get(DATA_DOCS) == "1"


def data_docs_folder(pipeline: str) -> Path:
    """Return the folder of a pipeline's Data Docs."""
    return home() / "data_docs" / pipeline


def keeps_bundles() -> bool:
    """Return whether each scheduled run leaves an audit bundle."""
    return os.environ.get(BUNDLES) == "1"


def bundle_file(pipeline: str, start: datetime, run_id: str) -> Path:
    """Return the audit bundle of a scheduled run, in a folder of its pipeline."""
    return home() / "bundles" / pipeline / f"{start:%Y-%m-%dT%H%M%SZ}-{run_id}.zip"


def result_path() -> Path | None:
    """Return where a Spark job writes its small result for the task that started it, or None."""
    named = os.environ.get(RESULT_PATH)
    return Path(named) if named else None


def driver_memory() -> str:
    """Return how large the heap of a Spark on this machine may grow, as Spark writes it.

    Where nobody says it is a quarter of the memory, as Java by itself would take; Spark would give it 1 GiB.
    """
    return os.environ.get(DRIVER_MEMORY) or f"{_quarter() >> 20}m"


def spark_secret() -> str | None:
    """Return the secret by which the parts of a standalone cluster know each other, or None."""
    return os.environ.get(SPARK_SECRET) or None


def spark_local_folders() -> str:
    """Return where a Spark on this machine keeps what does not fit into memory: one folder or several, with commas."""
    return os.environ.get(SPARK_LOCAL_DIRS) or tempfile.gettempdir()


def cache_folder() -> Path:
    """Return this user's folder for what can be made again, as the XDG Base Directory Specification has it."""
    return Path(os.environ.get(CACHES) or Path.home() / ".cache") / "tieout"


def spark_class_path() -> tuple[Path, ...]:
    """Return what the environment adds to the class path of Spark's Java: folders of configuration, and jars."""
    named = (os.environ.get(name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    more = (os.environ.get("SPARK_DIST_CLASSPATH") or "").split(os.pathsep)
    return tuple(Path(one) for one in (*named, *more) if one)


def submit_options(more: str) -> str:
    """Return what Java is started with where spark-submit starts it: more options, and after them those that are given.

    Java heeds the last of several that contradict each other.
    """
    return f"{more} {os.environ.get(SUBMIT_OPTIONS) or ''}".strip()


@contextmanager
def defined(variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process, and those that it starts, have these environment variables while the block runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _line_of(heap: int) -> int:
    """Return how many bytes a line may have with a heap of that size, in whole megabytes."""
    return max(heap // _LINES_PER_HEAP >> 20, 1) << 20


def _bytes(memory: str) -> int:
    """Return the bytes of a size as Spark and Java write it; a quarter of the memory of one that is none.

    >>> _bytes("2g"), _bytes("512M")
    (2147483648, 536870912)
    """
    found = re.fullmatch(r"([0-9]{1,12})([kmgt]?)b?", memory.strip().lower())
    return _quarter() if found is None else int(found[1]) << 10 * " kmgt".index(found[2] or "m")


def _quarter() -> int:
    return max(_memory() // 4, _LEAST)


def _memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or fewer in a container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limits)


def java_home() -> Path | None:
    """Return the folder of the Java that Spark would start, or None where the one on the path is meant."""
    named = os.environ.get("JAVA_HOME")
    return Path(named) if named else None
