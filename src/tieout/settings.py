"""What the environment says: the only place where Tieout reads environment variables."""

from __future__ import annotations

import os
from pathlib import Path

from tieout.errors import UsageError

DATABASE_URL = "TIEOUT_DATABASE_URL"
CONTRACTS = "TIEOUT_CONTRACTS"
HOME = "TIEOUT_HOME"
RESULT_PATH = "TIEOUT_RESULT_PATH"
_DEFAULT_CONTRACTS = Path("dags") / "contracts"


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


def contract_folders() -> tuple[Path, ...]:
    """Return the folders whose `*.yml` files are contracts, `dags/contracts` where nothing else is said."""
    named = os.environ.get(CONTRACTS)
    if not named:
        return (_DEFAULT_CONTRACTS,)
    return tuple(Path(folder) for folder in named.split(os.pathsep) if folder)


def home() -> Path:
    """Return the folder that takes the statements, `.tieout` of the working directory unless told otherwise."""
    return Path(os.environ.get(HOME) or ".tieout").absolute()


def result_path() -> Path | None:
    """Return where a Spark job writes its small result for the task that started it, or None."""
    named = os.environ.get(RESULT_PATH)
    return Path(named) if named else None


def connection_text(name: str) -> str | None:
    """Return the Airflow connection `name` as its environment variable has it, JSON or URI, or None."""
    return os.environ.get(f"AIRFLOW_CONN_{name.upper()}") or None
