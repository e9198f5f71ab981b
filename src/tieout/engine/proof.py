"""Proof: the canonical rows behind each break, at most twenty of a ledger.

Docs: docs/reference/contract.md, `breaks.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.model import Ledger

ROWS_PER_LEDGER: Final = 20


def with_proof_rows(breaks: DataFrame, keyed: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return breaks with `evidence`: per ledger the rows that carry the break's message key, oldest first."""
    keys = breaks.filter(F.col("key").isNotNull()).select(F.col("key").alias("break_key")).distinct()
    result = breaks
    for ledger, rows in keyed.items():
        proof = _rows_of(ledger, rows, keys)
        result = result.join(proof, F.col("key") == F.col("proof_key"), how="left").drop("proof_key")
    if not keyed:
        return breaks.withColumn("evidence", F.struct(F.lit(None).cast("string").alias("produced")))
    evidence = F.struct(*[F.col(f"proof_{ledger.value}").alias(ledger.value) for ledger in keyed])
    return result.withColumn("evidence", evidence).drop(*[f"proof_{ledger.value}" for ledger in keyed])


def _rows_of(ledger: Ledger, rows: DataFrame, keys: DataFrame) -> DataFrame:
    """Return per broken key its first rows in the ledger, as one array named after the ledger."""
    canonical = [name for name in SCHEMAS[ledger].names if name in rows.columns]
    wanted = rows.join(keys, F.col("key") == F.col("break_key"), how="left_semi")
    content = F.struct(*canonical)
    oldest = Window.partitionBy("key").orderBy(
        F.col(TIME_COLUMN[ledger]).asc_nulls_last(), F.xxhash64(F.to_json(content))
    )
    first = wanted.withColumn("place", F.row_number().over(oldest)).filter(F.col("place") <= ROWS_PER_LEDGER)
    ordered = F.array_sort(F.collect_list(F.struct("place", content.alias("row"))))
    return (
        first.groupBy(F.col("key").alias("proof_key"))
        .agg(ordered.alias("rows"))
        .select("proof_key", F.transform("rows", lambda r: r["row"]).alias(f"proof_{ledger.value}"))
    )
