"""Who would miss a part of the evidence that was taken away (interpretation 132); nobody, and it may hide a break.

Written from the taxonomy, not from what the oracle does: each rule is one sentence of it, for rows that are sure of
what they say. Where none holds, only somebody's word says that the ledger is whole.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.oracle.deleting import Deletion
from tests.oracle.history import Row

from tieout.contracts import CoverageSpec
from tieout.model import Guarantee, Identity, Ledger

_OUTPUT = (Ledger.DELIVERED, Ledger.READ)
_ASIDE = (Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED)


def expected_by(deletion: Deletion) -> str | None:
    """Return who expects what was removed: a list of the contract, numbers, bounds, another ledger; None if nobody."""
    rules = {
        Ledger.PRODUCED: (_producers, _sequences, _record_without_a_send, _effect_without_a_send),
        Ledger.LOG: (_partition, _bounds),
        Ledger.DELIVERED: (_send_without_an_effect,),
        Ledger.READ: (_send_without_an_effect,),
    }
    return next((name for rule in rules.get(deletion.ledger, ()) if (name := rule(deletion))), None)


def _producers(deletion: Deletion) -> str | None:
    """Give `producers` where a declared one has no row left."""
    said = deletion.after.contract.ledgers[Ledger.PRODUCED].coverage
    left = {row.get("producer_id") for row in deletion.after.rows[Ledger.PRODUCED]}
    return "producers" if isinstance(said, CoverageSpec) and not set(said.producers) <= left else None


def _sequences(deletion: Deletion) -> str | None:
    """Give `sequences` where a session has a higher number than one that is gone."""
    said = deletion.after.contract.ledgers[Ledger.PRODUCED].coverage
    if not isinstance(said, CoverageSpec) or said.sequences is None:
        return None
    highest: dict[Any, int] = {}
    for row in deletion.after.rows[Ledger.PRODUCED]:
        session = (row.get("producer_id"), row.get("producer_session"))
        highest[session] = max(row.get("sequence") or 0, highest.get(session, 0))
    for row in deletion.removed:
        session, number = (row.get("producer_id"), row.get("producer_session")), row.get("sequence")
        last = highest.get(session)
        # A session may count from 1, so that its 0 is not missed.
        if number and last is not None and number < last:
            return "sequences"
    return None


def _record_without_a_send(deletion: Deletion) -> str | None:
    """Give `log` where a written record of the window has lost its only send."""
    found = [
        row
        for row in deletion.after.rows.get(Ledger.LOG, [])
        if _is_written(row) and _in_window(deletion, row.get("record_timestamp"))
    ]
    return "log" if _has_lost_its_send(deletion, found) else None


def _effect_without_a_send(deletion: Deletion) -> str | None:
    """Give `output` where an effect of the window has lost its only send."""
    found = [
        row
        for row in _effects(deletion, deletion.after.rows.get(_output(deletion), []))
        if _in_window(deletion, row.get("processed_at"))
    ]
    return "output" if _has_lost_its_send(deletion, found) else None


def _has_lost_its_send(deletion: Deletion, rows: list[Row]) -> bool:
    """Return whether one of the rows has the id of a send that is gone, and neither that nor the place of one left."""
    sends = deletion.after.rows[Ledger.PRODUCED]
    gone, places = _ids(deletion.removed) - _ids(sends), _places(sends)
    return _has_ids(deletion) and any(
        row.get("message_id") in gone and _place(row) not in places for row in rows
    )


def _partition(deletion: Deletion) -> str | None:
    """Give `partition` where a log shows nothing more of one in which sends of the window lie."""
    left = {(row.get("topic"), row.get("partition")) for row in deletion.after.rows[Ledger.LOG]}
    gone = {(row.get("topic"), row.get("partition")) for row in deletion.removed} - left
    is_missed = any(
        (row.get("topic"), row.get("partition")) in gone
        and row.get("outcome") == "acked"
        and row.get("transaction_state") in (None, "committed")
        and _place(row) is not None
        and _in_window(deletion, row.get("attempted_at"))
        for row in deletion.after.rows[Ledger.PRODUCED]
    )
    return "partition" if is_missed else None


def _bounds(deletion: Deletion) -> str | None:
    """Give `bounds` where a data record that is gone lies within what the rest says the log holds."""
    stated = {(row.get("topic"), row.get("partition")): row for row in deletion.after.rows[Ledger.LOG]}
    is_missed = any(
        _is_written(row)
        and _in_window(deletion, row.get("record_timestamp"))
        and _is_within(row.get("offset"), stated.get((row.get("topic"), row.get("partition")), {}))
        for row in deletion.removed
    )
    return "bounds" if is_missed else None


def _is_within(offset: int | None, bounds: Row) -> bool:
    first, end = bounds.get("log_start_offset"), bounds.get("end_offset")
    if offset is None or first is None or end is None or bounds.get("cleanup_policy") != "delete":
        return False
    return bool(first <= offset < end)


def _send_without_an_effect(deletion: Deletion) -> str | None:
    """Give `produced` where an acknowledged send of the window has lost all its effects, and nothing else has it."""
    after = deletion.after
    if not _has_ids(deletion) or deletion.ledger is not _output(deletion):
        return None
    if after.contract.guarantee is Guarantee.AT_MOST_ONCE:
        return None
    if any("compact" in (row.get("cleanup_policy") or "compact") for row in after.rows.get(Ledger.LOG, [])):
        return None
    aside = [row for ledger in _ASIDE for row in after.rows.get(ledger, [])]
    left = [*after.rows[deletion.ledger], *aside]
    gone = _ids(deletion.removed) - _ids(left)
    for row in after.rows[Ledger.PRODUCED]:
        is_sent = row.get("outcome") == "acked" and row.get("transaction_id") is None
        if is_sent and row.get("message_id") in gone and _place(row) not in _places(left):
            mine = [one for one in after.rows[Ledger.PRODUCED] if one.get("message_id") == row["message_id"]]
            if all(_in_window(deletion, one.get("attempted_at")) for one in mine):
                return "produced"
    return None


def _is_written(record: Row) -> bool:
    return not record.get("is_control") and record.get("transaction_state") in (None, "none", "committed")


def _has_ids(deletion: Deletion) -> bool:
    contract = deletion.after.contract
    return contract.identity is Identity.MESSAGE_ID and contract.multiplicity.kind != "one_to_many"


def _output(deletion: Deletion) -> Ledger:
    return Ledger.DELIVERED if Ledger.DELIVERED in deletion.after.contract.ledgers else Ledger.READ


def _effects(deletion: Deletion, rows: list[Row]) -> list[Row]:
    return [
        row
        for row in rows
        if row.get("consumer_group") in (None, deletion.after.contract.group)
        and row.get("outcome") in (None, "ok")
        and row.get("transaction_id") is None
    ]


def _ids(rows: Any) -> set[Any]:
    return {row["message_id"] for row in rows if row.get("message_id") is not None}


def _place(row: Row) -> tuple[Any, ...] | None:
    if row.get("partition") is None or row.get("offset") is None or row["offset"] < 0:
        return None
    return row.get("topic"), row["partition"], row["offset"]


def _places(rows: Any) -> set[Any]:
    return {place for row in rows if (place := _place(row)) is not None}


def _in_window(deletion: Deletion, time: datetime | None) -> bool:
    window = deletion.after.window
    return time is not None and window.start <= time < window.end
