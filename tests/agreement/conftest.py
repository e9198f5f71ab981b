"""A Spark Connect session, in a process of its own: run `pytest tests/agreement` by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.engine.connecting import connected_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of a Spark Connect server on this machine's loopback."""
    session = connected_session()
    yield session
    session.stop()
