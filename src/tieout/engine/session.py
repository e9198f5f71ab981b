"""Spark sessions: the local one for the command line, and the settings every run relies on."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "16m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""What a run sets where the submitter did not: UTC, ANSI arithmetic, loopback only."""


def local_session(app_name: str) -> SparkSession:
    """Return a Spark session on this machine, or the active one, with the settings that the engine relies on."""
    builder = SparkSession.builder.appName(app_name).master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
