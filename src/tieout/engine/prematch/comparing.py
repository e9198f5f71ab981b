"""Reads both sides of a window and the log between them, each once, and compares them bucket by bucket.

Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.materialising import materialised
from tieout.engine.prematch.early import comes_before
from tieout.engine.prematch.fingerprint import (
    BUCKET,
    PAIRS,
    PARTS,
    STANDARD,
    SUMS,
    LedgerRows,
    Shared,
    Widths,
    buckets_of,
    compared_columns,
)
from tieout.model import Ledger, Window

SIDES: Final = (Ledger.PRODUCED, Ledger.DELIVERED)
COMPARED_LEDGERS: Final = (*SIDES, Ledger.LOG)
"""Both sides, and the log, where it is declared."""


@dataclass(frozen=True)
class Compared:
    """The buckets of a window, each side's and both together, and the counts from the same scan.

    `together` has one row per bucket. `is_dirty`: the sides differ, a position occurs twice or a row is not plain.
    `is_unclear`: only times are in question, as a message may be late, delivered before it was sent, or of another
    window. `columns` are those that were compared, per pair of ledgers.
    """

    sent: DataFrame
    arrived: DataFrame
    together: DataFrame
    counts: Mapping[Ledger, Mapping[str, int]]
    columns: Shared
    widths: Widths


def compare(
    contract: Contract, window: Window, sides: Mapping[Ledger, LedgerRows], widths: Widths = STANDARD
) -> Compared:
    """Return the buckets of both sides, and of the log where it is declared: each is read once, and not kept."""
    columns = compared_columns({ledger: side.present for ledger, side in sides.items()})
    buckets, counts = {}, {}
    for ledger, side in sides.items():
        rows = buckets_of(side, ledger, contract, window, columns, widths)
        buckets[ledger] = materialised(rows)
        totals = [F.coalesce(F.sum(f"counted_{name}"), F.lit(0)).alias(name) for name in side.counted]
        counts[ledger] = buckets[ledger].agg(*totals).collect()[0].asDict() if totals else {}
    sent, arrived = (buckets[ledger] for ledger in SIDES)
    together = materialised(_together(buckets, list(columns), contract))
    return Compared(sent, arrived, together, counts, columns, widths)


def counted(side: LedgerRows) -> dict[str, int]:
    """Return the values of a side's `counted`, for which its rows are read once; nothing where it has none."""
    totals = [column.alias(name) for name, column in side.counted.items()]
    return side.rows.agg(*totals).collect()[0].asDict() if totals else {}


def _together(buckets: Mapping[Ledger, DataFrame], pairs: Sequence[str], contract: Contract) -> DataFrame:
    """Return one row per bucket, with the differences between the ledgers of each pair, `is_dirty` and `is_unclear`."""
    is_plain = F.col("is_plain")
    of_sent, of_seen = (is_plain & (F.col("of") == ledger.value) for ledger in SIDES)
    words = [name for name in buckets[Ledger.PRODUCED].columns if name.startswith("word_")]
    positions = reduce(add, (F.bit_count(name) for name in words))
    labelled = [rows.withColumn("of", F.lit(ledger.value)) for ledger, rows in buckets.items()]
    merged = (
        reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), labelled)
        .groupBy(*BUCKET)
        .agg(
            F.array(*[difference for prefix in pairs for difference in _differences(prefix)]).alias(
                "differences"
            ),
            F.sum("rough").alias("rough"),
            F.bool_or(is_plain & (F.col("rows") != positions)).alias("is_repeated"),
            F.coalesce(F.sum(F.when(of_sent, F.col("rows"))), F.lit(0)).alias("sent"),
            F.coalesce(F.sum(F.when(of_sent, F.col("inside"))), F.lit(0)).alias("owned"),
            F.min(F.when(of_sent, F.col("earliest"))).alias("done_at"),
            F.max(F.when(of_seen, F.col("latest"))).alias("seen_at"),
            *[F.max(F.when(of_sent, F.col(f"began_{part}"))).alias(f"began_{part}") for part in range(PARTS)],
            *[F.min(F.when(of_seen, F.col(f"seen_{part}"))).alias(f"seen_{part}") for part in range(PARTS)],
            F.try_sum(F.when(of_sent, F.col("micros"))).alias("done_micros"),
            F.try_sum(F.when(of_seen, F.col("micros"))).alias("seen_micros"),
            F.max(F.when(of_sent, F.col("sample"))).alias("done_sample"),
            F.max(F.when(of_seen, F.col("sample"))).alias("seen_sample"),
        )
    )
    is_different = F.exists("differences", lambda difference: difference != 0)
    allowed_latency = contract.max_latency + contract.clock_skew
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(allowed_latency), F.lit(False))
    for part in range(PARTS):
        is_in_time &= ~comes_before(contract, F.col(f"seen_{part}"), F.col(f"began_{part}"))
    is_split = (F.col("owned") > 0) & (F.col("owned") < F.col("sent"))
    return merged.withColumns(
        {
            "is_dirty": is_different | (F.col("rough") > 0) | F.col("is_repeated"),
            "is_unclear": ((F.col("sent") > 0) & ~is_in_time) | is_split,
        }
    )


def _differences(prefix: str) -> list[Column]:
    """Return the differences between a pair's ledgers: in the number of plain rows, and in each sum over them."""
    one, other = PAIRS[prefix]
    sign = F.when(F.col("of") == one.value, 1).when(F.col("of") == other.value, -1)
    values = (F.col("rows"), *[F.col(f"{prefix}{name}") for name in SUMS])
    return [F.coalesce(F.sum(F.when(F.col("is_plain"), sign * value)), F.lit(0)) for value in values]
