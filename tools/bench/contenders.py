"""What is measured: each way of comparing the two sides, as a function that returns how many breaks it found.

`floor` finds nothing: it reads both sides and hashes every row, which is the least that Spark can do. The others
find what is missing from the output, what should not be there, what differs and what is there too often; only Tieout
knows what is late.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tools.bench.measuring import cpu_seconds, peak_memory

Answer = dict[str, int]
Contender = Callable[[int], Any]
"""Takes the bytes that all runs read in total; returns a context whose `Run` may be called many times."""
Run = Callable[[Path, Path], Answer]
_LOW: Final = 0xFFFFFFFF


@contextmanager
def _spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a contender loads its own library alone

    builder = SparkSession.builder.appName("bench").master("local[*]")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


_SPARK: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@contextmanager
def floor(_evidence_bytes: int) -> Iterator[Run]:
    """Both sides read and hashed in Spark, nothing compared."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    with _spark() as spark:

        def run(produced: Path, folder: Path) -> Answer:
            for side in (produced, folder / "delivered"):
                rows = spark.read.parquet(str(side))
                rows.agg(F.sum(F.xxhash64(*rows.columns).bitwiseAND(_LOW))).collect()
            return {}

        yield run


@contextmanager
def join(_evidence_bytes: int) -> Iterator[Run]:
    """The plain full outer join in Spark SQL, each side aggregated by id first."""
    with _spark() as spark:

        def run(produced: Path, folder: Path) -> Answer:
            spark.read.parquet(str(produced)).createOrReplaceTempView("produced")
            spark.read.parquet(str(folder / "delivered")).createOrReplaceTempView("delivered")
            return dict(spark.sql(_JOIN).collect()[0].asDict())

        yield run


_JOIN: Final = """
    WITH p AS (SELECT message_id, count(*) AS copies, max(payload_hash) AS payload FROM produced GROUP BY message_id),
         d AS (SELECT message_id, count(*) AS copies, max(payload_hash) AS payload FROM delivered GROUP BY message_id)
    SELECT count(CASE WHEN d.message_id IS NULL THEN 1 END) AS lost,
           count(CASE WHEN p.message_id IS NULL THEN 1 END) AS phantom,
           count(CASE WHEN p.payload <> d.payload THEN 1 END) AS corrupted,
           count(CASE WHEN p.message_id IS NOT NULL AND d.copies > 1 THEN 1 END) AS duplicated
    FROM p FULL OUTER JOIN d ON p.message_id = d.message_id
"""


@contextmanager
def datacompy(_evidence_bytes: int) -> Iterator[Run]:
    """The comparison of datacompy on Spark, joined by id; it counts a further effect among the unexpected rows."""
    from datacompy.spark import SparkSQLCompare  # type: ignore[import-not-found] # noqa: PLC0415

    with _spark() as spark:

        def run(produced: Path, folder: Path) -> Answer:
            sides = [spark.read.parquet(str(side)) for side in (produced, folder / "delivered")]
            produced_rows, delivered_rows = (side.select("message_id", "payload_hash") for side in sides)
            compared = SparkSQLCompare(spark, produced_rows, delivered_rows, join_columns="message_id")
            rows = compared.intersect_rows
            return {
                "lost": compared.df1_unq_rows.count(),
                "phantom_or_duplicated": compared.df2_unq_rows.count(),
                "corrupted": rows.filter("NOT payload_hash_match").count(),
            }

        yield run


def _duckdb(query: str) -> Contender:
    @contextmanager
    def contender(_evidence_bytes: int) -> Iterator[Run]:
        import duckdb  # noqa: PLC0415

        memory = os.environ.get("SPARK_DRIVER_MEMORY", "6g")
        with TemporaryDirectory() as spill:
            settings: dict[str, str | bool | int | float | list[str]] = {
                "threads": 2,
                "memory_limit": f"{memory.removesuffix('g')}GB",
                "temp_directory": spill,
            }
            connection = duckdb.connect(config=settings)

            def run(produced: Path, folder: Path) -> Answer:
                for name, side in (("produced", produced), ("delivered", folder / "delivered")):
                    connection.read_parquet(f"{side}/*.parquet").create_view(name, replace=True)
                names = ("lost", "phantom", "corrupted", "duplicated")
                return dict(zip(names, connection.sql(query).fetchall()[0], strict=True))

            yield run
            connection.close()

    return contender


_HASHED: Final = (
    _JOIN.replace("message_id, count(*)", "hash(message_id) AS message_id, count(*)")
    .replace("max(payload_hash)", "max(hash(payload_hash))")
    .replace("GROUP BY message_id", "GROUP BY 1")
)


def _tieout(match: str) -> Contender:
    @contextmanager
    def contender(evidence_bytes: int) -> Iterator[Run]:
        from tieout.contracts import load_contract  # noqa: PLC0415
        from tieout.engine.reconciling import reconcile  # noqa: PLC0415
        from tieout.engine.session import local_session  # noqa: PLC0415
        from tieout.engine.staging import write_output  # noqa: PLC0415
        from tieout.reporting.page import render_html  # noqa: PLC0415
        from tools.bench.data import JUDGED_AT, WINDOW  # noqa: PLC0415
        from tools.bench.moving import moved  # noqa: PLC0415

        spark = local_session("bench", evidence_bytes=evidence_bytes)

        def run(_produced: Path, folder: Path) -> Answer:
            contract = load_contract(folder / f"{match}-contract.yml")
            with TemporaryDirectory() as output, moved(spark) as bytes_moved:
                reconciliation = reconcile(
                    spark, contract, WINDOW, run_id="bench", now=JUDGED_AT, progress=_print_step
                )
                _print_step("writing")
                write_output(reconciliation, Path(output) / "statement", render_html)
            print(json.dumps({"moved": bytes_moved}), flush=True)
            flags = reconciliation.statement["flags"]
            return {kind: sum(flags.get(name, 0) for name in names) for kind, names in _FLAGS_OF_KIND.items()}

        yield run
        spark.stop()

    return contender


_FLAGS_OF_KIND: Final = {
    "lost": ("LOST", "OVERDUE"),
    "duplicated": ("OUTPUT_DUPLICATE",),
    "corrupted": ("CORRUPTED_VALUE",),
    "phantom": ("PHANTOM_UNKNOWN",),
    "late": ("LATE",),
}
"""Tieout's flags for each kind of break.

A lost message at the end of its partition is overdue for Tieout: no later message proves that the consumer passed it.
"""
CONTENDERS: Final[dict[str, Contender]] = {
    "floor": floor,
    "tieout": _tieout("auto"),
    "tieout-full": _tieout("full"),
    "join": join,
    "datacompy": datacompy,
    "duckdb": _duckdb(_JOIN),
    "duckdb-hashes": _duckdb(_HASHED),
}
IN_BENCH_ENVIRONMENT: Final = frozenset({"datacompy", "duckdb", "duckdb-hashes"})
"""Contenders that are not in Tieout's environment and run in the benchmark's own."""


def _print_step(step: str) -> None:
    print(json.dumps({"step": step, "at": time.monotonic()}), flush=True)


def main() -> None:
    """Run one contender a number of times, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=CONTENDERS)
    parser.add_argument("produced", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repeats", type=int)
    options = parser.parse_args()
    sides = (options.produced, options.folder / "delivered")
    size = sum(file.stat().st_size for side in sides for file in side.iterdir())
    with CONTENDERS[options.name](options.repeats * size) as run:
        for _ in range(options.repeats):
            _print_step("start")
            cpu, started = cpu_seconds(), time.monotonic()
            answer = run(options.produced, options.folder)
            seconds = time.monotonic() - started
            _print_step("end")
            result = {
                "seconds": seconds,
                "cpu": cpu_seconds() - cpu,
                "memory": peak_memory(),
                "answer": answer,
            }
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
