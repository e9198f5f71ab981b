"""Runs the engine on golden and random histories and returns what it says, in the oracle's shape.

One run of the engine costs seconds however small its evidence, so histories that share contract and coverage are judged
in one run: each gets a topic, ids and transactions of its own, which nothing in the taxonomy lets touch another's. A
row that names no topic gets one of its own: what may be of any topic cannot be shown here (test_unknown_topics.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import History
from tests.oracle import OracleCoverage

from tieout.contracts import Budgets
from tieout.engine.balance import balanced
from tieout.engine.classes.key_order import orders_keys
from tieout.engine.classes.reordered import undecided_across_partitions
from tieout.engine.classifying import classified
from tieout.engine.coverage import coverage_of, not_judged_of, with_partitions_shown
from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE, Evidence, LedgerCoverage, Suspicions
from tieout.engine.forms import Forms
from tieout.engine.incarnations import told_apart
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.matching import matched
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import fans_out
from tieout.engine.ranges import with_range_coverage
from tieout.engine.reconciling import breaks_of
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.staging import break_lines
from tieout.engine.statement import identity_errors, partition_counts, partition_rows
from tieout.engine.summaries import counts_of, tallied
from tieout.engine.suspicions import hashes_spelled, shown_by_topic, suspecting, suspicions_in
from tieout.engine.undecided import orders_undecided
from tieout.model import Guarantee, Identity, Ledger, Window
from tieout.verdicts import judge

NOW = datetime(2026, 11, 21, tzinfo=UTC)
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


def engine_statements(
    spark: SparkSession, histories: Sequence[History], *, is_small: bool = True
) -> list[dict[str, Any]]:
    """Return the engine's statement of each history, with its `breaks` as rows, in their order."""
    found: dict[int, dict[str, Any]] = {}
    for batch in batches(histories):
        found.update(zip(batch.places, _judged_together(spark, batch.histories, is_small), strict=True))
    return [found[place] for place in range(len(histories))]


def batches(histories: Sequence[History]) -> list[Batch]:
    """Return the histories in groups that share all but their rows, and what is promised of them.

    Rules find and do not judge: guarantee and budgets are looked at when each history's own statement is.
    """
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, history in enumerate(histories):
        undated = tuple(
            sorted(
                (ledger, _undated(ledger, rows) > 0, _unset(ledger, rows) > 0, any(map(_is_reversed, rows)))
                for ledger, rows in history.rows.items()
            )
        )
        alone = place if _may_uncover(history) else None
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
        key = (terms, history.window, coverage, undated, tuple(sorted(history.rows)), shown, alone)
        groups[key].append(place)
    return [Batch(tuple(places), tuple(histories[p] for p in places)) for places in groups.values()]


def share_of(histories: Sequence[History], share: int, shares: int) -> list[int]:
    """Return the places of the histories of one share, so that processes can judge the shares side by side."""
    return [place for batch in batches(histories)[share::shares] for place in batch.places]


def _judged_together(
    spark: SparkSession, histories: Sequence[History], is_small: bool
) -> list[dict[str, Any]]:
    with suited_to(spark, is_small=is_small, rows=1):
        scope = with_range_coverage(told_apart(scope_together(spark, histories)))
        return statements_of(scope, histories)


def scope_together(spark: SparkSession, histories: Sequence[History]) -> Scope:
    """Return one scope of histories that share all but their rows; `numbered` says whose a row is."""
    first, (owned, present) = histories[0], rows_together(histories)
    return replace(scope_of(spark, first, owned, present), window=marked_window(first.window, len(histories)))


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


def statements_of(scope: Scope, histories: Sequence[History]) -> list[dict[str, Any]]:
    """Return the engine's statement of each history of a scope that holds them together, with its `breaks` as rows."""
    found = matched(scope)
    messages = materialised(classified(scope, found.messages))
    suspected = suspected_of(scope, histories, messages)
    scope = doubting(scope, suspected)
    breaks = materialised(breaks_of(scope, messages, found))
    balance = None
    if found.log is not None and found.bounds is not None:
        balance = balanced(scope, found.log, found.keyed[Ledger.LOG], found.bounds, messages).collect()
    counts = partition_counts(scope, messages).collect()
    partitions = partition_rows(counts, balance, fans_out=fans_out(scope))
    tally = tallied(_with_numbered_sums(scope), numbered(messages), numbered(breaks), "number").collect()
    lines = list(break_lines(breaks))
    open_orders = undecided_across_partitions(scope, messages).collect() if orders_keys(scope) else []
    statements = []
    for number, history in enumerate(histories):
        own = [unmarked(row) for row in partitions if number_of(row["topic"]) == number]
        classes, flags, unconfirmed = counts_of(row for row in tally if int(row["number"]) == number)
        own_scope = suspecting(narrowed(scope, history, number), suspected[number])
        own_scope = with_partitions_shown(own_scope, own)
        statement: dict[str, Any] = {
            "partitions": own,
            "classes": classes,
            "flags": flags,
            "unconfirmed": unconfirmed,
            "undecided": orders_undecided(
                row for row in open_orders if number_of(row["topic"]) == number
            ).counts,
            "coverage": {name: _told(one) for name, one in coverage_of(own_scope).items()},
            "identity_errors": identity_errors(own),
            "not_judged": not_judged_of(own_scope),
            "breaks": [unmarked(line) for line in lines if number_of(_place_of(line)) == number],
        }
        verdict = judge(history.contract, statement)
        statements.append(statement | {"verdict": verdict.verdict.value, "reasons": list(verdict.reasons)})
    return statements


def suspected_of(scope: Scope, histories: Sequence[History], messages: DataFrame) -> list[Suspicions]:
    """Return what is suspected of each history, as if it were judged alone."""
    rows, quiet = shown_by_topic(scope, messages), scope.beside.topics() if scope.beside else frozenset()
    hashes, found = hashes_spelled(scope, rows), []
    for number, history in enumerate(histories):
        own = replace(narrowed(scope, history, number), beside=scope.beside)
        theirs = [row | {"topic": _named(row["topic"])} for row in rows if number_of(row["topic"]) == number]
        quietly = frozenset(_named(topic) for topic in quiet if number_of(topic) == number)
        of_hashes = [
            replace(one, forms={ledger: _theirs(by, number) for ledger, by in one.forms.items()})
            for one in hashes
        ]
        suspected = suspicions_in(own, theirs, of_hashes, quietly)
        nowhere = marked(NO_TOPIC, number)
        found.append(
            replace(
                suspected,
                doubted={
                    name: frozenset(nowhere if topic is None else topic for topic in topics)
                    for name, topics in suspected.doubted.items()
                },
            )
        )
    return found


def _named(topic: str | None) -> str | None:
    """Return the topic as a row names it, None where it names none."""
    return None if topic is None or MARK.sub("", topic) == NO_TOPIC else topic


def _theirs(by_topic: Mapping[str | None, Forms], number: int) -> dict[str | None, Forms]:
    return {_named(topic): forms for topic, forms in by_topic.items() if number_of(topic) == number}


def doubting(scope: Scope, suspected: Sequence[Suspicions]) -> Scope:
    """Return the scope of all histories with what is doubted in the topics of each."""
    doubted: dict[str, frozenset[str | None]] = {}
    for one in suspected:
        for name, topics in one.doubted.items():
            doubted[name] = doubted.get(name, frozenset()) | topics
    return replace(scope, suspicions=Suspicions(doubted))


def _told(coverage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ledger's coverage as its history's own names have it."""
    gap = coverage["gap"]
    return {**coverage, "gap": None if gap is None else MARK.sub("", gap)}


def _with_numbered_sums(scope: Scope) -> Scope:
    """Return the scope with the number of their history beside the counts of quiet messages."""
    if scope.beside is None:
        return scope
    sums = replace(scope.beside.sums, counts=numbered(scope.beside.sums.counts))
    return replace(scope, beside=replace(scope.beside, sums=sums))


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


def numbered(rows: DataFrame) -> DataFrame:
    """Return rows with the number of their history, from their id or else their topic."""
    known = [F.col(name) for name in ("message_id", "topic") if name in rows.columns]
    positions = F.to_json("positions") if "positions" in rows.columns else F.lit(None)
    named = F.coalesce(*known, positions)
    return rows.withColumn("number", F.regexp_extract(named, MARK.pattern, 1))


def _place_of(line: Mapping[str, Any]) -> str | None:
    if line["message_id"] or line["topic"]:
        return line["message_id"] or line["topic"]
    return line["positions"][0].get("topic") if line["positions"] else None


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


def scope_of(
    spark: SparkSession,
    history: History,
    rows: Mapping[Ledger, list[dict[str, Any]]],
    present: Mapping[Ledger, frozenset[str]],
) -> Scope:
    """Return the scope of these rows under the history's contract and coverage."""
    evidence = {}
    for ledger in history.contract.ledgers:
        found = rows.get(ledger, [])
        values = [tuple(row.get(name) for name in SCHEMAS[ledger].names) for row in found]
        evidence[ledger] = Evidence(
            ledger=ledger,
            rows=spark.createDataFrame(values, SCHEMAS[ledger]),
            present=present.get(ledger, frozenset()),
            coverage=coverage_for(ledger, history.coverage.get(ledger), found),
            may_lack_id=any(row.get("message_id") is None for row in found),
            may_lack_position=any(_is_unplaced(row) for row in found),
            may_lack_identity=any(row.get("message_id") is None and _is_unplaced(row) for row in found),
        )
    return Scope(history.contract, history.window, evidence)


def _is_unplaced(row: Mapping[str, Any]) -> bool:
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
