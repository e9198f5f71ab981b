"""What each class needs to be judged: ledgers, their columns, and an identity of messages.

Docs: docs/reference/taxonomy.md, section 1 (Coverage) and section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger


@dataclass(frozen=True)
class Need:
    """A ledger, or columns of it, without which a class is not judged."""

    ledger: Ledger
    columns: tuple[str, ...] = ()

    def is_met(self, scope: Scope) -> bool:
        """Return whether the contract declares the ledger and its source has the columns."""
        return scope.has(self.ledger, *self.columns)

    def __str__(self) -> str:
        """Return the ledger, with its columns where some are asked for."""
        return self.ledger.value + (f": {', '.join(self.columns)}" if self.columns else "")


def missing_of(scope: Scope, needs: Sequence[Need]) -> str | None:
    """Return the needs that are not met, where all are required; None where all are met."""
    return " and ".join(str(need) for need in needs if not need.is_met(scope)) or None


def _compared(content: str) -> tuple[Need, ...]:
    return tuple(Need(ledger, (content,)) for ledger in (Ledger.DELIVERED, Ledger.READ, Ledger.LOG))


_PLACE: Final = ("partition", "offset")
_MESSAGE_NEEDS: Final[dict[BreakClass, tuple[Need, ...]]] = {
    BreakClass.PHANTOM_UNKNOWN: (),
    BreakClass.PHANTOM_ABORTED: (),
    BreakClass.PHANTOM_UNCOMMITTED: (
        Need(Ledger.LOG, ("transaction_state", "observed_at")),
        Need(Ledger.LOG, ("broker_producer_id",)),
        Need(Ledger.READ, ("transaction_id",)),
    ),
    BreakClass.LOST: (),
    BreakClass.CORRUPTED_VALUE: _compared("payload_hash"),
    BreakClass.CORRUPTED_KEY: _compared("key_hash"),
    BreakClass.CORRUPTED_HEADER: _compared("header_hash"),
    BreakClass.CORRUPTED_TIMESTAMP: _compared("record_timestamp"),
    BreakClass.OUTPUT_DUPLICATE: (),
    BreakClass.LOG_DUPLICATE: (Need(Ledger.LOG), Need(Ledger.PRODUCED, _PLACE), Need(Ledger.READ, _PLACE)),
    BreakClass.REDELIVERY: (Need(Ledger.READ, _PLACE),),
    BreakClass.MISROUTED: (Need(Ledger.PRODUCED, ("intended_partition", "partition")),),
    BreakClass.LATE: (),
    BreakClass.IN_FLIGHT: (),
    BreakClass.DEAD_LETTERED: (Need(Ledger.DEAD_LETTERS),),
    BreakClass.FILTERED: (Need(Ledger.FILTERED),),
    BreakClass.COMPACTED: (Need(Ledger.LOG),),
    BreakClass.UNVERIFIABLE: (),
    BreakClass.RECOVERED: (),
    BreakClass.DELIVERED: (),
    BreakClass.NOT_SENT: (),
}
"""The classes of messages, in the order of the taxonomy, with alternatives: any one is enough."""
_BY_NAME: Final = frozenset(
    {BreakClass.CORRUPTED_KEY, BreakClass.CORRUPTED_HEADER, BreakClass.CORRUPTED_TIMESTAMP}
)
"""Classes that need an identity which distinguishes messages of equal content."""


def missing_for_message(scope: Scope, name: BreakClass) -> str | None:
    """Return what a class of messages lacks, or None where it can be judged."""
    if name in _BY_NAME and scope.contract.identity is Identity.CONTENT:
        return f"identity: {Identity.MESSAGE_ID} or {Identity.POSITION}"
    needs = _MESSAGE_NEEDS[name]
    if not needs or any(need.is_met(scope) for need in needs):
        return None
    return " or ".join(map(str, needs))


MESSAGE_CLASSES: Final = tuple(_MESSAGE_NEEDS)

_COMMITS: Final = Need(Ledger.COMMITTED, ("committed_offset", "committed_at", "partition"))
_OBSERVED_END: Final = Need(Ledger.LOG, ("end_offset", "observed_at"))
NON_MESSAGE_NEEDS: Final[dict[BreakClass, tuple[Need, ...]]] = {
    BreakClass.COMMIT_AHEAD: (_COMMITS,),
    BreakClass.COMMIT_REGRESSION: (_COMMITS,),
    BreakClass.COMMIT_STALE: (_COMMITS,),
    BreakClass.COMMIT_GAP: (Need(Ledger.COMMITTED, ("first_offset", "committed_offset", "partition")),),
    BreakClass.POSITION_DISAGREEMENT: (
        Need(Ledger.COMMITTED, ("committed_offset", "partition")),
        Need(Ledger.MIRRORED, ("committed_offset", "partition")),
    ),
    # Without a consumer's assignments a jump may be a rebalance.
    BreakClass.SKIPPED: (
        Need(Ledger.READ, ("consumer_id", "generation", "processed_at", "partition", "offset")),
        Need(Ledger.ASSIGNED),
    ),
    BreakClass.COMMIT_OUT_OF_RANGE: (_COMMITS, _OBSERVED_END),
    BreakClass.LOG_IDENTITY_CONFLICT: (Need(Ledger.PRODUCED, _PLACE),),
    BreakClass.LOG_TRUNCATION: (Need(Ledger.LOG), Need(Ledger.PRODUCED, _PLACE)),
    BreakClass.TORN_TRANSACTION: (Need(Ledger.PRODUCED, ("transaction_id",)),),
    BreakClass.REORDER_PRODUCER: (Need(Ledger.PRODUCED, ("sequence", *_PLACE)),),
    BreakClass.REORDER_OUTPUT: (Need(Ledger.PRODUCED, ("key_hash", *_PLACE)),),
}
"""The classes of breaks that are not of a message, with their needs: all of them are required."""
OUT_OF_RANGE_NEEDS: Final = (Need(Ledger.COMMITTED, ("committed_offset", "partition")), _OBSERVED_END)
"""Needs of COMMIT_OUT_OF_RANGE where it is known when the table of positions was taken."""


def has_sound_ledgers(scope: Scope, name: BreakClass) -> bool:
    """Return whether the ledgers that show such a break are sound; each LOG_IDENTITY_CONFLICT states that itself."""
    if name is BreakClass.LOG_IDENTITY_CONFLICT:
        return True
    ledgers = {need.ledger for need in NON_MESSAGE_NEEDS.get(name, ())} & set(scope.evidence)
    known = [scope.evidence[ledger].coverage for ledger in ledgers]
    return all(coverage.is_sound for coverage in known)
