"""Ids, and hashes, that two ledgers write so differently that none meets another (taxonomy section 8, 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.oracle.contents import HASHES
from tests.oracle.history import BEGINNING, History, Row, contradict

from tieout.model import BreakClass, Identity, Ledger

COMPARES_IDS = frozenset(
    {
        BreakClass.LOST,
        BreakClass.PHANTOM_UNKNOWN,
        BreakClass.PHANTOM_ABORTED,
        BreakClass.COMMIT_AHEAD,
        BreakClass.TORN_TRANSACTION,
        BreakClass.LOG_IDENTITY_CONFLICT,
    }
)
"""What is found because an id did not occur where it was looked for."""
_OF_LOSSES = frozenset({"LOST", "COMMIT_AHEAD", "TORN_TRANSACTION"})
_TIMES = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.LOG: "record_timestamp",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
EVERYWHERE = "*"


@dataclass(frozen=True)
class Doubted:
    """The topics in which what is lost may be there, and in which what nobody sent may be somebody's."""

    losses: set[str | None]
    phantoms: set[str | None]


@dataclass
class Unmet:
    """Where ids do not meet, where a column's hashes have two forms, and where breaks may be none.

    Topics, or EVERYWHERE.
    """

    ids: set[str] = field(default_factory=set)
    forms: dict[BreakClass, set[str]] = field(default_factory=dict)
    doubted: Doubted = field(default_factory=lambda: Doubted(set(), set()))

    def doubts(self, name: str, topic: str | None) -> bool:
        """Return whether a break of the class in the topic may be none."""
        if name in _OF_LOSSES and topic in self.doubted.losses:
            return True
        if name == "PHANTOM_UNKNOWN" and topic in self.doubted.phantoms:
            return True
        where = self.ids if name in COMPARES_IDS else self.forms.get(BreakClass(name), set())
        return EVERYWHERE in where or topic in where


def unmet(history: History, doubted: Doubted) -> Unmet:
    """Return what of the evidence two ledgers spell differently throughout, given where breaks may be none."""
    found = Unmet(doubted=doubted)
    name = {Identity.MESSAGE_ID: "message_id", Identity.CONTENT: "payload_hash", Identity.POSITION: "topic"}[
        history.contract.identity
    ]
    for other in (Ledger.LOG, Ledger.DELIVERED, Ledger.READ):
        found.ids |= {
            topic
            for topic in _topics(history, Ledger.PRODUCED, other)
            if _never_meet(history, other, name, topic)
        }
    pairs = [(Ledger.PRODUCED, other) for other in (Ledger.LOG, Ledger.DELIVERED, Ledger.READ)]
    pairs += [(Ledger.LOG, Ledger.DELIVERED), (Ledger.LOG, Ledger.READ)]
    for broken, column in HASHES.items():
        if column != "record_timestamp":
            found.forms[broken] = {
                topic
                for one, other in pairs
                for topic in _topics(history, one, other)
                if _have_two_forms(
                    _values(history, one, column, topic), _values(history, other, column, topic)
                )
            }
    return found


def _rows(history: History, ledger: Ledger, topic: str) -> list[Row]:
    return [
        row
        for row in history.rows(ledger)
        if not row.get("is_control") and (topic == EVERYWHERE or row.get("topic") in (None, topic))
    ]


def _topics(history: History, one: Ledger, other: Ledger) -> list[str]:
    """Return the topics that rows of both ledgers name, and everything that was read."""
    named = [
        {row.get("topic") for row in _rows(history, ledger, EVERYWHERE)} - {None} for ledger in (one, other)
    ]
    return [EVERYWHERE, *sorted(named[0] & named[1])]


def _values(history: History, ledger: Ledger, column: str, topic: str) -> set[Any]:
    return {row[column] for row in _rows(history, ledger, topic) if row.get(column) is not None}


def _ids(history: History, ledger: Ledger, column: str, topic: str) -> set[tuple[Any, Any]]:
    """Return the ledger's ids, each with the session that is part of it, None where no session is."""
    is_part = history.contract.identity is Identity.MESSAGE_ID and history.contract.id_scope == "session"
    return {
        (row[column], row.get("producer_session") if is_part else None)
        for row in _rows(history, ledger, topic)
        if row.get(column) is not None
    }


def _never_meet(history: History, other: Ledger, column: str, topic: str) -> bool:
    """Return whether both ledgers have ids where the other covers, and none is on both sides.

    Where ids are a session's, a row that names another session has another id.
    """
    sent, received = (_ids(history, one, column, topic) for one in (Ledger.PRODUCED, other))
    return (
        not any(one == two and not contradict(by, of) for one, by in sent for two, of in received)
        and _has_any_within(history, Ledger.PRODUCED, other, column, topic)
        and _has_any_within(history, other, Ledger.PRODUCED, column, topic)
    )


def _has_any_within(history: History, ledger: Ledger, other: Ledger, column: str, topic: str) -> bool:
    """Return whether a row of the ledger has an id and may lie in what the other one covers."""
    coverage = history.coverage.get(other)
    if not history.is_sound(other) or coverage is None or coverage.complete_until is None:
        return False
    times = [row.get(_TIMES[ledger]) for row in _rows(history, ledger, topic) if row.get(column) is not None]
    since, until = coverage.covers_from or BEGINNING, coverage.complete_until
    return any(time is None or since <= time <= until for time in times)


def _have_two_forms(one: set[str], other: set[str]) -> bool:
    """Return whether the hashes of the two sides differ throughout in length, case or alphabet."""
    if not one or not other:
        return False
    if not {len(value) for value in one} & {len(value) for value in other}:
        return True
    if {_case(one), _case(other)} == {"lower", "upper"}:
        return True
    if {_base64_of(one), _base64_of(other)} == {"+/", "-_"}:
        return True
    return _is_hexadecimal_against(one, other) or _is_hexadecimal_against(other, one)


def _case(values: set[str]) -> str | None:
    """Return the one case of the side's letters, None where it has none or both."""
    letters = {letter for value in values for letter in value if letter.isalpha()}
    cases = {"upper" if letter.isupper() else "lower" for letter in letters}
    return cases.pop() if len(cases) == 1 else None


def _base64_of(values: set[str]) -> str | None:
    """Return which alphabet of base64 the side shows, None where neither or both."""
    shown = [signs for signs in ("+/", "-_") if any(set(value) & set(signs) for value in values)]
    return shown[0] if len(shown) == 1 else None


def _is_hexadecimal_against(one: set[str], other: set[str]) -> bool:
    return all(set(value) <= _HEXADECIMAL for value in one) and not any(
        set(value) <= _HEXADECIMAL for value in other
    )
