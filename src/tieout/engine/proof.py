"""Proof: the canonical rows behind each break, at most twenty of a ledger.

Docs: docs/reference/contract.md, `breaks.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.model import Ledger

ROWS_PER_LEDGER: Final = 20
_POSITION: Final = {"topic": "string", "partition": "int", "offset": "bigint"}


def with_proof_rows(breaks: DataFrame, keyed: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return breaks with `evidence`: per ledger the rows of the break's message or at its positions, oldest first.

    A break of a message is proved by the message's rows, any other by what lies at its positions; a break of a commit
    by the commits in `commit_rows` as well.
    """
    result = breaks
    wanted = _wanted(breaks)
    for ledger, rows in keyed.items():
        result = result.join(
            _rows_of(ledger, rows, wanted), F.col("break_id") == F.col("proof_id"), how="left"
        )
        result = result.drop("proof_id")
    of_ledgers = [F.col(f"proof_{ledger.value}").alias(ledger.value) for ledger in keyed]
    evidence = F.struct(*of_ledgers, F.col("commit_rows").alias(Ledger.COMMITTED.value))
    return result.withColumn("evidence", evidence).drop(*[f"proof_{ledger.value}" for ledger in keyed])


def _wanted(breaks: DataFrame) -> DataFrame:
    """Return what each break's rows are found by: `wanted_key`, or a position, beside `proof_id`."""
    by_key = breaks.filter(F.col("key").isNotNull()).select(
        F.col("break_id").alias("proof_id"),
        F.col("key").alias("wanted_key"),
        *[F.lit(None).cast(kind).alias(f"wanted_{name}") for name, kind in _POSITION.items()],
    )
    at = breaks.filter(F.col("key").isNull()).select("break_id", F.explode("positions").alias("at"))
    by_position = at.select(
        F.col("break_id").alias("proof_id"),
        F.lit(None).cast("string").alias("wanted_key"),
        *[F.col("at")[name].alias(f"wanted_{name}") for name in _POSITION],
    )
    return by_key.unionByName(by_position)


def _found_by(wanted: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the rows that a break asks for, with its `proof_id`."""
    by_key = wanted.filter(F.col("wanted_key").isNotNull())
    by_position = wanted.filter(F.col("wanted_key").isNull())
    of_key = rows.join(by_key, F.col("key") == F.col("wanted_key"), how="inner")
    is_there = same(_POSITION, "wanted_") & F.col("offset").isNotNull()
    return of_key.unionByName(rows.join(by_position, is_there, how="inner"))


def _rows_of(ledger: Ledger, rows: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return per break its first rows in the ledger, as one array named after the ledger."""
    canonical = [name for name in SCHEMAS[ledger].names if name in rows.columns]
    content = F.struct(*canonical)
    oldest = Window.partitionBy("proof_id").orderBy(
        F.col(TIME_COLUMN[ledger]).asc_nulls_last(), F.xxhash64(F.to_json(content))
    )
    placed = _found_by(wanted, rows).withColumn("place", F.row_number().over(oldest))
    first = placed.filter(F.col("place") <= ROWS_PER_LEDGER).select(
        "proof_id", F.struct("place", content.alias("row")).alias("entry")
    )
    ordered = F.transform(F.array_sort(F.collect_list("entry")), lambda entry: entry["row"])
    return first.groupBy("proof_id").agg(ordered.alias(f"proof_{ledger.value}"))
