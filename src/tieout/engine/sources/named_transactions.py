"""Whether a column of `produced` that is called `transaction_id` may be of the business instead of the producer."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.keys import SESSION
from tieout.model import Ledger

_TRANSACTION: Final = "transaction_id"


def doubtful_transactions(rows: DataFrame, present: frozenset[str], contract: Contract) -> tuple[str, ...]:
    """Return in words that acknowledged sends count as unknown because of a column that the contract does not name.

    Rows of one transaction share its outcome, and where nothing states it rows that differ leave it unresolved. Of a
    column that has the name by chance, such as an order's or a payment's, this would hide every loss in it.
    """
    spec = contract.ledgers[Ledger.PRODUCED]
    is_by_name = _TRANSACTION in present and _TRANSACTION not in spec.columns
    if not is_by_name or "transaction_state" in present or Ledger.LOG in contract.ledgers:
        return ()
    is_acked = F.coalesce(F.lower("outcome") == "acked", F.lit(False))
    transactions = rows.where(F.col(_TRANSACTION).isNotNull()).groupBy(*SESSION, _TRANSACTION)
    mixed = transactions.agg(F.bool_or(is_acked).alias("some"), F.bool_and(is_acked).alias("all"))
    found = mixed.where(F.col("some") & ~F.col("all")).agg(F.min(_TRANSACTION)).head()
    if found is None or found[0] is None:
        return ()
    return (
        f"transaction {found[0][:80]} has sends that are acked and others that are not, so all of them are unknown: "
        f"map {_TRANSACTION} where it is the producer's transaction (and transaction_state, where the source has it), "
        f"else leave it out ({_TRANSACTION}: cast(null as string))",
    )
