"""The stages of a message's path: which ledger shows each, when it is reached, and a ledger's row in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tieout.contracts import shown_position
from tieout.model import Ledger
from tieout.reporting.sheet import place_of

Row = Mapping[str, Any]
_OF_POSITION: Final = frozenset({"offset", "first_offset", "committed_offset"})


@dataclass(frozen=True)
class Stage:
    """A stage of the path: which ledger shows it, when it happened, when it is reached, and its row in words."""

    name: str
    ledger: str
    time: str
    words: Callable[[Row], list[str]]
    is_reached: Callable[[Row], bool] = lambda _row: True
    is_optional: bool = False


def is_own(row: Row, message_id: str | None, group: str | None) -> bool:
    """Return whether a row may belong to the message and the judged group: it names no other."""
    row_message_id, row_group = row.get("message_id"), row.get("consumer_group")
    return (None in (message_id, row_message_id) or row_message_id == message_id) and (
        None in (group, row_group) or row_group == group
    )


def step_words(stage: Stage, row: Row, message_id: str | None, group: str | None) -> str:
    """Return a row in words; one that names another message, or another group, says so first."""
    parts = [part for part in stage.words(row) if part]
    row_message_id, row_group = row.get("message_id"), row.get("consumer_group")
    if message_id is not None and row_message_id is not None and row_message_id != message_id:
        parts.insert(0, f"holds another message: {row_message_id}")
    if group is not None and row_group is not None and row_group != group:
        parts.insert(0, f"set aside, of another group: {row_group}")
    return ", ".join(parts)


def _place(row: Row) -> str:
    """Return the position of the record in the row; an offset below 0 does not count.

    >>> _place({"topic": "orders", "partition": 0, "offset": 17})
    'orders-0 offset 17'
    """
    place = "" if row.get("topic") is None else place_of(row["topic"], row.get("partition"))
    offset = row.get("offset")
    return (
        place
        if offset is None or (isinstance(offset, int) and offset < 0)
        else f"{place} offset {offset}".strip()
    )


def _of(row: Row, **labels: str) -> list[str]:
    """Return `label value` for each column that the row has."""
    return [f"{label} {row[name]}".strip() for name, label in labels.items() if row.get(name) is not None]


def _attempted(row: Row) -> list[str]:
    columns = _of(
        row, producer_id="by", producer_session="session", sequence="sequence", transaction_id="transaction"
    )
    topic, partition = row.get("topic"), row.get("intended_partition", row.get("partition"))
    return [*columns, f"to {place_of(topic, partition)}" if topic is not None else ""]


def _acknowledged(row: Row) -> list[str]:
    outcome = str(row.get("outcome", "unknown")).lower()
    texts = {"acked": "acknowledged", "failed": "failed", "unknown": "no answer is known"}
    return [texts.get(outcome, outcome), _place(row) if outcome != "failed" else ""]


def _stored(row: Row) -> list[str]:
    state = row.get("transaction_state", "none")
    is_control = row.get("is_control")
    return [
        _place(row),
        "control record" if is_control else "",
        *_of(row, leader_epoch="leader epoch"),
        f"transaction {state}" if state != "none" else "",
    ]


def _consumed(row: Row) -> list[str]:
    outcome = row.get("outcome")
    return [
        _place(row),
        *_of(row, consumer_id="by", generation="generation", effect_key="part", transaction_id="transaction"),
        f"outcome {outcome}" if outcome not in (None, "ok") else "",
    ]


def _committed(row: Row) -> list[str]:
    place = place_of(row.get("topic"), row.get("partition"))
    first = row.get("first_offset")
    begins = "" if first is None else f"from {first} "
    columns = _of(row, generation="generation", metadata="metadata:")
    return [f"{place} {begins}up to {row.get('committed_offset')}", *columns]


def _excluded(row: Row) -> list[str]:
    return [_place(row), *_of(row, reason="reason:")]


def _is_acked(row: Row) -> bool:
    return str(row.get("outcome")).lower() == "acked"


def _is_ok(row: Row) -> bool:
    return str(row.get("outcome", "ok")).lower() == "ok"


STAGES: Final = (
    Stage("attempted", Ledger.PRODUCED, "attempted_at", _attempted),
    Stage("acknowledged", Ledger.PRODUCED, "completed_at", _acknowledged, _is_acked),
    Stage("stored", Ledger.LOG, "record_timestamp", _stored, lambda row: not row.get("is_control")),
    Stage("read", Ledger.READ, "processed_at", _consumed, _is_ok),
    Stage("staged", Ledger.STAGED, "at", _excluded, is_optional=True),
    Stage("filtered", Ledger.FILTERED, "at", _excluded, is_optional=True),
    Stage("dead-lettered", Ledger.DEAD_LETTERS, "at", _excluded, is_optional=True),
    Stage("written", Ledger.DELIVERED, "processed_at", _consumed, _is_ok),
    Stage("committed", Ledger.COMMITTED, "committed_at", _committed),
    Stage("mirrored", Ledger.MIRRORED, "committed_at", _committed, is_optional=True),
)


def shown_row(row: Row, form: str | None) -> Row:
    """Return a row with its positions as the log's system writes them."""
    return {
        name: shown_position(value, form) if name in _OF_POSITION else value for name, value in row.items()
    }
