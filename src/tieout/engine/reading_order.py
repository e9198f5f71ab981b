"""The order in which ledgers are read: how far a consumer came before what it put out.

Evidence that is read in place grows meanwhile. If the output was read first, a message that was processed and committed
in between would be passed, without an effect and overdue: it would look lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tieout.model import POSITION_LEDGERS, Ledger

_OUTPUT: Final = (Ledger.DELIVERED, Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED)


def in_reading_order(ledgers: Iterable[Ledger]) -> list[Ledger]:
    """Return the ledgers with positions first and output last, reads just before the output.

    >>> [str(ledger) for ledger in in_reading_order([Ledger.DELIVERED, Ledger.PRODUCED, Ledger.COMMITTED])]
    ['committed', 'produced', 'delivered']
    """
    return sorted(ledgers, key=_rank)


def _rank(ledger: Ledger) -> int:
    if ledger in POSITION_LEDGERS:
        return 0
    if ledger is Ledger.READ:
        return 2
    return 3 if ledger in _OUTPUT else 1
