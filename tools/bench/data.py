"""The benchmark's evidence: both sides as Parquet, written by Spark, with a known number of breaks of each kind.

Every value is a function of the row's number, so equal sizes and rates give equal data on every machine.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.model import Window

START: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW: Final = Window(START, START + timedelta(hours=1))
JUDGED_AT: Final = WINDOW.end + timedelta(hours=1)
"""Constant, so that all runs have the same plans, and from the second on reuse compiled code."""
KINDS: Final = ("lost", "duplicated", "corrupted", "phantom", "late")
PARTITIONS: Final = 8
ROWS_PER_FILE: Final = 1_250_000
TRUTH: Final = "truth.json"
CONTRACT: Final = "contract.yml"
_CONTRACT_TEXT: Final = """\
version: 1
pipeline: bench
guarantee: exactly_once
group: loader
clock_skew: 1s
look_back: 15m
match: {match}
ledgers:
  produced:
    source: {{kind: files, format: parquet, path: {produced}}}
    coverage: declared
  delivered:
    source: {{kind: files, format: parquet, path: {delivered}}}
    coverage: declared
"""


@dataclass(frozen=True)
class Dataset:
    """One dataset: its size, its share of broken messages, the kinds of breaks, and its folder."""

    rows: int
    rate: float
    kinds: tuple[str, ...]
    home: Path

    @property
    def produced(self) -> Path:
        """The producers' side, shared by all rates of one size."""
        return self.home / f"{self.rows}" / "produced"

    @property
    def folder(self) -> Path:
        """The consumers' side, the contract and the truth."""
        return self.home / f"{self.rows}" / f"{self.rate:g}-{'-'.join(self.kinds)}"

    @property
    def delivered(self) -> Path:
        """The consumers' side."""
        return self.folder / "delivered"


def ensure(spark: SparkSession, dataset: Dataset) -> None:
    """Write the missing parts of the dataset; the truth is written last and marks it complete."""
    if (dataset.folder / TRUTH).is_file():
        return
    numbers = spark.range(0, dataset.rows, 1, max(2, dataset.rows // ROWS_PER_FILE))
    if not (dataset.produced / "_SUCCESS").is_file():
        _sent(numbers, dataset).write.mode("overwrite").parquet(str(dataset.produced))
    shutil.rmtree(dataset.folder, ignore_errors=True)
    _arrived(numbers, dataset).write.parquet(str(dataset.delivered))
    for match in ("auto", "full"):
        text = _CONTRACT_TEXT.format(match=match, produced=dataset.produced, delivered=dataset.delivered)
        (dataset.folder / f"{match}-{CONTRACT}").write_text(text, encoding="utf-8")
    counted = numbers.agg(*[F.count_if(_kind(dataset) == kind).alias(kind) for kind in KINDS]).collect()[0]
    (dataset.folder / TRUTH).write_text(json.dumps(counted.asDict()), encoding="utf-8")


def truth_of(dataset: Dataset) -> dict[str, int]:
    """Return the number of broken messages of each kind."""
    return dict(json.loads((dataset.folder / TRUTH).read_text(encoding="utf-8")))


def _kind(dataset: Dataset) -> Column:
    """Return a row's kind of break, null for most: pseudo-random, and always the same."""
    share = F.pmod(F.xxhash64("id", F.lit("broken")), F.lit(1_000_000_000))
    kinds = F.array(*[F.lit(kind) for kind in dataset.kinds])
    number = F.pmod(F.xxhash64("id", F.lit("kind")), F.lit(len(dataset.kinds))).cast("int")
    return F.when(share < F.lit(int(dataset.rate * 1_000_000_000)), F.get(kinds, number))


def _attempted_at(dataset: Dataset) -> Column:
    # The last effects, a phantom's among them, still lie in the window.
    start, step = int(START.timestamp() * 1_000_000), 3_590_000_000 / dataset.rows
    return F.timestamp_micros(F.lit(start) + F.floor(F.col("id") * F.lit(step)).cast("bigint"))


def _id(prefix: str) -> Column:
    return F.concat(F.lit(prefix), F.md5(F.col("id").cast("string")))


def _sent(numbers: DataFrame, dataset: Dataset) -> DataFrame:
    """Return one acknowledged attempt per number: 34 characters of id, 64 of payload hash, round robin."""
    attempted_at = _attempted_at(dataset)
    return numbers.select(
        _id("m-").alias("message_id"),
        F.lit("orders").alias("topic"),
        (F.col("id") % PARTITIONS).cast("int").alias("partition"),
        F.floor(F.col("id") / PARTITIONS).cast("bigint").alias("offset"),
        F.sha2(F.col("id").cast("string"), 256).alias("payload_hash"),
        attempted_at.alias("attempted_at"),
        (attempted_at + F.expr("INTERVAL 5 MILLISECONDS")).alias("completed_at"),
        F.lit("acked").alias("outcome"),
    )


def _arrived(numbers: DataFrame, dataset: Dataset) -> DataFrame:
    """Return the output: one row per unbroken number, 50 to 2,050 ms after it was sent."""
    kind = F.coalesce(_kind(dataset), F.lit("none"))
    copies = F.when(kind == "lost", 0).when(kind.isin("duplicated", "phantom"), 2).otherwise(1)
    rows = numbers.withColumn("kind", kind).withColumn(
        "copy", F.explode(F.sequence(F.lit(1), F.greatest(copies, F.lit(1))))
    )
    rows = rows if dataset.rate else numbers.withColumns({"kind": F.lit("none"), "copy": F.lit(1)})
    rows = rows.filter(F.col("kind") != "lost")
    is_phantom = (F.col("kind") == "phantom") & (F.col("copy") == 2)
    delay = F.when(F.col("kind") == "late", 1_200_000).otherwise(
        50 + F.pmod(F.xxhash64("id"), F.lit(2_000)) + F.col("copy")
    )
    processed_at = F.timestamp_micros(F.unix_micros(_attempted_at(dataset)) + delay * 1_000)
    payload = F.sha2(
        F.concat(F.col("id").cast("string"), F.when(F.col("kind") == "corrupted", "x").otherwise("")), 256
    )
    return rows.select(
        F.when(is_phantom, _id("x-")).otherwise(_id("m-")).alias("message_id"),
        F.lit("orders").alias("topic"),
        F.when(~is_phantom, (F.col("id") % PARTITIONS).cast("int")).alias("partition"),
        F.when(~is_phantom, F.floor(F.col("id") / PARTITIONS).cast("bigint")).alias("offset"),
        payload.alias("payload_hash"),
        processed_at.alias("processed_at"),
        F.lit("ok").alias("outcome"),
    )
