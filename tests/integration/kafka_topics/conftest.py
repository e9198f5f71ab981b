"""The broker, started once, and the shared Spark session."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.conftest import spark as any_session
from tests.integration.kafka_faults.selection import IS_LEFT_OUT, VARIABLE
from tests.integration.kafka_topics.sent import PASSWORD, USER
from tools.record.__main__ import VENV, prepared

from tieout import settings
from tieout.engine.session import suited_to

__all__ = ["any_session"]

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 300


@dataclass(frozen=True)
class Served:
    """Where the broker is, without and with a login, and where it keeps its data."""

    bootstrap: str
    secured: str
    authority: str
    data: Path


@pytest.fixture(scope="session")
def spark(any_session: SparkSession) -> Iterator[SparkSession]:
    """The shared session as a command has it for little evidence: compiling what runs once takes longest."""
    with suited_to(any_session, is_small=True):
        yield any_session


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A real broker with filled topics, see serving.py."""
    if IS_LEFT_OUT:
        pytest.skip(f"NOT TESTED, no broker is started: {VARIABLE}=none")
    missing = prepared() or (None if settings.jars({"kafka"}) else "needs the jars of `make jars`")
    if missing:
        pytest.fail(f"no topic to read: {missing}; or leave these tests out with {VARIABLE}=none")
    folder = tmp_path_factory.mktemp("kafka_topics")
    command = [str(VENV / "bin" / "python"), "-m", "tests.integration.kafka_topics.serving", str(folder)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.__stderr__, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            pytest.fail(f"the broker was not filled: exit {process.wait(_PATIENCE)}")
        found = json.loads(line)
        yield Served(found["bootstrap"], found["secured"], found["authority"], Path(found["data"]))
    finally:
        process.stdin.close()
        process.wait(_PATIENCE)


@pytest.fixture
def connected(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The broker, with a connection to it and one that logs in over TLS."""
    plain = {"conn_type": "kafka", "extra": {"bootstrap.servers": served.bootstrap, "group.id": "ignored"}}
    secured = {
        "conn_type": "kafka",
        "extra": {
            "bootstrap.servers": served.secured,
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": served.authority,
        },
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PLAIN", json.dumps(plain))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SECURED", json.dumps(secured))
    return served
