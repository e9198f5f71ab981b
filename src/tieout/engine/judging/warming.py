"""Starts an executor's Python worker while the ledgers are still being read.

Spark starts a Python process for the first task that needs one, and keeps it for the next tasks. Starting it and
importing the kernel takes as long as judging a small window, and the driver has other work meanwhile.
Source: `spark.python.worker.reuse` in "Configuration" of Spark's guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Thread

import pyarrow as pa
from pyspark.sql import SparkSession

import tieout.engine.judging.task  # noqa: F401 - the worker that runs `_as_they_are` imports it with this module


def warm_up(spark: SparkSession) -> Thread:
    """Let one Python worker import the kernel; return the thread that waits for it.

    What fails here fails again where a window is judged, and is reported there.
    """
    waiting = Thread(target=_warmed_up, args=(spark,), daemon=True)
    waiting.start()
    return waiting


def _warmed_up(spark: SparkSession) -> None:
    with suppress(Exception):
        spark.range(1, numPartitions=1).mapInArrow(_as_they_are, "id long").collect()


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
