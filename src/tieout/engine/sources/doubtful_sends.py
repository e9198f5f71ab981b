"""Sends in `produced` of which its columns do not tell what they were: a transaction's or not, one message or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.keys import SESSION
from tieout.model import Identity, Ledger, Window

_TRANSACTION: Final = "transaction_id"
_OF_CONTENTS: Final = frozenset({"message_id", "payload_hash", "outcome"})
_SHOWN: Final = 80


def doubtful_sends(
    rows: DataFrame, present: frozenset[str], contract: Contract, window: Window
) -> Iterator[str]:
    """Give in words why `produced`, which has the columns `present`, does not say what was sent.

    Each would hide losses: as acknowledgements that are taken for unknown, or as messages that are taken for one.
    """
    if _has_unstated_transactions(present, contract):
        yield from _doubtful_transactions(rows)
    is_by_id = contract.identity == Identity.MESSAGE_ID and contract.id_scope == "global"
    if is_by_id and present >= _OF_CONTENTS and present.isdisjoint(SESSION):
        yield from _reused_ids(rows, window)


def has_file_offsets(rows: DataFrame, present: frozenset[str], contract: Contract) -> bool:
    """Return whether `offset` is none of a partition: the ledger names no partition, and several ids share an offset.

    Log shippers call so where in a file a line begins, and each file begins at 0.
    """
    is_by_name = "offset" in present and "offset" not in contract.ledgers[Ledger.PRODUCED].columns
    is_by_id = contract.identity == Identity.MESSAGE_ID and "message_id" in present
    if not is_by_name or not is_by_id or not present.isdisjoint({"topic", "partition"}):
        return False
    offsets = rows.where(F.col("offset").isNotNull()).groupBy("offset")
    shared = offsets.agg((F.min("message_id") != F.max("message_id")).alias("shared")).where("shared")
    return shared.head() is not None


def _has_unstated_transactions(present: frozenset[str], contract: Contract) -> bool:
    """Return whether the ledger has a `transaction_id` that the contract does not name, and nothing states outcomes."""
    is_by_name = _TRANSACTION in present and _TRANSACTION not in contract.ledgers[Ledger.PRODUCED].columns
    return is_by_name and "transaction_state" not in present and Ledger.LOG not in contract.ledgers


def _doubtful_transactions(rows: DataFrame) -> Iterator[str]:
    """Give in words that sends of a transaction differ, which leaves it unresolved.

    The column may have its name by chance, and be that of a payment.
    """
    is_acked = F.coalesce(F.lower("outcome") == "acked", F.lit(False))
    transactions = rows.where(F.col(_TRANSACTION).isNotNull()).groupBy(*SESSION, _TRANSACTION)
    mixed = transactions.agg(F.bool_or(is_acked).alias("some"), F.bool_and(is_acked).alias("all"))
    found = mixed.where(F.col("some") & ~F.col("all")).agg(F.min(_TRANSACTION)).head()
    if found is not None and found[0] is not None:
        yield (
            f"transaction {found[0][:_SHOWN]} has sends that are acked and others that are not, so all of them are "
            f"unknown: map {_TRANSACTION} where it is the producer's transaction (and transaction_state, where the "
            f"source has it), else leave it out ({_TRANSACTION}: cast(null as string))"
        )


def _reused_ids(rows: DataFrame, window: Window) -> Iterator[str]:
    """Give in words that an id of the window was acknowledged with two contents, and nothing says by whom.

    Within a session that is one message, sent again. Of ids that begin anew each day, or name an order of which there
    are several events, one delivery would account for all of them. What changed between attempts of which one was
    acknowledged is a retry.
    """
    at = F.col("attempted_at")
    is_asked = (at >= F.lit(window.start)) & (at < F.lit(window.end))
    is_known = F.col("message_id").isNotNull() & F.col("payload_hash").isNotNull()
    ids = rows.where(is_known & (F.lower("outcome") == "acked")).groupBy("message_id")
    differ = F.min("payload_hash") != F.max("payload_hash")
    contents = ids.agg(differ.alias("differ"), F.bool_or(is_asked).alias("asked"))
    found = contents.where(F.col("differ") & F.col("asked")).agg(F.min("message_id")).head()
    if found is not None and found[0] is not None:
        yield (
            f"message_id {found[0][:_SHOWN]} was acked with more than one payload_hash, and no producer_session tells "
            "whether it names several messages: map a message_id that names one, or a producer_session that changes "
            "when ids begin anew"
        )
