"""Both sides of a window, read once and held against each other bucket by bucket.

Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import add
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.fingerprint import BUCKET, STANDARD, SUMS, Side, Widths, buckets_of, compared_columns
from tieout.engine.materialising import materialised
from tieout.model import Ledger, Window

SIDES: Final = (Ledger.PRODUCED, Ledger.DELIVERED)


@dataclass(frozen=True)
class Compared:
    """Both sides of a window, read once: their buckets, each side's and together, and the counts taken on the way.

    `together` has one row a bucket: `is_dirty` where the sides differ, a position stands twice or a row is not plain;
    `is_unclear` where only times are in question: a message may be late, or belong to another window. `columns` are
    those that were compared.
    """

    sent: DataFrame
    arrived: DataFrame
    together: DataFrame
    counts: Mapping[Ledger, Mapping[str, int]]
    columns: tuple[str, ...]
    widths: Widths


def compare(
    contract: Contract, window: Window, produced: Side, delivered: Side, widths: Widths = STANDARD
) -> Compared:
    """Read each side once, and return their buckets; the rows are not kept."""
    columns = compared_columns(produced.present, delivered.present)
    buckets, counts = {}, {}
    for ledger, side in zip(SIDES, (produced, delivered), strict=True):
        rows = buckets_of(side, ledger, contract, window, columns, widths)
        buckets[ledger] = materialised(rows)
        totals = [F.coalesce(F.sum(f"counted_{name}"), F.lit(0)).alias(name) for name in side.counted]
        counts[ledger] = buckets[ledger].agg(*totals).collect()[0].asDict() if totals else {}
    sent, arrived = (buckets[ledger] for ledger in SIDES)
    patience = contract.max_latency + contract.clock_skew
    return Compared(sent, arrived, materialised(_together(sent, arrived, patience)), counts, columns, widths)


def _together(sent: DataFrame, arrived: DataFrame, patience: timedelta) -> DataFrame:
    """Return one row a bucket of both sides: what is left of it when one side is taken from the other."""
    is_sent, is_plain = F.col("sign") == 1, F.col("is_plain")
    words = [name for name in sent.columns if name.startswith("word_")]
    positions = reduce(add, (F.bit_count(name) for name in words))
    left = {
        name: F.sum(F.when(is_plain, F.col("sign") * F.col(name)).otherwise(0)) for name in ("rows", *SUMS)
    }
    merged = (
        sent.withColumns({"sign": F.lit(1), "done_at": F.col("earliest")})
        .unionByName(
            arrived.withColumns({"sign": F.lit(-1), "seen_at": F.col("latest")}), allowMissingColumns=True
        )
        .groupBy(*BUCKET)
        .agg(
            F.array(*left.values()).alias("left"),
            F.sum("rough").alias("rough"),
            F.bool_or(is_plain & (F.col("rows") != positions)).alias("is_repeated"),
            F.coalesce(F.sum(F.when(is_sent & is_plain, F.col("rows"))), F.lit(0)).alias("sent"),
            F.coalesce(F.sum(F.when(is_sent & is_plain, F.col("inside"))), F.lit(0)).alias("owned"),
            F.min(F.when(is_plain, F.col("done_at"))).alias("done_at"),
            F.max(F.when(is_plain, F.col("seen_at"))).alias("seen_at"),
            F.sum(F.when(is_plain & is_sent, F.col("micros"))).alias("done_micros"),
            F.sum(F.when(is_plain & ~is_sent, F.col("micros"))).alias("seen_micros"),
            F.max(F.when(is_plain & is_sent, F.col("sample"))).alias("done_sample"),
            F.max(F.when(is_plain & ~is_sent, F.col("sample"))).alias("seen_sample"),
        )
    )
    is_left = F.exists("left", lambda difference: difference != 0)
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(patience), F.lit(False))
    is_split = (F.col("owned") > 0) & (F.col("owned") < F.col("sent"))
    return merged.withColumns(
        {
            "is_dirty": is_left | (F.col("rough") > 0) | F.col("is_repeated"),
            "is_unclear": ((F.col("sent") > 0) & ~is_in_time) | is_split,
        }
    )
