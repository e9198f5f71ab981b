"""Proof: the canonical rows behind each break, at most twenty of a ledger.

Docs: docs/reference/contract.md, `breaks.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import POSITION
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.model import Ledger

ROWS_PER_LEDGER: Final = 20


def with_proof_rows(breaks: DataFrame, keyed: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return breaks with `evidence`: per ledger the rows of the break's message or at its positions, oldest first.

    A break of a message is proved by the message's rows, any other by what lies at its positions; a break of a commit
    by the commits in `commit_rows` as well.
    """
    is_of_message = F.col("key").isNotNull()
    of_messages = _proved(breaks.filter(is_of_message), keyed, "key", _of_messages)
    return of_messages.unionByName(_proved(breaks.filter(~is_of_message), keyed, "break_id", _at_positions))


def _proved(
    breaks: DataFrame,
    keyed: Mapping[Ledger, DataFrame],
    by: str,
    found: Callable[[DataFrame, DataFrame], DataFrame],
) -> DataFrame:
    """Return breaks with `evidence`, given the rows of a ledger that each has as `proof_of`, by the column `by`."""
    result = breaks
    for ledger, rows in keyed.items():
        first = _first_rows(ledger, rows, found(rows, breaks))
        result = result.join(first, F.col(by) == F.col("proof_of"), how="left").drop("proof_of")
    of_ledgers = [F.col(f"proof_{ledger.value}").alias(ledger.value) for ledger in keyed]
    evidence = F.struct(*of_ledgers, F.col("commit_rows").alias(Ledger.COMMITTED.value))
    return result.select(*breaks.columns, evidence.alias("evidence"))


def _of_messages(rows: DataFrame, breaks: DataFrame) -> DataFrame:
    """Return the rows of broken messages; a message is one break, so its key finds both, in one shuffle."""
    wanted = breaks.select(F.col("key").alias("proof_of"))
    return rows.join(wanted, F.col("key") == F.col("proof_of"), how="inner")


def _at_positions(rows: DataFrame, breaks: DataFrame) -> DataFrame:
    """Return the rows at the positions of breaks."""
    at = breaks.select(F.col("break_id").alias("proof_of"), F.explode("positions").alias("at"))
    wanted = at.select("proof_of", *[F.col("at")[name].alias(f"wanted_{name}") for name in POSITION])
    return rows.join(wanted, same(POSITION, "wanted_") & F.col("offset").isNotNull(), how="inner")


def _first_rows(ledger: Ledger, rows: DataFrame, found: DataFrame) -> DataFrame:
    """Return per `proof_of` its first rows among those `found` in the ledger, as one array named after the ledger."""
    canonical = [name for name in SCHEMAS[ledger].names if name in rows.columns]
    content = F.struct(*canonical)
    in_time = F.col(TIME_COLUMN[ledger]).asc_nulls_last()
    oldest = Window.partitionBy("proof_of").orderBy(in_time, F.xxhash64(*canonical))
    placed = found.withColumn("place", F.row_number().over(oldest))
    first = placed.filter(F.col("place") <= ROWS_PER_LEDGER).select(
        "proof_of", F.struct("place", content.alias("row")).alias("entry")
    )
    ordered = F.transform(F.array_sort(F.collect_list("entry")), lambda entry: entry["row"])
    return first.groupBy("proof_of").agg(ordered.alias(f"proof_{ledger.value}"))
