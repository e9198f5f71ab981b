"""What the tests of the DAGs share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dags import home


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """The environment as it was before: parsing for one task leaves its DAG's name in it, for every child process."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def contracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of contracts that the DAG files read."""
    folder = tmp_path / "contracts"
    folder.mkdir()
    monkeypatch.setenv("TIEOUT_CONTRACTS", str(folder))
    return folder


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """A migrated database of Airflow's, which `dag.test` needs."""
    from airflow.utils.db import initdb  # noqa: PLC0415 - only after `home` prepared the environment

    assert home.HOME.exists()

    initdb()
