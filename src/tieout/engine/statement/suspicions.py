"""Suspicions about the evidence itself: clocks that cannot be right, ids and hashes that never match.

Where a ledger writes its ids in another form, every message looks lost. Where its clock is hours off, effects come
before their sends. The pipeline did neither, so breaks that depend on it are not confirmed, and the statement says
what was seen. Docs: docs/reference/taxonomy.md, section 8, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from tieout.engine.evidence import Suspicions
from tieout.engine.scope import Scope
from tieout.engine.statement.durations import in_words
from tieout.engine.statement.forms import Spelled, reshaped
from tieout.engine.statement.meetings import unmet_in
from tieout.model import BreakClass, Ledger

Topics = frozenset[str | None]

_OF_IDS: Final = (
    *("LOST", "OVERDUE", "TORN_TRANSACTION", "COMMIT_AHEAD", "LOG_IDENTITY_CONFLICT"),
    *("PHANTOM_UNKNOWN", "PHANTOM_ABORTED"),
)
"""Classes and flags that are found because an id is missing where it was expected."""
_OF_LOSSES: Final = ("LOST", "OVERDUE", "TORN_TRANSACTION", "COMMIT_AHEAD")
"""Classes and flags that are found because a message has no effect."""
_ENOUGH: Final = 3
"""How many effects it takes to suspect a clock; fewer may have another cause."""
_QUARTER: Final = timedelta(minutes=15)
_ABOUT: Final = timedelta(minutes=1)


def suspecting(scope: Scope, suspicions: Suspicions) -> Scope:
    """Return the scope with these suspicions."""
    for ledger, lacking in suspicions.lacking.items():
        scope = scope.with_lacking(ledger, lacking)
    return replace(scope, suspicions=suspicions)


def suspicions_in(
    scope: Scope,
    rows: Sequence[Mapping[str, Any]],
    spelled_hashes: Sequence[Spelled],
    spelled_names: Sequence[Mapping[str, Any]] = (),
    clean: Topics = frozenset(),
) -> Suspicions:
    """Return the suspicions that rows of `topic_suspicions`, hashes, and rows of `spellings` raise.

    `clean` are the topics of clean messages, which no rule judged.
    """
    doubted: dict[str, Topics] = {}
    unmet = unmet_in(scope, rows, clean)
    for name in _OF_IDS:
        doubted |= _joined(doubted, name, (topic for one in unmet for topic in one.topics))
    clocks = _clock_notes(scope, rows, has_clean=bool(clean))
    if any(is_behind for _, is_behind in clocks) and _covers_by_own_times(scope):
        doubted |= _joined(doubted, BreakClass.LOST.value, (row["topic"] for row in rows))
    nameless = _nameless(rows)
    lost = [row["topic"] for row in spelled_names if row["lost"] == row["lost_met"]]
    for name in _OF_LOSSES:
        doubted |= _joined(doubted, name, [*nameless, *lost])
    strange = [row["topic"] for row in spelled_names if row["strange"] == row["strange_met"]]
    doubted |= _joined(doubted, "PHANTOM_UNKNOWN", strange)
    topics = [row["topic"] for row in rows]
    forms = [form for one in spelled_hashes for form in reshaped(one, topics)]
    for form in forms:
        doubted |= _joined(doubted, form.name, form.topics)
    notes = [
        *(note for note, _ in clocks),
        *_skew_notes(rows),
        *nameless.values(),
        *_spelled(spelled_names),
    ]
    ledger_notes = [(scope.effect_ledger, note) for note in notes]
    ledger_notes += [(form.ledger, form.note) for form in forms]
    lacking = [(one.ledger, one.reason) for one in unmet]
    lacking += [(scope.effect_ledger, note) for note in _early_notes(rows)]
    return Suspicions(doubted, _by_ledger(lacking), _by_ledger(ledger_notes))


def _by_ledger(notes: Iterable[tuple[Ledger, str]]) -> dict[Ledger, tuple[str, ...]]:
    by_ledger: dict[Ledger, tuple[str, ...]] = {}
    for ledger, text in notes:
        by_ledger[ledger] = (*by_ledger.get(ledger, ()), text)
    return by_ledger


def _joined(doubted: Mapping[str, Topics], name: str, topics: Iterable[str | None]) -> dict[str, Topics]:
    joined = doubted.get(name, frozenset()) | frozenset(topics)
    return {name: joined} if joined else {}


def _covers_by_own_times(scope: Scope) -> bool:
    return scope.evidence[scope.effect_ledger].coverage.is_by_own_times


def _clock_notes(
    scope: Scope, rows: Sequence[Mapping[str, Any]], *, has_clean: bool
) -> list[tuple[str, bool]]:
    """Return notes about the clock of the effects' ledger, each with whether late effects may look like losses."""
    ledger, clock_notes = scope.effect_ledger, []
    early = sum(row["early"] for row in rows)
    if early >= _ENOUGH:
        distances = [(row["early_by"], row["early"]) for row in rows if row["early"]]
        median = timedelta(microseconds=_weighted_median(distances))
        clock_notes.append(
            (
                f"the clock of {ledger} does not fit that of produced: the effects of {early} messages lie before "
                f"their sends, by {in_words(median)} in the median{_zone(median)}",
                False,
            )
        )
    least = min((row["least_after"] for row in rows if row["least_after"] is not None), default=0)
    after = timedelta(microseconds=least)
    followed = sum(row["followed"] for row in rows)
    if not has_clean and followed >= _ENOUGH and after > scope.allowed_latency and _zone(after):
        clock_notes.append(
            (
                f"the clock of {ledger} does not fit that of produced: no effect of {followed} messages lies less than "
                f"{in_words(after)} after its send{_zone(after)}",
                True,
            )
        )
    return clock_notes


def _early_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a window is not covered whose effects are of messages that were sent after it."""
    early = sum(row["early_here"] for row in rows)
    if not early:
        return []
    return [
        f"the effects of {early} messages lie in the window, and before their sends, which are of a later one: either "
        "clock may be wrong, or an id was used before"
    ]


def _nameless(rows: Sequence[Mapping[str, Any]]) -> dict[str | None, str]:
    """Return the topics in which rows that name no message may account for all losses, each with the sentence.

    A row without a topic may be of any topic, and a lost message without a topic may be in any.
    """
    by_topic = {row["topic"]: row["nameless"] for row in rows}
    sentences: dict[str | None, str] = {}
    for topic, lost in ((row["topic"], row["lost"]) for row in rows):
        nameless = sum(by_topic.values()) if topic is None else by_topic[topic] + by_topic.get(None, 0)
        if 0 < lost <= nameless:
            sentences[topic] = (
                f"{nameless} effects, dead letters or filtered rows{_of(topic)} name no message and no position, and "
                f"may be those of the {lost} messages that are lost: map message_id, or topic, partition and offset"
            )
    return sentences


def _of(topic: str | None) -> str:
    return "" if topic is None else f" of topic {topic}"


def _spelled(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the notes about names that differ only in how they are written, once where topics share an example."""
    notes = {}
    for row in sorted(rows, key=lambda row: row["topic"] or ""):
        one, other = row["example"]["shown"], row["example"]["sent"]
        notes[one, other] = (
            f"ids{_of(row['topic'])} differ from ids in produced only in how they are written, such as {one!a} and "
            f"{other!a}: check how each file writes them"
        )
    return list(notes.values())


def _skew_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the note about equal payloads whose times do not fit."""
    sends = sum(row.get("met_early", 0) for row in rows)
    if not sends:
        return []
    return [
        f"rows with no equal send before them may be of {sends} later ones: where a table keeps whole seconds, or two "
        "hosts' clocks differ, the contract says by how much with clock_skew"
    ]


def _weighted_median(values: Sequence[tuple[int, int]]) -> int:
    """Return the value at which half of the weight is reached.

    >>> _weighted_median([(30, 1), (10, 1), (20, 5)])
    20
    """
    half, so_far = sum(weight for _, weight in values) / 2, 0
    for value, weight in sorted(values):
        so_far += weight
        if so_far >= half:
            return value
    return 0


def _zone(distance: timedelta) -> str:
    """Return the words for a distance of whole quarter hours, within a minute, else nothing.

    >>> _zone(timedelta(hours=5, seconds=-2))
    ', as if times of another time zone were read as UTC'
    >>> _zone(timedelta(seconds=30)) + _zone(timedelta(minutes=20))
    ''
    """
    quarters = round(distance / _QUARTER)
    is_whole = quarters > 0 and abs(distance - quarters * _QUARTER) <= _ABOUT
    return ", as if times of another time zone were read as UTC" if is_whole else ""
