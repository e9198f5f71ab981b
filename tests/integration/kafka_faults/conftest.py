"""The faults, played once for all tests, and one Spark session to judge what they left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import spark
from tests.integration.kafka_faults.report import page_of
from tests.integration.kafka_faults.selection import ALL, IS_LEFT_OUT, VARIABLE, requested_values
from tests.integration.report import Line, table_of
from tools.record.__main__ import POM, VENV, prepared

__all__ = ["spark"]

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 1_800


@pytest.fixture(scope="session")
def began() -> float:
    """When the first fault was asked for, in seconds of the monotonic clock."""
    return time.monotonic()


@pytest.fixture(scope="session")
def played(began: float, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder with the evidence and the truth of every fault that a selected test asks for."""
    if IS_LEFT_OUT:
        pytest.skip(f"NOT TESTED, no fault is struck: {VARIABLE}=none")
    missing = prepared()
    if missing:
        pytest.fail(f"no broker to strike: {missing}; or leave these tests out with {VARIABLE}=none")
    folder = tmp_path_factory.mktemp("kafka_faults")
    command = [str(VENV / "bin" / "python"), "-m", "tests.integration.kafka_faults.playing", str(folder)]
    done = subprocess.run(
        [*command, *sorted(requested_values(request.session.items, "topic"))],
        cwd=ROOT,
        stdout=sys.__stderr__,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"the faults were not played: exit {done.returncode}")
    return folder


@pytest.fixture(scope="session")
def lines(began: float, request: pytest.FixtureRequest) -> Iterator[list[Line]]:
    """What was judged, printed as a table at the end, and written as a page where TIEOUT_FAULTS_PAGE names one.

    The page is that of a whole run in which everything was found as expected; else it stays as it is.
    """
    found: list[Line] = []
    yield found
    print(f"\n{table_of(found)}", file=sys.__stderr__)
    page = os.environ.get("TIEOUT_FAULTS_PAGE")
    if page and not request.session.testsfailed and {line.name for line in found} == set(ALL):
        (version,) = re.findall(r"<kafka.version>(.+)</kafka.version>", POM.read_text())
        text = page_of(found, version, datetime.now(UTC).date(), time.monotonic() - began)
        Path(page).write_text(text)


@pytest.fixture(scope="session")
def truth(played: Path) -> dict[str, Any]:
    """What the player knew."""
    document: dict[str, Any] = json.loads((played / "cases.json").read_text())
    return document
