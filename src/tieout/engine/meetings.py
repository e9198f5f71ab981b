"""Ids that never meet: whether what one ledger names its messages by occurs in the other at all.

An id that was read as a number, padded or cut names no message of the other side, and nothing tells that from a loss
of everything but that no id at all is on both sides. Docs: docs/reference/taxonomy.md, section 8, 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.events import ATTEMPT, EFFECT, READ, RECORD
from tieout.engine.looking import ours
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

SHOWN_MARKS: Final = "shown_marks"
"""The fact of a message that `marks_of` makes."""
_OTHERS: Final = (Ledger.LOG, Ledger.DELIVERED, Ledger.READ)
_SENT: Final = 1
_WIDTH: Final = 3
_LONGEST: Final = 60


def _sent_within(ledger: Ledger) -> int:
    """Return the bit of a send with an id that lies in the ledger's coverage."""
    return 2 << (_WIDTH * _OTHERS.index(ledger))


def _shown(ledger: Ledger) -> int:
    """Return the bit of a row of the ledger with an id."""
    return 2 * _sent_within(ledger)


def _shown_within(ledger: Ledger) -> int:
    """Return the bit of a row of the ledger with an id that lies in the sends' coverage."""
    return 4 * _sent_within(ledger)


def _others(scope: Scope) -> list[Ledger]:
    """Return the ledgers whose ids are held against the sends'; none where positions say what a message is."""
    column = scope.identity_column
    if scope.contract.identity is Identity.POSITION or not scope.has(Ledger.PRODUCED, column):
        return []
    return [ledger for ledger in _OTHERS if scope.has(ledger, column)]


def marks_of(scope: Scope) -> Column:
    """Return what an event tells of who shows its message's id, as bits: an aggregate over events."""
    kinds: dict[Ledger, tuple[str, ...]] = {
        Ledger.LOG: (RECORD,),
        Ledger.READ: (READ,),
        Ledger.DELIVERED: (EFFECT,),
    }
    if scope.effect_ledger is Ledger.READ:
        kinds[Ledger.READ] = (READ, EFFECT)
    is_send = F.col("kind") == ATTEMPT
    marks = F.when(is_send, _SENT).otherwise(0)
    for ledger in _others(scope):
        is_told = _within(scope, ledger)
        is_row = F.col("kind").isin(*kinds[ledger])
        within = F.when(_within(scope, Ledger.PRODUCED), _shown_within(ledger)).otherwise(0)
        marks = (
            marks
            + F.when(is_send & is_told, _sent_within(ledger)).otherwise(0)
            + F.when(is_row, F.lit(_shown(ledger)) + within).otherwise(0)
        )
    return F.coalesce(F.bit_or(F.when(F.col(scope.identity_column).isNotNull(), marks)), F.lit(0))


def _within(scope: Scope, ledger: Ledger) -> Column:
    """Return whether an event lies, or without a time may lie, in what the ledger covers."""
    coverage, at = scope.evidence[ledger].coverage, F.col("at")
    if not coverage.is_sound or coverage.complete_until is None:
        return F.lit(False)
    return at.isNull() | scope.covered_between(ledger, at, at)


def meetings(scope: Scope) -> dict[str, Column]:
    """Return what messages together tell of their ids, as aggregates: for each ledger what meets, and one of each side.

    An id that several messages share is one that was sent, and so is that of an effect which came before its send.
    """
    marks, named = F.col(SHOWN_MARKS), _named(scope)
    was_sent = _has(marks, _SENT) | F.col("key").rlike("^[abe]:")
    facts: dict[str, Column] = {}
    for ledger in _others(scope):
        is_shown = _has(marks, _shown(ledger))
        facts |= {
            f"{ledger}_meets": F.bool_or(was_sent & is_shown),
            f"{ledger}_sent": F.bool_or(_has(marks, _sent_within(ledger))),
            f"{ledger}_shown": F.bool_or(_has(marks, _shown_within(ledger))),
            f"{ledger}_of_send": F.min(F.when(_has(marks, _sent_within(ledger)), named)),
            f"{ledger}_of_row": F.min(F.when(_has(marks, _shown_within(ledger)), named)),
        }
    return facts


def with_hashes_met(scope: Scope, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the facts of `meetings` in which payload hashes meet wherever both sides show one.

    By content a row is not always of a message that has its payload: one that nobody claims, like a read at a position
    that no send shows, is of none. Where ids say what a message is, nothing is looked up.
    """
    if scope.contract.identity is not Identity.CONTENT:
        return [dict(row) for row in rows]
    return _met(scope, rows, lambda ledger: _topics_of_common_hashes(scope, ledger))


def with_hashes_met_in(
    scope: Scope, rows: Sequence[Mapping[str, Any]], common: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the same, given the topics with common hashes as rows of `ledger`, `sent_topic` and `shown_topic`."""
    pairs: dict[Ledger, set[tuple[str | None, str | None]]] = {}
    for row in common:
        pairs.setdefault(Ledger(row["ledger"]), set()).add((row["sent_topic"], row["shown_topic"]))
    if scope.contract.identity is not Identity.CONTENT:
        return [dict(row) for row in rows]
    return _met(scope, rows, lambda ledger: pairs.get(ledger, set()))


def _met(
    scope: Scope,
    rows: Sequence[Mapping[str, Any]],
    pairs_of: Callable[[Ledger], set[tuple[str | None, str | None]]],
) -> list[dict[str, Any]]:
    told = [dict(row) for row in rows]
    for ledger in _others(scope):
        open_rows = [row for row in told if not row[f"{ledger}_meets"]]
        if not any(row[f"{ledger}_sent"] or row[f"{ledger}_shown"] for row in open_rows):
            continue
        pairs = pairs_of(ledger)
        for row in open_rows:
            topic = row["topic"]
            row[f"{ledger}_meets"] = any({*pair} <= {topic, None} for pair in pairs)
            row[_across(ledger)] = any(topic in pair or None in pair for pair in pairs)
    return told


def _across(ledger: Ledger) -> str:
    """Return the name of the fact that a topic's ids meet those of another topic."""
    return f"{ledger}_meets_across"


def _topics_of_common_hashes(scope: Scope, ledger: Ledger) -> set[tuple[str | None, str | None]]:
    """Return the topics, of the send and of the row, in which one payload hash stands on both sides."""
    one, other = (
        ours(scope, name)
        .filter(F.col("payload_hash").isNotNull())
        .select(F.col("topic").alias(f"{side}_topic"), F.col("payload_hash").alias(f"{side}_hash"))
        .distinct()
        for side, name in (("sent", Ledger.PRODUCED), ("shown", ledger))
    )
    met = one.join(other, F.col("sent_hash") == F.col("shown_hash")).select("sent_topic", "shown_topic")
    return {(row["sent_topic"], row["shown_topic"]) for row in met.distinct().collect()}


def _named(scope: Scope) -> Column:
    return F.col("shown_hash" if scope.contract.identity is Identity.CONTENT else "message_id")


def _has(marks: Column, bit: int) -> Column:
    return marks.bitwiseAND(bit) != 0


@dataclass(frozen=True)
class Unmet:
    """A ledger of which no id is a send's, in the topics that this is so of, told in words."""

    ledger: Ledger
    topics: frozenset[str | None]
    told: str


def unmet_in(scope: Scope, rows: Sequence[Mapping[str, Any]], quiet: frozenset[str | None]) -> list[Unmet]:
    """Return the ledgers whose ids never meet those of the sends, over everything that was read or in some topics.

    `rows` have the facts of `meetings` by topic; `quiet` are the topics of messages that no rule looked at.
    """
    found = []
    for ledger in _others(scope):
        meeting = quiet if scope.beside is not None and ledger in scope.beside.rows else frozenset()
        met = [row for row in rows if row[f"{ledger}_meets"] or row["topic"] in meeting]
        sent, shown = ([row for row in rows if row[f"{ledger}_{side}"]] for side in ("sent", "shown"))
        is_met = bool(met or meeting) or any(row.get(_across(ledger)) for row in rows)
        if sent and shown and not is_met:
            every = frozenset(row["topic"] for row in rows)
            found.append(Unmet(ledger, every, _told(scope, ledger, sent, shown, "")))
            continue
        if any(row["topic"] is None for row in met):
            continue  # a row that names no topic may be of any
        for row in sent:
            if row["topic"] is not None and row in shown and row not in met:
                told = _told(scope, ledger, [row], [row], f"of topic {row['topic']} ")
                found.append(Unmet(ledger, frozenset({row["topic"]}), told))
    return found


def _told(
    scope: Scope,
    ledger: Ledger,
    sent: Sequence[Mapping[str, Any]],
    shown: Sequence[Mapping[str, Any]],
    where: str,
) -> str:
    """Return what does not meet, with one of each side."""
    is_content = scope.contract.identity is Identity.CONTENT
    what = "payload hashes" if is_content else "ids"
    if scope.contract.id_scope == "session":
        what = "ids, each with its session,"
    one = min(row[f"{ledger}_of_row"] for row in shown)
    other = min(row[f"{ledger}_of_send"] for row in sent)
    return (
        f"none of its {what} {where}is in produced: it has {_short(one)}, produced has {_short(other)}; "
        f"check how each side writes them"
    )


def _short(text: str) -> str:
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f"'{shown}'"
