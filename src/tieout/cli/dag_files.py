"""The DAG files that Airflow reads: what `tieout airflow init` writes, and `tieout doctor` looks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tieout.errors import UsageError
from tieout.shipped import DAGS, shipped

DAG_FILES: Final = ("tieout_pipelines.py", "tieout_upkeep.py", "tieout_replay.py")
CONTRACTS: Final = "contracts"


def is_current(file: Path) -> bool:
    """Return whether a DAG file is the one of this version."""
    return file.is_file() and file.read_bytes() == shipped(DAGS, file.name).read_bytes()


def write_dag_files(folder: Path) -> Iterator[str]:
    """Write the DAG files and an empty folder for contracts, and yield one line per file.

    Raises:
        UsageError: if the folder does not exist or cannot be written to.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: expected Airflow's folder of DAGs, found no folder")
    try:
        for name in DAG_FILES:
            file = folder / name
            if is_current(file):
                yield f"unchanged: {file}"
                continue
            done = "replaced" if file.exists() else "written"
            file.write_bytes(shipped(DAGS, name).read_bytes())
            yield f"{done}: {file}"
        (folder / CONTRACTS).mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: expected a folder that can be written to: {error.strerror}") from error
    yield f"contracts go into: {folder / CONTRACTS}"
