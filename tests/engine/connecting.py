"""A Spark Connect session: the engine is the same there, and its thousands of columns cost no call into the JVM each.

A process has either a classic session or one of Spark Connect.
"""

from __future__ import annotations

import os
import sys

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tieout.engine.session import SETTINGS
from tieout.java_options import java_options_for


def connected_session() -> SparkSession:
    """Return a session of a Spark Connect server on this machine's loopback.

    Raises:
        RuntimeError: where a classic session runs in this process.
    """
    if SparkSession.getActiveSession() is not None:
        raise RuntimeError("a classic Spark session runs in this process: Spark Connect needs one of its own")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # As for other windows with little evidence; Spark Connect takes the Java that runs.
    gateway = launch_gateway(  # type: ignore[no-untyped-call]
        SparkConf().set("spark.driver.extraJavaOptions", java_options_for(0))
    )
    SparkContext._ensure_initialized(gateway=gateway)
    # PySpark takes a free port where this is set, else always 15002; Java, which started above, does not see it.
    os.environ["SPARK_TESTING"] = "1"
    builder = SparkSession.builder.remote("local[2]")
    for name, value in (SETTINGS | {"spark.connect.grpc.binding.address": "127.0.0.1"}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
