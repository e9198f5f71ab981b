"""What both sides together tell of the evidence itself: clocks that cannot be right, ids and hashes that never meet.

Where a ledger writes its ids in a form of its own, no message is in the other one, and all are lost; where its clock is
hours off, effects come before their sends. Neither is what a pipeline did, so what rests on it is not confirmed, and
the statement says what was seen. Docs: docs/reference/taxonomy.md, section 8, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.durations import in_words
from tieout.engine.early import early_by
from tieout.engine.evidence import NOTHING_SUSPECTED, Suspicions
from tieout.engine.forms import HASHES, Spelled, reshaped, spelled
from tieout.engine.meetings import meetings, unmet_in, with_hashes_met
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger

Topics = frozenset[str | None]

_OF_IDS: Final = (
    *("LOST", "OVERDUE", "TORN_TRANSACTION", "COMMIT_AHEAD", "LOG_IDENTITY_CONFLICT"),
    *("PHANTOM_UNKNOWN", "PHANTOM_ABORTED"),
)
"""Classes and flags that are found because an id does not stand where it was looked for."""
_ENOUGH: Final = 3
"""So many effects tell of a clock; fewer may be of another message, or of another mistake."""
_QUARTER: Final = timedelta(minutes=15)
_ABOUT: Final = timedelta(minutes=1)


def doubted_of(doubted: Mapping[str, Topics]) -> Column:
    """Return the classes and flags that are not confirmed in a row's `topic`, an array."""
    names = [F.when(_is_in(topics), name) for name, topics in sorted(doubted.items())]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def _is_in(topics: Topics) -> Column:
    named = sorted(topic for topic in topics if topic is not None)
    is_named = F.coalesce(F.col("topic").isin(named), F.lit(False))
    return is_named | F.col("topic").isNull() if None in topics else is_named


def shown_by_topic(scope: Scope, messages: DataFrame) -> list[dict[str, Any]]:
    """Return one row a topic: which ledgers' ids it has and which of them meet, and how effects lie to their sends."""
    is_dated = (F.col("attempts") > 0) & F.col("first_effect_at").isNotNull() & ~F.col("is_roughly_dated")
    after = F.unix_micros("first_effect_at") - F.unix_micros("first_attempt.at")
    facts = {
        **meetings(scope),
        "early": F.count(early_by(scope)),
        "early_by": F.percentile_approx(early_by(scope), F.lit(0.5), F.lit(10_000)),
        "followed": F.count_if(is_dated),
        "least_after": F.min(F.when(is_dated, after)),
    }
    if scope.contract.identity is Identity.CONTENT:
        facts["met_early"] = F.count_if("may_be_met_early")
    held = F.concat(F.array("class"), "flags")
    facts |= {name: F.coalesce(F.bool_or(F.array_contains(held, name)), F.lit(False)) for name in HASHES}
    told = messages.groupBy("topic").agg(*[fact.alias(name) for name, fact in facts.items()])
    return with_hashes_met(scope, [row.asDict() for row in told.collect()])


def hashes_spelled(scope: Scope, rows: Sequence[Mapping[str, Any]]) -> list[Spelled]:
    """Return how hashes are written that some message's class compares, given the rows of `shown_by_topic`."""
    return spelled(scope, [name for name in HASHES if any(row[name] for row in rows)])


def with_suspicions(scope: Scope, messages: DataFrame) -> Scope:
    """Return the scope with what its messages make doubtful, its coverage with it; mostly the scope itself."""
    rows = shown_by_topic(scope, messages)
    forms = hashes_spelled(scope, rows)
    found = suspicions_in(scope, rows, forms)
    if found != NOTHING_SUSPECTED and scope.beside is not None:
        found = suspicions_in(scope, rows, forms, scope.beside.topics())
    return scope if found == NOTHING_SUSPECTED else suspecting(scope, found)


def suspecting(scope: Scope, found: Suspicions) -> Scope:
    """Return the scope with these suspicions."""
    for ledger, lacking in found.lacking.items():
        scope = scope.with_lacking(ledger, lacking)
    return replace(scope, suspicions=found)


def suspicions_in(
    scope: Scope,
    rows: Sequence[Mapping[str, Any]],
    spelled_hashes: Sequence[Spelled],
    quiet: Topics = frozenset(),
) -> Suspicions:
    """Return what the topics' rows and their hashes make doubtful, given those of `shown_by_topic`.

    `quiet` are the topics of messages that no rule looked at: they are in order.
    """
    doubted: dict[str, Topics] = {}
    unmet = unmet_in(scope, rows, quiet)
    for name in _OF_IDS:
        doubted |= _joined(doubted, name, (topic for one in unmet for topic in one.topics))
    clocks = _clock_notes(scope, rows, has_quiet=bool(quiet))
    if any(is_behind for _, is_behind in clocks) and _covers_by_own_times(scope):
        doubted |= _joined(doubted, BreakClass.LOST.value, (row["topic"] for row in rows))
    topics = [row["topic"] for row in rows]
    forms = [form for one in spelled_hashes for form in reshaped(one, topics)]
    for form in forms:
        doubted |= _joined(doubted, form.name, form.topics)
    notes = [*(note for note, _ in clocks), *_skew_notes(rows)]
    said = [(scope.effect_ledger, note) for note in notes] + [(form.ledger, form.told) for form in forms]
    lacking = [(one.ledger, one.told) for one in unmet]
    return Suspicions(doubted, _by_ledger(lacking), _by_ledger(said))


def _by_ledger(said: Iterable[tuple[Ledger, str]]) -> dict[Ledger, tuple[str, ...]]:
    found: dict[Ledger, tuple[str, ...]] = {}
    for ledger, text in said:
        found[ledger] = (*found.get(ledger, ()), text)
    return found


def _joined(doubted: Mapping[str, Topics], name: str, topics: Iterable[str | None]) -> dict[str, Topics]:
    every = doubted.get(name, frozenset()) | frozenset(topics)
    return {name: every} if every else {}


def _covers_by_own_times(scope: Scope) -> bool:
    return scope.evidence[scope.effect_ledger].coverage.is_by_own_times


def _clock_notes(
    scope: Scope, rows: Sequence[Mapping[str, Any]], *, has_quiet: bool
) -> list[tuple[str, bool]]:
    """Return what effects tell of their ledger's clock, with whether that lets losses look too old."""
    ledger, found = scope.effect_ledger, []
    early = sum(row["early"] for row in rows)
    if early >= _ENOUGH:
        distances = [(row["early_by"], row["early"]) for row in rows if row["early"]]
        median = timedelta(microseconds=_weighted_median(distances))
        found.append(
            (
                f"the clock of {ledger} does not fit that of produced: the effects of {early} messages lie before "
                f"their sends, by {in_words(median)} in the median{_zone(median)}",
                False,
            )
        )
    least = min((row["least_after"] for row in rows if row["least_after"] is not None), default=0)
    after = timedelta(microseconds=least)
    followed = sum(row["followed"] for row in rows)
    if not has_quiet and followed >= _ENOUGH and after > scope.patience and _zone(after):
        found.append(
            (
                f"the clock of {ledger} does not fit that of produced: no effect of {followed} messages lies less than "
                f"{in_words(after)} after its send{_zone(after)}",
                True,
            )
        )
    return found


def _skew_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what to do where equal payloads are told apart by times that do not fit."""
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
