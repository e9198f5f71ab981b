"""The bytes that a run moves and holds: Spark's shuffles and spills, and the spills and memory of judging tasks.

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
    """Yield a mapping that is filled, when the block ends, with the bytes that it `shuffled`, `spilled` and held.

    `shuffled` and `spilled` are Spark's; `kernel_spilled` is the peak size of the folders of judging tasks, `worker`
    the peak memory of one Python worker.
    """
    sizes: dict[str, int] = {}
    before, ended = _of_stages(spark), Event()
    most = [0]

    def watch() -> None:
        while not ended.wait(_SECONDS):
            most[0] = max(most[0], _spilled_by_tasks())

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield sizes
    finally:
        ended.set()
        watching.join()
        sizes |= {name: value - before[name] for name, value in _of_stages(spark).items()}
        sizes |= {"kernel_spilled": most[0], "worker": workers_memory()}


def _of_stages(spark: SparkSession) -> dict[str, int]:
    """Return the bytes moved by all stages of the session; Spark forgets the oldest of very many."""
    context: Any = spark.sparkContext
    no_filter = context._jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(no_filter, False, False, quantiles, no_filter)
    all_stages = [stages.apply(number) for number in range(stages.size())]
    return {
        "shuffled": sum(stage.shuffleWriteBytes() for stage in all_stages),
        "spilled": sum(stage.diskBytesSpilled() for stage in all_stages),
    }


def _spilled_by_tasks() -> int:
    size = 0
    # Spark gives its Python workers its own folder below the one that the driver is given.
    for file in Path(settings.spill_folder()).glob("**/tieout-*/*"):
        with suppress(OSError):
            size += file.stat().st_size
    return size
