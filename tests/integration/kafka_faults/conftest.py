"""The faults, played once for all tests, and one Spark session to judge what they left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripts.record.__main__ import POM, VENV, prepared
from tests.engine.conftest import spark
from tests.integration.kafka_faults.report import Line, page_of, table_of

__all__ = ["spark"]

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 1_800


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder with the evidence and the truth of every fault that a selected test asks for."""
    missing = prepared()
    if missing and os.environ.get("CI"):
        pytest.fail(f"no broker to strike: {missing}")
    if missing:
        pytest.skip(f"NOT TESTED, no broker to strike: {missing}")
    folder = tmp_path_factory.mktemp("kafka_faults")
    command = [str(VENV / "bin" / "python"), "-m", "tests.integration.kafka_faults.playing", str(folder)]
    done = subprocess.run(
        [*command, *_selected(request.session.items)],
        cwd=ROOT,
        stdout=sys.__stderr__,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"the faults were not played: exit {done.returncode}")
    return folder


@pytest.fixture(scope="session")
def lines() -> Iterator[list[Line]]:
    """What was judged, printed as a table at the end, and written as a page where TIEOUT_FAULTS_PAGE names one."""
    found: list[Line] = []
    yield found
    print(f"\n{table_of(found)}", file=sys.__stderr__)
    page = os.environ.get("TIEOUT_FAULTS_PAGE")
    if page:
        (version,) = re.findall(r"<kafka.version>(.+)</kafka.version>", POM.read_text())
        Path(page).write_text(page_of(found, version))


def _selected(items: Sequence[pytest.Item]) -> list[str]:
    """Return the names of the topics that the selected tests are about."""
    return sorted(
        {item.callspec.params["topic"] for item in items if "played" in getattr(item, "fixturenames", ())}
    )


@pytest.fixture(scope="session")
def truth(played: Path) -> dict[str, Any]:
    """What the player knew."""
    document: dict[str, Any] = json.loads((played / "cases.json").read_text())
    return document
