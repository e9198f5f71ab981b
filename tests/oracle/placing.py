"""Facts about canonical rows: where a row lies, whether a record is written, an effect ours, a time the window's."""

from __future__ import annotations

from datetime import datetime

from tests.oracle.history import Position, Row
from tests.oracle.random_histories import RandomHistory

from tieout.model import Ledger


def place_of(row: Row) -> Position | None:
    """Return topic, partition and offset, None where the row names no place."""
    topic, partition, offset = row.get("topic"), row.get("partition"), row.get("offset")
    return None if partition is None or offset is None or offset < 0 else (topic or "", partition, offset)


def is_written(record: Row) -> bool:
    """Return whether a row of the log is a data record that is not known to be in an aborted or open transaction."""
    states = (None, "none", "committed")
    return (
        record.get("offset") is not None
        and not record.get("is_control")
        and record.get("transaction_state") in states
    )


def is_effect(history: RandomHistory, row: Row) -> bool:
    """Return whether a row of the output is a finished effect of the group that is judged."""
    states = (None, "none", "committed")
    is_ours = row.get("consumer_group") in (None, history.contract.group)
    return is_ours and row.get("outcome") in (None, "ok") and row.get("transaction_state") in states


def output_of(history: RandomHistory) -> Ledger:
    """Return the ledger whose rows make effects."""
    return Ledger.DELIVERED if Ledger.DELIVERED in history.contract.ledgers else Ledger.READ


def in_window(history: RandomHistory, time: datetime | None) -> bool:
    """Return whether the time is one of the window."""
    return time is not None and history.window.start <= time < history.window.end
