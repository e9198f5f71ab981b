"""Which contents of a row are known: a null is a value, unless the evidence says that it is unknown.

Docs: docs/reference/taxonomy.md, section 1 (Null contents).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.ledger import UNKNOWN, is_named_lacking
from tieout.model import Ledger

NULLS: Final = "null_contents"
"""The content columns of a row that are known to be null, one bit each."""
LACKING: Final = "lacking_contents"
"""The content columns that a row's file does not have, although other files of its ledger do, one bit each."""
SIDES: Final[Mapping[str, tuple[Ledger, ...]]] = {
    "sent": (Ledger.PRODUCED,),
    "logged": (Ledger.LOG,),
    "output": (Ledger.DELIVERED, Ledger.READ),
}
"""The ledgers that show a message's contents, by the prefix of their columns."""
SHOWING: Final = tuple(ledger for ledgers in SIDES.values() for ledger in ledgers)
_UNCERTAIN_OUTCOMES: Final = ("failed", "unknown")


def bit_of(name: str) -> int:
    """Return the bit of a content column.

    >>> bit_of("payload_hash"), bit_of("key_hash")
    (1, 2)
    """
    return 1 << CONTENT_COLUMNS.index(name)


def known_contents(ledger: Ledger, present: Collection[str], unknown: Collection[str]) -> dict[str, Column]:
    """Return `null_contents` and `lacking_contents` of a ledger's canonical rows, by name.

    `present` are the columns that its source has, `unknown` those whose nulls the contract calls unknown.

    | payload_hash | key_hash | content | null_contents | lacking_contents |
    |--------------|----------|---------|---------------|------------------|
    | null         | k        | null    | 1             | 0                |
    | null         | k        | unknown | 0             | 0                |
    """
    shown = [name for name in CONTENT_COLUMNS if name in present and name not in unknown]
    nulls = {name: is_null for name in shown if (is_null := _is_null(ledger, name, present)) is not None}
    return {
        NULLS: _bits(nulls),
        LACKING: _bits({name: _is_lacking(name) for name in shown if "content" in present}),
    }


def unsaid_contents(
    ledger: Ledger, present: Collection[str], unknown: Collection[str]
) -> tuple[dict[str, Column], dict[str, Column]]:
    """Return per content column of a ledger's source whether it is unknown in a row, and whether the file lacks it."""
    is_record = F.lit(True)
    if ledger is Ledger.LOG:
        is_record = F.col("offset").isNotNull() & ~F.coalesce("is_control", F.lit(False))
    is_unknown, lacking = {}, {}
    for name in CONTENT_COLUMNS if ledger in SHOWING else ():
        if name not in present:
            continue
        is_lacking = F.lit(False)
        if name not in unknown and "content" in present:
            is_lacking = _is_lacking(name)
            lacking[name] = is_record & is_lacking
        is_null = None if name in unknown else _is_null(ledger, name, present)
        is_known = F.lit(False) if is_null is None else is_null
        is_unknown[name] = is_record & F.col(name).isNull() & ~is_known & ~is_lacking
    return is_unknown, lacking


def _is_null(ledger: Ledger, name: str, present: Collection[str]) -> Column | None:
    """Return whether a content is known to be null in a row; None where the ledger never shows that."""
    if (ledger, name) == (Ledger.PRODUCED, "record_timestamp"):
        return None
    is_known = F.lit(True)
    if "content" in present:
        is_known &= ~F.coalesce(F.col("content") == UNKNOWN, F.lit(False)) & ~_is_lacking(name)
    if ledger is Ledger.PRODUCED and "outcome" in present:
        is_known &= ~F.coalesce(F.lower("outcome").isin(*_UNCERTAIN_OUTCOMES), F.lit(False))
    return F.col(name).isNull() & is_known


def _is_lacking(name: str) -> Column:
    return F.col(name).isNull() & is_named_lacking(name)


def _bits(conditions: Mapping[str, Column]) -> Column:
    bits = F.lit(0)
    for name, condition in conditions.items():
        bits = bits + F.when(condition, bit_of(name)).otherwise(0)
    return bits
