"""Acknowledgements one by one: a set, and nothing below one of them was passed for it (taxonomy section 8, 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.commits import covers, is_individual
from tests.oracle.history import History, Position, Row
from tests.oracle.matching import is_before_its_sends
from tests.oracle.messages import Message

from tieout.model import Ledger

if TYPE_CHECKING:
    from tests.oracle.fates import Fates


def individual_topics(history: History, ledger: Ledger = Ledger.COMMITTED) -> frozenset[str]:
    """Return the topics of which the ledger shows an acknowledgement one by one: it is so in all their partitions."""
    return frozenset(
        row["topic"]
        for row in history.rows(ledger)
        if is_individual(row) and None not in (row.get("topic"), row.get("committed_offset"))
    )


def was_passed(fates: Fates, message: Message, at: Position) -> bool:
    """Return whether the group is known to have gone past the message's position; one by one, to have been at it."""
    if at[0] not in fates.individual_topics:
        return fates.frontier(at[:2], message) >= at[2]
    return is_acknowledged(fates, message, at) or at in _seen(fates, message)


def is_acknowledged(fates: Fates, message: Message, at: Position) -> bool:
    """Return whether a row of `committed` that is no older than the message's sends covers the position."""
    return any(
        covers(row, at, fates.held_back(row))
        and not is_before_its_sends(fates.history, message, row.get("committed_at"))
        for row in fates.history.rows(Ledger.COMMITTED)
        if None not in (row.get("committed_offset"), row.get("partition"))
    )


def _seen(fates: Fates, message: Message) -> set[Position]:
    """Return the positions of effects and of polls that succeeded since its sends, which in a queue pass nothing."""
    commits = [row for row in fates.history.rows(Ledger.COMMITTED) if _is_placed(row)]
    return {
        (*place, offset)
        for place, offset, when in fates.progress[len(commits) :]
        if not is_before_its_sends(fates.history, message, when)
    }


def _is_placed(row: Row) -> bool:
    return row.get("committed_offset") is not None and row.get("partition") is not None
