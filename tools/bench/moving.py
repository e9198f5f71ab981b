"""What a run moves and holds: bytes that Spark shuffles and spills, and what the task that judges spills and holds.

Sources: `AppStatusStore.stageList` of apache/spark, branch 4.1, which the web interface reads; `VmHWM` in proc(5).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from pyspark.sql import SparkSession

from tieout import settings
from tools.bench.measuring import workers_memory

_SECONDS: Final = 0.25


@contextmanager
def moved(spark: SparkSession) -> Iterator[dict[str, int]]:
    """Yield what is filled, when the block ends, with the bytes that it `shuffled`, `spilled` and held.

    `shuffled` and `spilled` are Spark's; `kernel_spilled` is the most that lay in the folders of the tasks that judge,
    `worker` the most that one Python worker has held since it began.
    """
    found: dict[str, int] = {}
    before, ended = _of_stages(spark), Event()
    most = [0]

    def watch() -> None:
        while not ended.wait(_SECONDS):
            most[0] = max(most[0], _spilled_by_tasks())

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()
        found |= {name: value - before[name] for name, value in _of_stages(spark).items()}
        found |= {"kernel_spilled": most[0], "worker": workers_memory()}


def _of_stages(spark: SparkSession) -> dict[str, int]:
    """Return what all stages of the session moved so far; the oldest of very many are forgotten."""
    context: Any = spark.sparkContext
    nothing = context._jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(nothing, False, False, quantiles, nothing)
    every = [stages.apply(number) for number in range(stages.size())]
    return {
        "shuffled": sum(stage.shuffleWriteBytes() for stage in every),
        "spilled": sum(stage.diskBytesSpilled() for stage in every),
    }


def _spilled_by_tasks() -> int:
    size = 0
    # Spark gives its Python workers its own folder below the one that the driver is given.
    for file in Path(settings.spill_folder()).glob("**/tieout-*/*"):
        with suppress(OSError):
            size += file.stat().st_size
    return size
