"""Messages that complete evidence cannot decide on: their counts, with a sentence for the statement.

An `undecided` class is not reported as a break. Where its breaks would break the guarantee, the verdict is UNKNOWN.
Docs: docs/reference/interpretations.md, 90.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tieout.model import BreakClass, Identity

_REASONS: Final = {
    "unnumbered": "in a producer session whose sequence produced does not say",
    "uncompleted": "sent after another session's of which produced does not say when it was acknowledged",
    "close": "with first effects of one instant, or of two consumers within clock_skew",
}


@dataclass(frozen=True)
class Undecided:
    """How many messages may break a class, by its name, and the statement's sentences about them."""

    counts: Mapping[str, int] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()

    def joined(self, other: Undecided) -> Undecided:
        """Return both; they are of different classes."""
        return Undecided({**self.counts, **other.counts}, (*self.sentences, *other.sentences))


def orders_undecided(by_topic: Iterable[Any]) -> Undecided:
    """Return the undecided orders of keys between partitions, given a row per topic."""
    rows = sorted(by_topic, key=lambda row: str(row["topic"]))
    counts = {name: sum(row[name] for row in rows) for name in _REASONS}
    total = sum(counts.values())
    if not total:
        return Undecided()
    why = "; ".join(f"{counts[name]} {words}" for name, words in _REASONS.items() if counts[name])
    first = rows[0]["example"]
    place = f"{rows[0]['topic']}-{first['partition']} offset {first['offset']}"
    named = place if first["message_id"] is None else f"{first['message_id']} at {place}"
    sentence = (
        f"ordering: key: whether {total} messages were written in the order of their key is not known, because an "
        f"earlier message of the key lies in another partition, whose log does not order the two: {why}. "
        f"The first is {named}"
    )
    return Undecided({BreakClass.REORDER_OUTPUT.value: total}, (sentence,))


def names_undecided(by_topic: Iterable[Any], identity: Identity) -> Undecided:
    """Return the undecided messages whose name was given to two sends, given a row per topic."""
    rows = sorted(by_topic, key=lambda row: str(row["topic"]))
    total = sum(row["names"] for row in rows)
    if not total:
        return Undecided()
    first = rows[0]["example"]
    if identity is Identity.MESSAGE_ID:
        sentence = (
            f"{total} ids were acknowledged with two payloads, by sends of which one was over before the other began, "
            "and no producer_session tells whether they are one message: one effect would account for both. The first "
            f"is {first['message_id']}; map a message_id that names one message, or a producer_session that changes "
            "when ids begin anew"
        )
        return Undecided({BreakClass.LOST.value: total}, (sentence,))
    sentence = (
        f"identity: position: {total} positions were acknowledged to two sends, of which one was over before the other "
        "began: the log began anew or lost what it held there, and what is shown of a position may be either send's. "
        f"The first is {rows[0]['topic']}-{first['partition']} offset {first['offset']}; ids (identity: message_id) "
        "tell the sends apart"
    )
    return Undecided({BreakClass.LOG_IDENTITY_CONFLICT.value: total}, (sentence,))
