"""Proof: the canonical rows that prove each break, at most twenty per ledger.

Docs: docs/reference/contract.md, `breaks.jsonl`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same, small_side
from tieout.engine.keys import POSITION
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import POSITION_LEDGERS, Ledger

ROWS_PER_LEDGER: Final = 20
_COMMIT_ROWS: Final = (
    "array<struct<topic:string,partition:int,first_offset:bigint,committed_offset:bigint,committed_at:timestamp,"
    "metadata:string>>"
)
PROVING: Final = (
    Ledger.PRODUCED,
    Ledger.LOG,
    Ledger.READ,
    Ledger.DELIVERED,
    Ledger.FILTERED,
    Ledger.DEAD_LETTERS,
    Ledger.STAGED,
)
"""The ledgers whose rows prove breaks, in their order in `evidence`; commits follow."""


def evidence_type(declared: Collection[Ledger]) -> str:
    """Return the Spark type of `evidence`: rows of the declared ledgers, and commits of the position ledgers."""
    rows = [f"{one.value}:array<{SCHEMAS[one].simpleString()}>" for one in PROVING if one in declared]
    commits = [f"{one.value}:{_COMMIT_ROWS}" for one in POSITION_LEDGERS]
    return f"struct<{','.join(rows + commits)}>"


def with_clean_proof(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks that are not of a message, with the clean rows at their positions as further proof."""
    if scope.clean is None:
        return breaks
    at = breaks.select(F.col("break_id").alias("proof_of"), F.explode("positions").alias("at"))
    positions = materialised(at.select("proof_of", "at.*").filter(F.col("offset").isNotNull()))
    if positions.isEmpty():
        return breaks
    named = small_side(positions.select("proof_of", *[F.col(name).alias(f"w_{name}") for name in POSITION]))
    for ledger, rows in scope.clean.at(positions.select(*POSITION).distinct()).items():
        row = F.struct(*SCHEMAS[ledger].names)
        found = (
            rows.join(named, same(POSITION, "w_")).groupBy("proof_of").agg(F.collect_list(row).alias("more"))
        )
        joined = breaks.join(
            small_side(materialised(found)), F.col("break_id") == F.col("proof_of"), how="left"
        )
        proofs = _oldest(F.col(f"evidence.{ledger.value}"), F.col("more"), TIME_COLUMN[ledger])
        breaks = joined.withColumn("evidence", F.col("evidence").withField(ledger.value, proofs)).select(
            *breaks.columns
        )
    return breaks


def _oldest(some: Column, more: Column, time: str) -> Column:
    """Return the oldest rows of both lists; either may be null."""
    both = F.concat(some, more)
    turns = F.transform(both, lambda row: F.struct(row[time].isNull(), row[time], row.alias("row")))
    in_time = F.array_sort(turns)
    first = F.slice(F.transform(in_time, lambda turn: turn["row"]), 1, ROWS_PER_LEDGER)
    return F.when(some.isNull(), more).when(more.isNull(), some).otherwise(first)
