"""Ledgers without common ids: whether any id of one ledger occurs in `produced` at all.

An id that was read as a number, padded or cut matches no message of the other side. That looks like a loss of
everything; the only sign is that no id at all is on both sides. Docs: docs/reference/taxonomy.md, section 8, 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from unicodedata import category, normalize

from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

_OTHERS: Final = (Ledger.LOG, Ledger.DELIVERED, Ledger.READ)
_LONGEST: Final = 60


def _others(scope: Scope) -> list[Ledger]:
    """Return the ledgers whose ids, or by position topics, are compared with those of the sends."""
    column = "topic" if scope.contract.identity is Identity.POSITION else scope.identity_column
    if not scope.has(Ledger.PRODUCED, column):
        return []
    return [ledger for ledger in _OTHERS if scope.has(ledger, column)]


def with_names_met(
    scope: Scope, rows: Sequence[Mapping[str, Any]], common: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return rows of `topic_suspicions` with `…_meets` set by common payload hashes, or by position common topics.

    By content a row need not belong to a message that has its payload: a read at a position that no send shows
    belongs to none. `common` are the topics with common hashes, as rows of `ledger`, `sent_topic` and `shown_topic`.
    With identity message_id the rows are returned unchanged.
    """
    result = [dict(row) for row in rows]
    if scope.contract.identity is Identity.POSITION:
        for row, ledger in product(result, _others(scope)):
            row[f"{ledger}_meets"] |= row[f"{ledger}_sent"] and row[f"{ledger}_shown"]
        return result
    if scope.contract.identity is not Identity.CONTENT:
        return result
    pairs: dict[Ledger, set[tuple[str | None, str | None]]] = {}
    for row in common:
        pairs.setdefault(Ledger(row["ledger"]), set()).add((row["sent_topic"], row["shown_topic"]))
    for ledger in _others(scope):
        open_rows = [row for row in result if not row[f"{ledger}_meets"]]
        if not any(row[f"{ledger}_sent"] or row[f"{ledger}_shown"] for row in open_rows):
            continue
        topic_pairs = pairs.get(ledger, set())
        for row in open_rows:
            topic = row["topic"]
            row[f"{ledger}_meets"] = any({*pair} <= {topic, None} for pair in topic_pairs)
            row[_across(ledger)] = any(topic in pair or None in pair for pair in topic_pairs)
    return result


def _across(ledger: Ledger) -> str:
    """Return the name of the fact that a topic's ids meet those of another topic."""
    return f"{ledger}_meets_across"


@dataclass(frozen=True)
class Unmet:
    """A ledger none of whose ids is a send's, in these topics, with the `reason` in words."""

    ledger: Ledger
    topics: frozenset[str | None]
    reason: str


def unmet_in(scope: Scope, rows: Sequence[Mapping[str, Any]], clean: frozenset[str | None]) -> list[Unmet]:
    """Return the ledgers that have no id in common with the sends, in all rows that were read or in some topics.

    `rows` are those of `topic_suspicions`; `clean` are the topics of messages that no rule looked at.
    """
    unmet = []
    for ledger in _others(scope):
        meeting = clean if scope.clean is not None and ledger in scope.clean.rows else frozenset()
        met = [row for row in rows if row[f"{ledger}_meets"] or row["topic"] in meeting]
        sent, shown = ([row for row in rows if row[f"{ledger}_{side}"]] for side in ("sent", "shown"))
        is_met = bool(met or meeting) or any(row.get(_across(ledger)) for row in rows)
        if sent and shown and not is_met:
            topics = frozenset(row["topic"] for row in rows)
            unmet.append(Unmet(ledger, topics, _reason(scope, ledger, sent, shown, "")))
            continue
        if any(row["topic"] is None for row in met):
            continue  # a row that names no topic may be of any
        for row in sent:
            if row["topic"] is not None and row in shown and row not in met:
                reason = _reason(scope, ledger, [row], [row], f"of topic {row['topic']} ")
                unmet.append(Unmet(ledger, frozenset({row["topic"]}), reason))
    return unmet


def _reason(
    scope: Scope,
    ledger: Ledger,
    sent: Sequence[Mapping[str, Any]],
    shown: Sequence[Mapping[str, Any]],
    where: str,
) -> str:
    """Return the sentence about ids without a match, with an example of each side."""
    what = {Identity.CONTENT: "payload hashes", Identity.POSITION: "topics"}.get(
        scope.contract.identity, "ids"
    )
    if scope.contract.id_scope == "session":
        what = "ids, each with its session,"
    one = min(row[f"{ledger}_of_row"] for row in shown)
    other = min(row[f"{ledger}_of_send"] for row in sent)
    written = ascii if _look_alike(one, other) else _quoted
    return (
        f"none of its {what} {where}is in produced: it has {written(_short(one))}, produced has "
        f"{written(_short(other))}; check how each side writes them"
    )


def _look_alike(one: str, other: str) -> bool:
    r"""Return whether two texts look the same to people: they differ in spaces, invisible letters or Unicode's forms.

    >>> _look_alike("caf\u00e9", "cafe\u0301"), _look_alike("a-1", "a-2")
    (True, False)
    """
    return _visible(one) == _visible(other)


def _visible(text: str) -> str:
    return "".join(c for c in normalize("NFKC", text) if not category(c).startswith(("C", "Z")))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _quoted(text: str) -> str:
    return f"'{text}'"
