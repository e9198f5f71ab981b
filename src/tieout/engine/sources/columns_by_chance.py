"""Columns of `produced` that have a canonical name by chance: a payment's transaction, an offset in a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.keys import SESSION
from tieout.model import Identity, Ledger

_TRANSACTION: Final = "transaction_id"
_SHOWN: Final = 80
_LONGEST: Final = timedelta(minutes=15)
"""How long a transaction may last: the default of the broker's `transaction.max.timeout.ms`."""


def doubtful_transactions(rows: DataFrame, present: frozenset[str], contract: Contract) -> Iterator[str]:
    """Yield a note if sends of one transaction have different outcomes, so that all of them are unresolved.

    Only if `produced` has no other column of transactions, and no log states their outcomes. If the contract maps the
    column, only for a transaction that is longer than brokers let one be: then the column is a `transactional.id`.
    `present` are the columns of `produced`.
    """
    is_decided = "transaction_state" in present or Ledger.LOG in contract.ledgers
    if _TRANSACTION not in present or is_decided:
        return
    is_mapped = _TRANSACTION in contract.ledgers[Ledger.PRODUCED].columns
    duration = F.unix_micros(F.max("attempted_at")) - F.unix_micros(F.min("attempted_at"))
    is_long = F.coalesce(duration > _LONGEST // timedelta(microseconds=1), F.lit(False))
    is_acked = F.coalesce(F.lower("outcome") == "acked", F.lit(False))
    transactions = rows.where(F.col(_TRANSACTION).isNotNull()).groupBy(*SESSION, _TRANSACTION)
    mixed = transactions.agg(
        F.bool_or(is_acked).alias("some"), F.bool_and(is_acked).alias("all"), is_long.alias("is_long")
    ).where(F.col("some") & ~F.col("all"))
    example = mixed.where(F.lit(not is_mapped) | F.col("is_long")).agg(F.min(_TRANSACTION)).head()
    if example is not None and example[0] is not None:
        yield (
            f"transaction {example[0][:_SHOWN]} has sends that are acked and others that are not, so all of them are "
            f"unknown: map {_TRANSACTION} where it is the producer's transaction (and transaction_state, where the "
            f"source has it) and no transactional.id, else leave it out ({_TRANSACTION}: cast(null as string))"
        )


def has_file_offsets(rows: DataFrame, present: frozenset[str], contract: Contract) -> bool:
    """Return whether `offset` is not a partition's: the ledger has no partition, and several ids share an offset.

    Log shippers use this name for the position of a line in its file, which starts at 0 in each file.
    """
    is_by_name = "offset" in present and "offset" not in contract.ledgers[Ledger.PRODUCED].columns
    is_by_id = contract.identity == Identity.MESSAGE_ID and "message_id" in present
    if not is_by_name or not is_by_id or not present.isdisjoint({"topic", "partition"}):
        return False
    offsets = rows.where(F.col("offset").isNotNull()).groupBy("offset")
    shared = offsets.agg((F.min("message_id") != F.max("message_id")).alias("shared")).where("shared")
    return shared.head() is not None
