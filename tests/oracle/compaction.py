"""What compaction took: which holes it excuses, and whom it does not (taxonomy sections 3 and 8, 11)."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.oracle.contents import said
from tests.oracle.history import BEGINNING, NEVER, Position, position, state_of
from tests.oracle.matching import is_before_its_sends
from tests.oracle.messages import Message
from tests.oracle.queues import is_queue

from tieout.model import Ledger

if TYPE_CHECKING:
    from tests.oracle.fates import Fates


def is_compacted(fates: Fates, message: Message) -> bool:
    """Return whether compaction took every record of the message before anybody could be blamed (28)."""
    asserted = {at: since for at, since in fates.asserted(message).items() if at not in message.denied}
    if not asserted or any(state_of(record) != "aborted" for record in message.records):
        return False
    return all(_was_compacted(fates, message, at, since) for at, since in asserted.items())


def superseding(
    fates: Fates, message: Message, at: Position, since: datetime | None, keys: set[Any] | None = None
) -> datetime | None:
    """Return since when a record or tombstone of the keys (else the message's) excuses the hole (28)."""
    keys = message.values("key_hash") if keys is None else keys
    if not fates.history.log_covers(at, since) or at in fates.history.records:
        return None
    if "compact" not in fates.history.bounds[at[:2]].policy:
        return None
    later = [
        (other[2], record.get("record_timestamp") or NEVER)
        for other, record in fates.history.records.items()
        if other[:2] == at[:2]
        and other[2] > at[2]
        and record.get("key_hash") in keys
        and fates.history.is_written(record)
    ]
    later += [
        (other[2], NEVER if other == at else since_when)
        for other, key, since_when in fates.vanished_tombstones
        if other[:2] == at[:2] and other[2] >= at[2] and key in keys
    ]
    return min(later)[1] if later else None


def tombstones_of(fates: Fates) -> list[tuple[Position, Any, datetime]]:
    """Return position, key and time of each acked send of a null payload whose record is gone (28)."""
    attempts = [attempt for message in fates.matched.messages for attempt in message.attempts]
    topics_with_hashes = {a.row.get("topic") for a in attempts if a.row.get("payload_hash") is not None}
    is_said = partial(said, fates.history, Ledger.PRODUCED, column="payload_hash")
    found = []
    for attempt in attempts:
        at, key = position(attempt.row), attempt.row.get("key_hash")
        is_empty = is_said(attempt.row) == {None} and attempt.row.get("topic") in topics_with_hashes
        is_gone = attempt.outcome == "acked" and at not in fates.history.records
        if at and key is not None and is_empty and is_gone:
            found.append((at, key, attempt.done_at or NEVER))
    return found


def _was_compacted(fates: Fates, message: Message, at: Position, since: datetime | None) -> bool:
    since_when = superseding(fates, message, at, since)
    if since_when is None:
        return False
    if at[0] in fates.individual_topics:
        return True
    is_log = not is_queue(fates.history.contract)
    if is_log and any(
        place == at
        and fates.passed(at, row) == at[2]
        and not is_before_its_sends(fates.history, message, row.get("processed_at"))
        for place, row in fates.in_hand
    ):
        return False
    earliest = _first_passing(fates, at)
    return earliest > since_when or is_before_its_sends(fates.history, message, earliest)


def _first_passing(fates: Fates, at: Position) -> datetime:
    """Return when anything first shows the group at the position or beyond it; never, where nothing dated does."""
    times = (when for where, offset, when in fates.progress if where == at[:2] and offset >= at[2])
    return min((when for when in times if when is not None), default=NEVER)


def may_be_compacted_late(fates: Fates, message: Message) -> bool:
    """Return whether a poll of unknown outcome may have passed what compaction took, before it could.

    So may any acknowledgement of a topic whose messages are acknowledged one by one, and, where the group came so far
    in an earlier life of the topic, whatever it did in this one.
    """
    if not is_compacted(fates, message):
        return False
    own = [at for at in fates.asserted(message) if at not in message.denied]
    if any(at[0] in fates.individual_topics for at in own):
        return True
    if any(is_before_its_sends(fates.history, message, _first_passing(fates, at)) for at in own):
        return True
    return any(
        place == at[:2]
        and offset >= at[2]
        and (when or NEVER) <= (superseding(fates, message, at, since) or BEGINNING)
        for at, since in fates.asserted(message).items()
        if at not in message.denied
        for place, offset, when in fates.doubtful_progress
    )


def went_by_compaction(fates: Fates, message: Message) -> bool:
    """Return whether compaction that ran as configured took every asserted position of the message."""
    asserted = fates.asserted(message)
    return bool(asserted) and all(
        superseding(fates, message, at, since) is not None for at, since in asserted.items()
    )


def committed_before_compaction(fates: Fates, message: Message) -> bool:
    """Return whether dated commits had passed every position of the message before what superseded it was written."""
    return all(
        any(
            (row.get("topic"), row.get("partition")) == at[:2]
            and None not in (row.get("committed_at"), row.get("committed_offset"))
            and row["committed_at"] <= (superseding(fates, message, at, since) or BEGINNING)
            and fates.held_back(row) > at[2]
            for row in fates.history.rows(Ledger.COMMITTED)
        )
        and superseding(fates, message, at, since) != NEVER
        for at, since in fates.asserted(message).items()
    )
