"""Brings every ledger's rows to their messages and resolves what became of each attempt (taxonomy section 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.aside import match_set_aside
from tests.oracle.certainty import certainty
from tests.oracle.conflicts import Conflict, conflicts_of
from tests.oracle.history import History, Position, Row, known, position, state_of, undated_last
from tests.oracle.messages import Attempt, Matcher, Message, Unmatched, messages_of
from tests.oracle.pairing import (
    effects_by_payload,
    let_later_ones_be_set_aside,
    records_by_payload,
    unmatched_excess,
)

from tieout.model import Identity, Ledger


@dataclass
class Matched:
    """The messages with their rows, and the rows that found none."""

    history: History
    messages: list[Message]
    unattempted_records: list[Row] = field(default_factory=list)
    ambiguous_records: list[Row] = field(default_factory=list)
    unmatched_effects: list[tuple[Row, Unmatched]] = field(default_factory=list)
    unmatched_uncertain: list[tuple[Row, Unmatched]] = field(default_factory=list)
    message_at: dict[Position, Message] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)


def match(history: History) -> Matched:
    """Return every message of the evidence, whatever its window, with everything known of it."""
    matched = Matched(history, messages_of(history))
    _match_log(matched)
    for message in matched.messages:
        _resolve(history, matched, message)
    _match_reads(matched)
    _match_output(matched)
    _prove(matched)
    matched.conflicts = conflicts_of(history, matched.messages, matched.message_at)
    return matched


def _attempt_owners(matched: Matched) -> dict[Position, list[Message | tuple[Unmatched, Row]]]:
    """Return who claims each position, the latest claim first: by an attempt that did not fail, or is the position."""
    by_position = matched.history.contract.identity is Identity.POSITION
    claims: dict[Position, list[tuple[Any, Message]]] = {}
    for message in matched.messages:
        for attempt in message.attempts:
            at = position(attempt.row)
            if at is not None and (attempt.outcome != "failed" or by_position):
                # Of claims that are alike in both, the least id comes first: the order of rows decides nothing.
                ago = -undated_last(attempt.done_at).timestamp()
                order = (
                    ("acked", "unknown", "failed").index(attempt.outcome),
                    ago,
                    message.message_id is None,
                    message.message_id or "",
                )
                claims.setdefault(at, []).append((order, message))
    owners: dict[Position, list[Message | tuple[Unmatched, Row]]] = {}
    for at, found in claims.items():
        found.sort(key=lambda claim: claim[0])
        owners[at] = list(dict.fromkeys(message for _, message in found))
    return owners


def _match_log(matched: Matched) -> None:
    matcher = Matcher(matched.history, matched.messages, _attempt_owners(matched))
    for record in (record for _, record in sorted(matched.history.records.items(), key=lambda item: item[0])):
        if record.get("is_control"):
            continue
        found = matcher.match(record)
        if isinstance(found, Message):
            found.records.append(record)
        elif found is Unmatched.AMBIGUOUS:
            matched.ambiguous_records.append(record)
            for message in matcher.named(record):
                message.may_be_recorded |= matched.history.is_written(record)
        else:
            matched.unattempted_records.append(record)
    if matched.history.contract.identity is Identity.CONTENT:
        matched.unattempted_records = records_by_payload(
            matched.history, matched.messages, matched.unattempted_records
        )
    matched.message_at = {
        at: message for message in matched.messages for at in known(map(position, message.records))
    }


def _own_state(matched: Matched, message: Message, attempt: Attempt) -> str | None:
    """Return the transaction state that the log shows for this attempt's record, None where it shows none (11)."""
    at = position(attempt.row)
    if at is not None:
        is_there = matched.message_at.get(at) is message
        return state_of(matched.history.records[at]) if is_there else None
    named = {position(other.row) for other in message.attempts}
    states = {state_of(record) for record in message.records if position(record) not in named}
    return next((state for state in ("committed", "none", "open", "aborted") if state in states), None)


def _stated_state(matched: Matched, attempt: Attempt) -> str | None:
    """Return what the ledger says of the attempt's transaction, None where it says nothing (10)."""
    if attempt.transaction is None:
        stated = attempt.row.get("transaction_state")
        return stated if stated in ("committed", "aborted") else None
    rows = [
        row
        for row in matched.history.rows(Ledger.PRODUCED)
        if Attempt(row, "").transaction == attempt.transaction
    ]
    if not matched.history.has_column(Ledger.PRODUCED, "transaction_state"):
        claims = {row.get("outcome") or "unknown" for row in rows}
        return {"acked": "committed", "failed": "aborted"}.get(*claims) if len(claims) == 1 else None
    stated = {row.get("transaction_state") for row in rows}
    return next((state for state in ("committed", "aborted") if state in stated), None)


def _resolve(history: History, matched: Matched, message: Message) -> None:
    """Replace each transactional attempt's outcome by its transaction's (interpretations 10 to 12)."""
    for attempt in message.attempts:
        own = _own_state(matched, message, attempt)
        said = attempt.row.get("transaction_state")
        is_transactional = (
            attempt.row.get("transaction_id") is not None
            or said not in (None, "none")
            or own not in (None, "none")
        )
        if not is_transactional or own == "none":
            continue
        state = own or _stated_state(matched, attempt)
        if state == "committed":
            attempt.is_contradicted = attempt.row.get("outcome") == "failed"
            attempt.outcome = "failed" if attempt.is_contradicted else "acked"
        else:
            attempt.outcome = "failed" if state == "aborted" else "unknown"
    written = {position(record) for record in message.records if history.is_written(record)}
    if message.outcome == "failed" and written:
        message.plain_flags.add("FAILED_BUT_WRITTEN")
        for attempt in message.attempts:
            if position(attempt.row) is None or position(attempt.row) in written:
                attempt.outcome = "unknown"


def _owners(matched: Matched) -> dict[Position, list[Message | tuple[Unmatched, Row]]]:
    """Return who a position speaks of: its record in the log, else who was read there, else who claims it."""
    owners = _attempt_owners(matched)
    for message in matched.messages:
        for row in message.reads:
            at = position(row)
            if at is not None:
                others = [owner for owner in owners.get(at, []) if owner is not message]
                owners[at] = [message, *others]
    for record in matched.ambiguous_records:
        at = position(record)
        if at is not None:
            owners[at] = [(Unmatched.AMBIGUOUS, record), *owners.get(at, [])]
    for record in matched.unattempted_records:
        at = position(record)
        by_content = matched.history.contract.identity is Identity.CONTENT
        name = record.get("payload_hash" if by_content else "message_id")
        if at is not None and name is not None:
            owners[at] = [(Unmatched.UNATTEMPTED, record), *owners.get(at, [])]
    for at, message in matched.message_at.items():
        owners[at] = [message, *[owner for owner in owners.get(at, []) if owner is not message]]
    return owners


def _match_reads(matched: Matched) -> None:
    matcher = Matcher(matched.history, matched.messages, _owners(matched))
    for row in matched.history.rows(Ledger.READ):
        if row.get("outcome") in (None, "ok") or position(row) is not None:
            found = matcher.match(row)
            if isinstance(found, Message):
                found.reads.append(row)


def _match_output(matched: Matched) -> None:
    history = matched.history
    matcher = Matcher(history, matched.messages, _owners(matched))
    rows = history.rows(history.output)
    has_state = history.has_column(history.output, "transaction_state")
    needs_key = history.contract.multiplicity.effect_key is not None
    if history.contract.identity is Identity.CONTENT:
        _pair_output(matched, matcher, rows, has_state)
    else:
        for row in rows:
            _place(matched, matcher, row, certainty(row, rows, has_state, needs_key))
        if history.output is Ledger.READ:
            for message in matched.messages:
                message.effects = _one_a_position(message.effects)
            matched.unmatched_effects = _one_a_position_unmatched(matched.unmatched_effects)
        match_set_aside(history, matched.messages, matcher)
        for message in matched.messages:
            _doubt_early_rows_aside(history, message)
    _part_from_early_effects(matched)


def _doubt_early_rows_aside(history: History, message: Message) -> None:
    """Take what would set the message aside, and came before its sends, for what may do so."""
    for ledger in (Ledger.FILTERED, Ledger.DEAD_LETTERS):
        rows = message.accounted.pop(ledger, [])
        early = [row for row in rows if is_before_its_sends(history, message, row.get("at"))]
        message.pending_aside += early
        if len(early) < len(rows):
            message.accounted[ledger] = [row for row in rows if all(row is not one for one in early)]


def _part_from_early_effects(matched: Matched) -> None:
    """Part each message from the effects that came before its sends where `produced` does not cover that time.

    Where it does, the effect stays its message's, and nobody can tell what became of that.
    """
    history = matched.history
    for message in matched.messages:
        for row in [
            row for row in message.effects if is_before_its_sends(history, message, row.get("processed_at"))
        ]:
            if history.covers(Ledger.PRODUCED, row["processed_at"], row["processed_at"]):
                message.has_early_effect = True
            else:
                message.effects = [one for one in message.effects if one is not row]
                if history.output is Ledger.READ:
                    message.reads = [one for one in message.reads if one is not row]
                message.strays.append(row)
                matched.unmatched_effects.append((row, Unmatched.STRAY))


def is_before_its_sends(history: History, message: Message, time: datetime | None) -> bool:
    """Return whether the time lies before all sends of the message, by more than clocks may differ."""
    rows = [attempt.row for attempt in message.attempts]
    if any(row.get("attempted_at") is None or row.get("is_approximate") for row in rows):
        return False
    since = min(row["attempted_at"] for row in rows) - history.skew - timedelta(seconds=1)
    return time is not None and not history.is_undated(time) and time < since


def _pair_output(matched: Matched, matcher: Matcher, rows: list[Row], has_state: bool) -> None:
    """Give the output's rows to the messages of their payload; of several reads of a position the first is one."""
    history, messages = matched.history, matched.messages
    certain = [row for row in rows if certainty(row, rows, has_state, needs_key=False) == "ok"]
    if history.output is Ledger.READ:
        placed = [row for row in certain if position(row) is not None]
        certain = _one_a_position(placed, _held(placed)) + [row for row in certain if position(row) is None]
    uncertain = [row for row in rows if certainty(row, rows, has_state, needs_key=False) == "unknown"]
    excess = effects_by_payload(history, messages, certain, lambda one: one.effects)
    doubtful = effects_by_payload(history, messages, uncertain, lambda one: one.uncertain)
    aside = match_set_aside(history, messages, matcher)
    matched.unmatched_effects = unmatched_excess(
        history, messages, excess, lambda one: one.effects, may_be_later=True
    )
    matched.unmatched_uncertain = unmatched_excess(
        history, messages, doubtful, lambda one: one.uncertain, may_be_later=False
    )
    let_later_ones_be_set_aside(messages, aside)


def _place(matched: Matched, matcher: Matcher, row: Row, certain: str) -> None:
    if certain == "failed":
        return
    found = matcher.match(row)
    if isinstance(found, Message):
        (found.effects if certain == "ok" else found.uncertain).append(row)
        return
    if found is Unmatched.AMBIGUOUS:
        at = position(row)
        is_named = row.get("message_id") is not None or at is None
        for message in matcher.named(row if is_named else matched.history.records[at]):
            message.has_ambiguous_effect = True
    if certain == "ok":
        matched.unmatched_effects.append((row, found))
    else:
        matched.unmatched_uncertain.append((row, found))


def turn(row: Row) -> tuple[Any, ...]:
    """Return what orders rows of the output: time, then their number, then who processed them; none first (61)."""
    by = ("delivery_sequence", "consumer_id", "generation", "topic", "partition", "offset")
    return (
        undated_last(row.get("processed_at")),
        *((row.get(name) is not None, row.get(name)) for name in by),
    )


def _first_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=turn)


def _one_a_position(rows: list[Row], held: dict[Position | None, str] | None = None) -> list[Row]:
    """Return the first read of each position: reading again makes no second effect (interpretation 23).

    By content, what holds something else than another row of the position is not the same read again: `held` says what
    a row holds that does not say it.
    """
    kept: dict[Any, Row] = {}
    for row in _first_rows(rows):
        at = position(row)
        content = None if held is None else row.get("payload_hash") or held.get(at)
        kept.setdefault((at, content), row)
    return list(kept.values())


def _held(rows: list[Row]) -> dict[Position | None, str]:
    """Return the greatest payload that was read at each position."""
    found: dict[Position | None, str] = {}
    for row in rows:
        if row.get("payload_hash") is not None:
            at = position(row)
            found[at] = max(found.get(at, ""), row["payload_hash"])
    return found


def _one_a_position_unmatched(effects: list[tuple[Row, Unmatched]]) -> list[tuple[Row, Unmatched]]:
    why = {id(row): found for row, found in effects}
    kept: dict[Any, Row] = {}
    for row in _first_rows([row for row, _ in effects]):
        at, name = position(row), row.get("message_id")
        kept.setdefault((at, name) if (at, name) != (None, None) else id(row), row)
    return [(row, why[id(row)]) for row in kept.values()]


def _prove(matched: Matched) -> None:
    """Mark the unknown messages that a record, an effect, a read or their transaction proves (12, 13, 87)."""
    proven_transactions: set[Any] = set()
    for message in matched.messages:
        transactions = message.transactions
        is_committed = any(state_of(record) == "committed" for record in message.records)
        by_committed_read = any(
            (row.get("isolation") or "").lower() == "read_committed" for row in message.reads
        )
        if (is_committed or by_committed_read) and len(transactions) == 1:
            proven_transactions |= transactions
        is_written = any(matched.history.is_written(record) for record in message.records)
        by_read = bool(message.reads) and (not transactions or by_committed_read)
        message.is_proven = is_written or bool(message.effects) or by_read
    for message in matched.messages:
        for attempt in message.attempts:
            is_proven = attempt.outcome == "unknown" and attempt.transaction in proven_transactions
            if is_proven and attempt.row.get("outcome") != "failed":
                message.is_proven = True
