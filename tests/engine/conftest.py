"""The one Spark session that all tests of the engine share: starting it costs more than most tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tieout import settings
from tieout.engine.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that the command line has for little evidence, with what reads Kafka topics."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = local_session("tieout-tests", settings.jars({"kafka"}), evidence_bytes=0)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
