"""Histories that share contract and coverage, put together to be judged in one run, and told apart again.

Each gets a topic, ids and transactions of its own, which nothing in the taxonomy lets touch another's. A row that names
no topic gets one of its own: what may be of any topic cannot be shown here (test_unknown_topics.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.engine.histories import History
from tests.oracle import OracleCoverage
from tests.oracle.forms import form_of

from tieout.contracts import Budgets
from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE, LedgerCoverage
from tieout.engine.ledger import TIME_COLUMN
from tieout.engine.scope import Scope
from tieout.model import Guarantee, Identity, Ledger, Window

MARK = re.compile(r"~(\d+)~")
"""Whose a name is, before the name itself: so the names of one history keep their order."""
NO_TOPIC = "none"
_CONTENTS = frozenset({"payload_hash", "key_hash", "header_hash", "record_timestamp"})
"""Columns in which null is a value where the source has them: one run can only judge histories that agree in them."""


@dataclass(frozen=True)
class Batch:
    """Histories that one run can judge, with their place in the list they came in."""

    places: tuple[int, ...]
    histories: tuple[History, ...]


def batches(histories: Sequence[History]) -> list[Batch]:
    """Return the histories in groups that share all but their rows, and what is promised of them.

    Rules find and do not judge: guarantee and budgets are looked at when each history's own statement is.
    """
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, history in enumerate(histories):
        alone = place if _may_uncover(history) or _has_two_forms(history) else None
        coverage = tuple(sorted((ledger, repr(covered)) for ledger, covered in history.coverage.items()))
        unsaid = {
            ledger: spec.model_copy(update={"coverage": None})
            for ledger, spec in history.contract.ledgers.items()
        }
        promised = {
            "pipeline": "p",
            "guarantee": Guarantee.EXACTLY_ONCE,
            "budgets": Budgets(),
            "ledgers": unsaid,
        }
        terms = history.contract.model_copy(update=promised).to_json()
        shown = tuple(
            sorted((ledger, *sorted(found & _CONTENTS)) for ledger, found in history.present.items())
        )
        key = (terms, history.window, coverage, tuple(sorted(history.rows)), shown, alone)
        groups[key].append(place)
    return [Batch(tuple(places), tuple(histories[p] for p in places)) for places in groups.values()]


def share_of(histories: Sequence[History], share: int, shares: int) -> list[int]:
    """Return the places of the histories of one share, so that processes can judge the shares side by side."""
    return [place for batch in batches(histories)[share::shares] for place in batch.places]


def rows_together(
    histories: Sequence[History],
) -> tuple[dict[Ledger, list[dict[str, Any]]], dict[Ledger, frozenset[str]]]:
    """Return the rows of each ledger, marked as their history's own, and the columns that any of them has."""
    first = histories[0]
    owned: dict[Ledger, list[dict[str, Any]]] = {ledger: [] for ledger in first.rows}
    by_content = first.contract.identity is Identity.CONTENT
    for number, history in enumerate(histories):
        for ledger, rows in history.rows.items():
            owned[ledger] += [_marked(row, number, by_content=by_content) for row in rows]
    present = {
        ledger: frozenset().union(*(one.present[ledger] for one in histories)) for ledger in first.rows
    }
    return owned, present


def marked_window(window: Window, count: int) -> Window:
    """Return the window with its ranges of offsets for the topics of every history."""
    ranges = [
        replace(one, topic=marked(one.topic, number)) for number in range(count) for one in window.offsets
    ]
    return replace(window, offsets=tuple(ranges))


def narrowed(scope: Scope, history: History, number: int) -> Scope:
    """Return the batch's scope with one history's own columns and coverage."""
    evidence = {}
    for ledger, found in scope.evidence.items():
        coverage = coverage_for(ledger, history.coverage.get(ledger), history.rows.get(ledger, []))
        if found.coverage.complete_until is None:  # the engine itself may find that a ledger covers nothing
            coverage = replace(coverage, complete_until=None)
        lacking = tuple(text for text in found.coverage.lacking if number_of(text) == number)
        coverage = replace(coverage, lacking=lacking)
        present = history.present.get(ledger, frozenset()) & found.present
        evidence[ledger] = replace(found, present=present, coverage=coverage)
    return Scope(history.contract, history.window, evidence)


def _marked(row: Mapping[str, Any], number: int, *, by_content: bool) -> dict[str, Any]:
    """Return the row as history `number`'s own; where payloads are identities, they are its own, too."""
    own = dict(row) | {"topic": marked(row.get("topic") or NO_TOPIC, number)}
    for name in ("message_id", "transaction_id", "consumer_id", *(("payload_hash",) if by_content else ())):
        if row.get(name) is not None:
            own[name] = marked(row[name], number)
    if row.get("partitions"):
        own["partitions"] = [p | {"topic": marked(p["topic"] or NO_TOPIC, number)} for p in row["partitions"]]
    return own


def marked(name: str, number: int) -> str:
    """Return the name as history `number`'s own."""
    return f"~{number}~{name}"


def unmarked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row as its history has it, without the number."""
    plain = dict(row)
    for name in ("topic", "message_id"):
        if plain.get(name) is not None:
            plain[name] = MARK.sub("", plain[name])
    if plain.get("topic") == NO_TOPIC:
        plain["topic"] = None
    return plain


def number_of(name: str | None) -> int | None:
    """Return the number of the history that a name belongs to, None where it is no history's."""
    found = None if name is None else MARK.search(name)
    return None if found is None else int(found[1])


def _may_uncover(history: History) -> bool:
    """Return whether only some rows name their topic by its id: then a whole ledger may cover nothing (76)."""
    placed = [row for rows in history.rows.values() for row in rows if not _is_nowhere(row)]
    return len({row.get("topic_id") is None for row in placed}) > 1


def _has_two_forms(history: History) -> bool:
    """Return whether names differ only in how they are written, which a mark would hide (91)."""
    column = "payload_hash" if history.contract.identity is Identity.CONTENT else "message_id"
    names = {row[column] for rows in history.rows.values() for row in rows if row.get(column) is not None}
    return len({form_of(name) for name in names}) < len(names)


def _is_nowhere(row: Mapping[str, Any]) -> bool:
    return row.get("offset") is None and row.get("committed_offset") is None


def _is_reversed(row: Mapping[str, Any]) -> bool:
    sent, done = row.get("attempted_at"), row.get("completed_at")
    return sent is not None and done is not None and done + COARSEST_CLOCK < sent


def _unset(ledger: Ledger, rows: Iterable[Mapping[str, Any]]) -> int:
    times = [row.get(TIME_COLUMN[ledger]) for row in rows]
    return sum(time is not None and time < EARLIEST_PLAUSIBLE for time in times)


def _undated(ledger: Ledger, rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(row.get(TIME_COLUMN[ledger]) is None for row in rows)


def is_unplaced(row: Mapping[str, Any]) -> bool:
    """Return whether a row names no offset, or the one that stands for none."""
    return row.get("offset") is None or row["offset"] < 0


def coverage_for(
    ledger: Ledger, covered: OracleCoverage | None, rows: Sequence[Mapping[str, Any]]
) -> LedgerCoverage:
    """Return the ledger's coverage; a declared ledger without any is absent."""
    return LedgerCoverage(
        is_present=covered is not None,
        covers_from=covered.covers_from if covered else None,
        complete_until=covered.complete_until if covered else None,
        names_all_producers=bool(covered and covered.names_all_producers),
        is_share_group=bool(getattr(covered, "is_share_group", False)),
        is_within_tolerance=bool(covered and covered.is_sound),
        has_sequence_gaps=False,
        rows=len(rows),
        unparsed=0,
        # A row that only states a log's bounds has no time and is no record.
        undated=_undated(ledger, [row for row in rows if ledger != Ledger.LOG]),
        reversed=sum(map(_is_reversed, rows)),
        unset=_unset(ledger, rows),
        digests=(),
        notes=(),
    )
