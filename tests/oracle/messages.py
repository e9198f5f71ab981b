"""Which attempts are one message, and which message another ledger's row speaks of (taxonomy section 1, Messages)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from tests.oracle.history import History, Position, Row, contradict, known, position, undated_last

from tieout.model import Identity, Ledger


class Unmatched(Enum):
    """Why a row speaks of no message: nobody attempted it, several might be meant, or it came before all sends."""

    UNATTEMPTED = "unattempted"
    AMBIGUOUS = "ambiguous"
    STRAY = "stray"


@dataclass(eq=False)
class Attempt:
    """One send attempt; `outcome` is the resolved one once its transaction has been looked at.

    `is_contradicted`: it says that it failed, and its transaction that it was committed (87).
    """

    row: Row
    outcome: str
    is_contradicted: bool = False

    @property
    def transaction(self) -> tuple[Any, Any, Any] | None:
        """Which transaction of which session it was part of, None where of none."""
        name = self.row.get("transaction_id")
        return None if name is None else (*self.session, name)

    @property
    def at(self) -> datetime | None:
        """When it was attempted."""
        return self.row.get("attempted_at")

    @property
    def done_at(self) -> datetime | None:
        """When it was over, else when it began."""
        return self.row.get("completed_at") or self.row.get("attempted_at")

    @property
    def session(self) -> tuple[Any, Any]:
        """The producer's session."""
        return self.row.get("producer_id"), self.row.get("producer_session")


def _start(attempt: Attempt) -> tuple[Any, ...]:
    """Return what orders attempts: the order of rows decides nothing."""
    intended = attempt.row.get("intended_partition")
    return undated_last(attempt.at), intended is not None, intended


@dataclass(eq=False)
class Message:
    """One message with every row that speaks of it."""

    attempts: list[Attempt]
    message_id: str | None = None
    records: list[Row] = field(default_factory=list)
    effects: list[Row] = field(default_factory=list)
    uncertain: list[Row] = field(default_factory=list)
    reads: list[Row] = field(default_factory=list)
    accounted: dict[Ledger, list[Row]] = field(default_factory=dict)
    pending_aside: list[Row] = field(default_factory=list)
    taken_back: list[Row] = field(default_factory=list)
    has_ambiguous_effect: bool = False
    may_be_recorded: bool = False
    strays: list[Row] = field(default_factory=list)
    has_early_effect: bool = False
    may_have_earlier_effect: bool = False
    is_proven: bool = False
    plain_flags: set[str] = field(default_factory=set)
    denied: set[Position] = field(default_factory=set)

    @property
    def earliest(self) -> Attempt:
        """The earliest attempt; one without a time comes last, of one moment the one in the lowest partition first."""
        return min(self.attempts, key=_start)

    @property
    def began_at(self) -> datetime | None:
        """When the earliest attempt was made."""
        return self.earliest.at

    @property
    def outcome(self) -> str:
        """The best outcome of the attempts."""
        outcomes = {attempt.outcome for attempt in self.attempts}
        return next(outcome for outcome in ("acked", "unknown", "failed") if outcome in outcomes)

    def name_at(self, at: Position | None) -> str | None:
        """Return the message's id, else the id that a record or a read shows at the position."""
        shown = (row.get("message_id") for row in self.records + self.reads if position(row) == at)
        return self.message_id or min(known(shown), default=None)

    @property
    def transactions(self) -> set[tuple[Any, Any, Any]]:
        """The transactions that its attempts were part of and that were not taken back."""
        return known(attempt.transaction for attempt in self.attempts if attempt.outcome != "failed")

    @property
    def is_accepted(self) -> bool:
        """Whether the message was acked or is proven."""
        return self.outcome == "acked" or (self.outcome == "unknown" and self.is_proven)

    def values(self, column: str) -> set[Any]:
        """Return the known values that any attempt had in the column."""
        return known(attempt.row.get(column) for attempt in self.attempts)


def messages_of(history: History) -> list[Message]:
    """Return the produced rows as messages, by the contract's identity."""
    attempts = [Attempt(row, row.get("outcome") or "unknown") for row in history.rows(Ledger.PRODUCED)]
    identity = history.contract.identity
    if identity is Identity.CONTENT:
        return [Message([attempt], attempt.row.get("message_id")) for attempt in attempts]
    if identity is Identity.POSITION:
        return _by_position(attempts)
    named = [attempt for attempt in attempts if attempt.row.get("message_id") is not None]
    unnamed = [attempt for attempt in attempts if attempt.row.get("message_id") is None]
    by_id = _grouped(named, lambda attempt: attempt.row["message_id"])
    split = _by_session if history.contract.id_scope == "session" else _by_content_across_sessions
    messages = [message for same_id in by_id.values() for message in split(same_id)]
    return messages + _by_position(unnamed)


def _grouped(attempts: list[Attempt], key: Callable[[Attempt], Any]) -> dict[Any, list[Attempt]]:
    groups: dict[Any, list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(key(attempt), []).append(attempt)
    return groups


def _by_session(attempts: list[Attempt]) -> list[Message]:
    sessions = _grouped(attempts, lambda attempt: attempt.session)
    return [Message(rows, rows[0].row["message_id"]) for rows in sessions.values()]


def _by_content_across_sessions(attempts: list[Attempt]) -> list[Message]:
    """Return the attempts of one id: sessions that share a payload are one message (interpretation 7)."""
    groups: list[list[Attempt]] = []
    without_payload: list[Attempt] = []
    for session in _grouped(attempts, lambda attempt: attempt.session).values():
        payloads = known(attempt.row.get("payload_hash") for attempt in session)
        if not payloads:
            without_payload += session
            continue
        sharing = [
            group for group in groups if payloads & {attempt.row.get("payload_hash") for attempt in group}
        ]
        groups = [group for group in groups if group not in sharing]
        groups.append([attempt for group in sharing for attempt in group] + session)
    messages = [Message(group, group[0].row["message_id"]) for group in groups]
    if without_payload and messages:
        first = min(messages, key=lambda message: undated_last(message.began_at))
        first.attempts += without_payload
    elif without_payload:
        messages = [Message(without_payload, without_payload[0].row["message_id"])]
    return messages


def _by_position(attempts: list[Attempt]) -> list[Message]:
    """Return the attempts of each position as one message a payload; without position each by itself (8, 9)."""
    placed = [attempt for attempt in attempts if position(attempt.row) is not None]
    messages = [
        Message([attempt], attempt.row.get("message_id"))
        for attempt in attempts
        if position(attempt.row) is None
    ]
    for rows in _grouped(placed, lambda attempt: position(attempt.row)).values():
        contents = _grouped(rows, lambda attempt: attempt.row.get("payload_hash"))
        unknown_content = contents.pop(None, [])
        if not contents:
            contents[None] = []
        groups = list(contents.values())
        first = min(
            groups, key=lambda group: min((undated_last(one.at), _content(one)) for one in group or rows)
        )
        first += unknown_content
        messages += [Message(group, group[0].row.get("message_id")) for group in groups]
    return messages


def _content(attempt: Attempt) -> str:
    return attempt.row.get("payload_hash") or ""


@dataclass
class Matcher:
    """Finds the message that a row of another ledger speaks of.

    `owners` lists, best first, who may be meant by a position alone: a message, or a record of the log that no message
    matched, as nobody attempted it or it may be of several.
    """

    history: History
    messages: list[Message]
    owners: dict[Position, list[Message | tuple[Unmatched, Row]]]

    def match(self, row: Row) -> Message | Unmatched:
        """Return the row's message: by position, else by id and payload, else by id with one content."""
        at = position(row)
        owners = self.owners.get(at, []) if at is not None else []
        fitting = [owner for owner in owners if not self._contradicts(owner, row, at)]
        if fitting:
            same_content = [owner for owner in fitting if row.get("payload_hash") in self._contents(owner)]
            best = (same_content or fitting)[0]
            if isinstance(best, Message):
                return best
            if best[0] is Unmatched.UNATTEMPTED or row.get("message_id") is None:
                return best[0]
        if self.history.contract.identity is Identity.MESSAGE_ID and row.get("message_id") is not None:
            return self._by_id(row)
        return Unmatched.UNATTEMPTED

    def named(self, row: Row) -> list[Message]:
        """Return the messages that have the row's id, in its session where ids are a session's."""
        same_id = [message for message in self.messages if message.message_id == row.get("message_id")]
        session = row.get("producer_session")
        if self.history.contract.id_scope == "session" and session is not None:
            return [message for message in same_id if message.attempts[0].session[1] == session]
        return same_id

    def _contents(self, owner: Message | tuple[Unmatched, Row]) -> set[Any]:
        """Return what the owner of a position is known to hold."""
        if isinstance(owner, Message):
            return owner.values("payload_hash")
        return known([owner[1].get("payload_hash")])

    def _contradicts(self, owner: Message | tuple[Unmatched, Row], row: Row, at: Position | None) -> bool:
        if self.history.contract.identity is Identity.CONTENT:
            shown = owner.attempts[0].row if isinstance(owner, Message) else owner[1]
            return contradict(shown.get("payload_hash"), row.get("payload_hash"))
        if self.history.contract.identity is not Identity.MESSAGE_ID:
            return False
        name = owner.name_at(at) if isinstance(owner, Message) else owner[1].get("message_id")
        if contradict(name, row.get("message_id")):
            return True
        if self.history.contract.id_scope == "session" and isinstance(owner, Message):
            return contradict(owner.attempts[0].session[1], row.get("producer_session"))
        return False

    def _by_id(self, row: Row) -> Message | Unmatched:
        same_id = self.named(row)
        if not same_id:
            return Unmatched.UNATTEMPTED
        payload = row.get("payload_hash")
        attempted = [message for message in same_id if payload in message.values("payload_hash")]
        if len(attempted) == 1:
            return attempted[0]
        contents = known(value for message in same_id for value in message.values("payload_hash"))
        if len(same_id) == 1 and (payload is None or len(contents) <= 1):
            return same_id[0]
        return Unmatched.AMBIGUOUS
