"""Proof: the canonical rows behind each break, at most twenty of a ledger.

Docs: docs/reference/contract.md, `breaks.jsonl`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.standing import COMMIT_ROWS, ROWS_OF_POSITIONS
from tieout.engine.joining import FEW_ROWS, same
from tieout.engine.keys import POSITION
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.model import POSITION_LEDGERS, Ledger

ROWS_PER_LEDGER: Final = 20
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
    """Return the type of `evidence` in Spark's words: rows of the declared ledgers, and of those of positions."""
    rows = [f"{one.value}:array<{SCHEMAS[one].simpleString()}>" for one in PROVING if one in declared]
    commits = [f"{one.value}:{COMMIT_ROWS}" for one in POSITION_LEDGERS]
    return f"struct<{','.join(rows + commits)}>"


def with_rows_of_messages(breaks: DataFrame, keyed: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return breaks of messages, materialised, with `evidence`: per ledger the rows of their message, oldest first.

    A message is one break, so its key finds both. Where breaks are many, all rows are taken to their keys: to leave
    out those of other messages would be one more sort.
    """
    wanted = breaks.select(F.col("key").alias("proof_of"))
    is_few = wanted.count() <= FEW_ROWS
    found = {}
    for ledger, rows in keyed.items():
        named = rows.filter(F.col("key").isNotNull()).withColumn("proof_of", F.col("key"))
        found[ledger] = named.join(F.broadcast(wanted), "proof_of", how="left_semi") if is_few else named
    return _proved(breaks, found, "key")


def with_rows_at_positions(breaks: DataFrame, keyed: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return other breaks, materialised, with `evidence`: per ledger the rows at their positions, oldest first."""
    at = breaks.select(F.col("break_id").alias("proof_of"), F.explode("positions").alias("at"))
    each = at.select("proof_of", *[F.col("at")[name].alias(f"wanted_{name}") for name in POSITION])
    wanted = F.broadcast(each) if breaks.count() <= FEW_ROWS else each
    is_there = same(POSITION, "wanted_") & F.col("offset").isNotNull()
    found = {ledger: rows.join(wanted, is_there, how="inner") for ledger, rows in keyed.items()}
    return _proved(breaks, found, "break_id")


def _proved(breaks: DataFrame, found: Mapping[Ledger, DataFrame], by: str) -> DataFrame:
    """Return breaks with `evidence`, given the rows of each ledger that prove the break `proof_of`, by the column `by`.

    A break of a commit is proved by its `ROWS_OF_POSITIONS` as well. Breaks and the rows of all ledgers go through one
    shuffle and one sort, in which a break stands before its rows, and those of each ledger together.
    """
    stacked = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        [_as_proof(rows, ledger) for ledger, rows in found.items()],
        breaks.select(F.col(by).alias("proof_of"), F.struct(*breaks.columns).alias("broken")),
    )
    in_time = (F.col("at").asc_nulls_last(), F.col("digest"))
    of_break = Window.partitionBy("proof_of").orderBy(F.col("ledger"), *in_time)
    so_far = of_break.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = of_break.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = {ledger: F.col(f"proof_{ledger.value}") for ledger in found}
    place = F.coalesce(*[F.when(row.isNotNull(), F.count(row).over(so_far)) for row in rows.values()])
    first = stacked.withColumn("place", place).filter(
        F.col("ledger").isNull() | (F.col("place") <= ROWS_PER_LEDGER)
    )
    listed = first.withColumns(
        {ledger.value: F.collect_list(row).over(whole) for ledger, row in rows.items()}
    ).filter(F.col("ledger").isNull())
    of_ledgers = [
        F.when(F.size(ledger.value) > 0, F.col(ledger.value)).alias(ledger.value) for ledger in found
    ]
    of_positions = [
        F.col(f"broken.{name}").alias(ledger.value)
        for name, ledger in zip(ROWS_OF_POSITIONS, POSITION_LEDGERS, strict=True)
    ]
    evidence = F.struct(*of_ledgers, *of_positions)
    return listed.select("broken.*", evidence.alias("evidence"))


def _as_proof(rows: DataFrame, ledger: Ledger) -> DataFrame:
    """Return rows of a ledger as proof: what they order by, and all of a row in a column of the ledger's name."""
    canonical = [name for name in SCHEMAS[ledger].names if name in rows.columns]
    return rows.select(
        "proof_of",
        F.lit(ledger.value).alias("ledger"),
        F.col(TIME_COLUMN[ledger]).alias("at"),
        F.xxhash64(*canonical).alias("digest"),
        F.struct(*canonical).alias(f"proof_{ledger.value}"),
    )
