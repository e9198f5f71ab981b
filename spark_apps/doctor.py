"""The Spark job of `tieout doctor`: asks the executors for their Python, their packages and the shared folder."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tieout import settings
from tieout.engine.session import stop, submitted_session
from tieout.errors import TieoutError

PACKAGES = ("tieout", "duckdb", "pyarrow")


def main(argv: list[str]) -> int:
    """Ask as many tasks as the master runs at once; return the exit code."""
    parser = argparse.ArgumentParser(prog="doctor.py", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the folder that driver and executors share")
    home = parser.parse_args(argv).home

    # 1. A file of the driver that executors must find, as they must find evidence and write breaks.
    home.mkdir(parents=True, exist_ok=True)
    mark = home / f".doctor-{uuid.uuid4()}"
    mark.touch()
    spark = submitted_session("tieout doctor")
    try:
        # 2. With as many tasks as run at once, every executor runs one.
        tasks = max(spark.sparkContext.defaultParallelism, 1)
        per_executor = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(
            lambda _: _seen(mark)
        )
        executors = per_executor.collect()
    finally:
        stop(spark)
        mark.unlink()

    # 3. The small result for the command that started the job.
    result = settings.result_path()
    if result is not None:
        result.write_text(json.dumps(executors), encoding="utf-8")
    return 0


def _seen(mark: Path) -> Iterator[dict[str, Any]]:
    """Yield facts about one executor: its Python, its packages' versions, and whether it sees the driver's file."""
    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    yield {
        "host": os.uname().nodename,
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "executable": sys.executable,
        "packages": packages,
        "sees_home": mark.exists() and os.access(mark.parent, os.W_OK),
    }


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TieoutError as error:
        print(f"tieout: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
