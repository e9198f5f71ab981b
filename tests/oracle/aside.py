"""What sets a message aside, and how often: filters and dead letters (taxonomy section 8, 8)."""

from __future__ import annotations

from typing import Any

from tests.oracle.certainty import certainty
from tests.oracle.history import History, Row, known
from tests.oracle.messages import Matcher, Message, Unmatched
from tests.oracle.pairing import set_aside_by_payload

from tieout.model import Identity, Ledger

ASIDE = (Ledger.DEAD_LETTERS, Ledger.FILTERED)


def match_set_aside(history: History, messages: list[Message], matcher: Matcher) -> list[Row]:
    """Bring what was set aside and what was staged to its messages; a reader of committed data has to see it.

    Return the rows that by their content set aside no send before them.
    """
    left = []
    for row in history.rows(Ledger.STAGED):
        found = matcher.match(row)
        if isinstance(found, Message):
            found.accounted.setdefault(Ledger.STAGED, []).append(row)
    for state in ("ok", "unknown", "failed"):
        for ledger in ASIDE:
            left += _match(
                history, messages, matcher, ledger, rows_that_took_place(history, ledger, state), state
            )
    return left


def rows_that_took_place(history: History, ledger: Ledger, state: str = "ok") -> list[Row]:
    """Return the ledger's rows that a committed reader sees; those that may come of an open transaction: `unknown`."""
    rows = history.rows(ledger)
    has_state = history.has_column(ledger, "transaction_state")
    return [row for row in rows if certainty(row, rows, has_state, needs_key=False) == state]


def _match(
    history: History, messages: list[Message], matcher: Matcher, ledger: Ledger, rows: list[Row], state: str
) -> list[Row]:
    left = []
    if history.contract.identity is Identity.CONTENT:
        by_payload = [row for row in rows if row.get("payload_hash") is not None]
        left = set_aside_by_payload(history, messages, ledger, by_payload, state)
        rows = [row for row in rows if row.get("payload_hash") is None]
    for row in rows:
        found = matcher.match(row)
        if isinstance(found, Message):
            note_aside(found, ledger, row, state)
        elif found is Unmatched.AMBIGUOUS and state == "ok":
            for message in matcher.named(row):
                message.has_ambiguous_effect = True  # it may be the one that was set aside
        elif found is Unmatched.AMBIGUOUS and state == "unknown":
            for message in matcher.named(row):
                message.pending_aside.append(row)
    return left


def note_aside(message: Message, ledger: Ledger, row: Row, state: str) -> None:
    """Note that the row sets the message aside, may yet do so, or was taken back."""
    if state == "ok":
        message.accounted.setdefault(ledger, []).append(row)
    elif state == "unknown":
        message.pending_aside.append(row)
    else:
        message.taken_back.append(row)


def aside_rows(message: Message) -> list[Row]:
    """Return the rows that set the message aside."""
    return [row for ledger in ASIDE for row in message.accounted.get(ledger, [])]


def set_aside_by(history: History, message: Message) -> Ledger | None:
    """Return the ledger that accounts for what the message lacks; in a fan-out a key's row accounts for that key."""
    found = next((ledger for ledger in ASIDE if message.accounted.get(ledger)), None)
    if found is None or history.contract.multiplicity.effect_key is None:
        return found
    keys = [row.get("effect_key") for row in aside_rows(message)]
    missing = message.values("effect_key") - known(row.get("effect_key") for row in message.effects)
    is_whole = None in keys or not message.values("effect_key")
    return found if is_whole or missing <= set(keys) else None


def is_set_aside_twice(history: History, message: Message, *, is_fully_delivered: bool) -> bool:
    """Return whether the message was both delivered and set aside, or set aside twice."""
    rows, multiplicity = aside_rows(message), history.contract.multiplicity
    if multiplicity.kind != "one_to_many":
        return len(rows) > 1 or bool(rows and message.effects)
    if multiplicity.count is not None:
        return bool(rows) and len(rows) + len(message.effects) > multiplicity.count
    got: set[Any] = known(row.get("effect_key") for row in message.effects)
    keys = [row["effect_key"] for row in rows if row.get("effect_key") is not None]
    is_repeated = len(keys) > len(set(keys)) or bool(got & set(keys))
    is_all_there = bool(message.values("effect_key")) and is_fully_delivered
    return is_repeated or (bool(rows) and is_all_there)
