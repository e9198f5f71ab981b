"""What cannot be judged at all, and which ledger or column it would need (taxonomy sections 1 and 3)."""

from __future__ import annotations

from tests.oracle.contents import HASHES
from tests.oracle.history import History
from tests.oracle.queues import is_queue

from tieout.model import BreakClass, Identity, Ledger

_LEDGERS = {
    BreakClass.COMPACTED: (Ledger.LOG,),
    BreakClass.LOG_TRUNCATION: (Ledger.LOG,),
    BreakClass.COMMIT_OUT_OF_RANGE: (Ledger.LOG, Ledger.COMMITTED),
    BreakClass.COMMIT_AHEAD: (Ledger.COMMITTED,),
    BreakClass.COMMIT_REGRESSION: (Ledger.COMMITTED,),
    BreakClass.COMMIT_STALE: (Ledger.COMMITTED,),
    BreakClass.COMMIT_GAP: (Ledger.COMMITTED,),
    BreakClass.POSITION_DISAGREEMENT: (Ledger.COMMITTED, Ledger.MIRRORED),
    BreakClass.REDELIVERY: (Ledger.READ,),
    BreakClass.SKIPPED: (Ledger.READ, Ledger.ASSIGNED),
    BreakClass.FILTERED: (Ledger.FILTERED,),
    BreakClass.DEAD_LETTERED: (Ledger.DEAD_LETTERS,),
}
_COLUMNS = {
    BreakClass.CORRUPTED_VALUE: "payload_hash",
    BreakClass.CORRUPTED_KEY: "key_hash",
    BreakClass.CORRUPTED_HEADER: "header_hash",
    BreakClass.CORRUPTED_TIMESTAMP: "record_timestamp",
    BreakClass.MISROUTED: "intended_partition",
    BreakClass.REORDER_PRODUCER: "sequence",
    BreakClass.REORDER_OUTPUT: "key_hash",
}
NOT_BY_CONTENT = (
    BreakClass.CORRUPTED_KEY,
    BreakClass.CORRUPTED_HEADER,
    BreakClass.CORRUPTED_TIMESTAMP,
    BreakClass.REORDER_OUTPUT,
)
"""Which of several equal payloads an effect is, nobody can tell: neither what else they carry, nor their order."""
_SHOWING = (Ledger.LOG, Ledger.DELIVERED, Ledger.READ)
_NOT_OF_QUEUES = (
    BreakClass.SKIPPED,
    BreakClass.REORDER_CONSUMER,
    BreakClass.COMMIT_STALE,
    BreakClass.COMMIT_GAP,
)
_HISTORY_ONLY = (BreakClass.COMMIT_AHEAD, BreakClass.COMMIT_REGRESSION, BreakClass.COMMIT_STALE)


def not_judged(history: History) -> list[dict[str, str]]:
    """Return each class that an undeclared ledger or a missing column leaves unjudged, with what it needs."""
    needs = _by_ledgers(history)
    for name, column in _COLUMNS.items():
        if not history.has_column(Ledger.PRODUCED, column):
            needs[name] = f"produced.{column}"
        elif name in HASHES and not any(history.has_column(ledger, column) for ledger in _SHOWING):
            needs[name] = f"{history.output}.{column}"
    for name in _HISTORY_ONLY:
        if name not in needs and not history.has_column(Ledger.COMMITTED, "committed_at"):
            needs[name] = "committed.committed_at"
    needs = _by_ranges(history, needs)
    if not _may_tell_of_loss(history):
        needs[BreakClass.LOST] = "produced.outcome"
    reader = Ledger.READ if history.has(Ledger.READ) else history.output
    for column in ("consumer_id", "generation"):
        if not history.has_column(reader, column):
            needs[BreakClass.REORDER_CONSUMER] = f"{reader}.{column}"
    needs = _by_ordering(history) | needs | _by_identity(history.contract.identity)
    return [{"class": str(name), "needs": need} for name, need in sorted(needs.items())]


def _by_ledgers(history: History) -> dict[str, str]:
    """Return what undeclared ledgers leave unjudged, and how the group takes its messages."""
    needs: dict[str, str] = {}
    for name, ledgers in _LEDGERS.items():
        missing = [ledger for ledger in ledgers if ledger not in history.contract.ledgers]
        if missing:
            needs[name] = str(missing[0])
    return needs | (dict.fromkeys(_NOT_OF_QUEUES, "consumption: log") if is_queue(history.contract) else {})


def _by_ranges(history: History, needs: dict[str, str]) -> dict[str, str]:
    """Return what is not judged given whether commits are ranges, which need no times, and what else is kept."""
    if history.has_column(Ledger.COMMITTED, "first_offset"):
        needs = {name: need for name, need in needs.items() if name != BreakClass.COMMIT_REGRESSION}
    else:
        needs = {BreakClass.COMMIT_GAP: "committed.first_offset"} | needs
    if not history.has(Ledger.MIRRORED):
        needs = {BreakClass.POSITION_DISAGREEMENT: "mirrored"} | needs
    return needs


def _may_tell_of_loss(history: History) -> bool:
    """Return whether the sends say their outcome, or a log or reads could prove one."""
    telling = (Ledger.LOG, Ledger.READ) if history.output is Ledger.DELIVERED else (Ledger.LOG,)
    is_known = history.has_column(Ledger.PRODUCED, "outcome") or any(map(history.has, telling))
    return is_known or history.contract.multiplicity.kind != "one_to_one"


def _by_ordering(history: History) -> dict[str, str]:
    """Return the orders that nobody can tell: under an order of keys those of messages without keys."""
    if history.contract.ordering != "key" or history.has_column(Ledger.PRODUCED, "key_hash"):
        return {}
    return dict.fromkeys((BreakClass.REORDER_PRODUCER, BreakClass.REORDER_CONSUMER), "produced.key_hash")


def _by_identity(identity: Identity) -> dict[str, str]:
    """Return the classes that take more to tell rows apart than the identity has."""
    if identity is Identity.CONTENT:
        return dict.fromkeys(NOT_BY_CONTENT, "identity: message_id or position")
    return {BreakClass.LOG_DUPLICATE: "identity: message_id"} if identity is Identity.POSITION else {}
