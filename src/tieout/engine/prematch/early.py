"""Effects before their sends: correct clocks never show one, so a message that has one is not clean.

Docs: docs/reference/taxonomy.md, section 8.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE


def comes_before(contract: Contract, seen_at: Column, sent_at: Column) -> Column:
    """Return whether an effect is earlier than a send by more than `clock_skew` plus one second of rounding.

    False for the time of an unset clock: such rows keep their ledger from covering.
    """
    tolerance = contract.clock_skew + COARSEST_CLOCK
    is_dated = seen_at >= F.lit(EARLIEST_PLAUSIBLE)
    return F.coalesce(is_dated & (seen_at < sent_at - F.lit(tolerance)), F.lit(False))
