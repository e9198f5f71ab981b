"""Traces messages through the ledgers: every row about them, and how the engine judges them.

With a window, the whole window is judged and the answer ends with the engine's own findings: how a message is judged
depends on its neighbours (frontiers, coverage, which message an effect belongs to), so a shortcut could say something
else. Without a window nothing is judged; each ledger is then scanned once, filtered to the rows in question.

Docs: docs/reference/trace.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Frame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.judging.task import judged_by
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.materialising import materialised
from tieout.engine.reading import read_evidence
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.statement.coverage import coverage_of
from tieout.engine.statement.numbers import Tables, suspected
from tieout.engine.supported import refuse_other_windows
from tieout.engine.topic_generations import with_topic_generations
from tieout.model import POSITION_LEDGERS, Identity, Ledger, Window
from tieout.reporting.trace import LedgerRows, RequestedBy, Subject, TraceRequest, trace_document
from tieout.verdicts import severity_of_break

ROWS_SHOWN: Final = 50
"""Rows of one ledger that an answer shows of one message."""
MESSAGES_SHOWN: Final = 20
POSITIONS_KEPT: Final = 200
_CONSUMER_SIDE: Final = (Ledger.DELIVERED, Ledger.READ)
_PLACES: Final = ("topic", "partition", "offset")

Progress = Callable[[str], None]
Position = tuple[str, int, int]


@dataclass(frozen=True)
class _Target:
    """A message to find rows of: its id, its positions, and its key in the engine's matching."""

    message_id: str | None = None
    positions: frozenset[Position] = frozenset()
    key: str | None = None
    judged: Mapping[str, Any] | None = None


def trace(
    spark: SparkSession,
    contract: Contract,
    window: Window | None,
    request: TraceRequest,
    *,
    now: datetime,
    progress: Progress = lambda _step: None,
) -> dict[str, Any]:
    """Return the requested trace, as docs/reference/trace.md describes it; judged where a window is given.

    Raises:
        UsageError: where the window is not cut as the contract says.
        SourceError: where a ledger's source cannot be read as the contract describes it.
    """
    if window is not None:
        refuse_other_windows(contract, window)
    progress("reading the ledgers")
    read_as = window or Window(now - timedelta(hours=1), now)
    evidence = read_evidence(spark, contract, read_as, now)
    scope = Scope(contract, read_as, evidence)
    with suited_to(spark, is_small=not scope.is_large, rows=scope.row_count):
        return traced(scope, request, is_judged=window is not None, progress=progress)


def traced(
    scope: Scope, request: TraceRequest, *, is_judged: bool = True, progress: Progress = lambda _step: None
) -> dict[str, Any]:
    """Return the trace from evidence that has been read.

    A row is about a message if it has its id or one of its positions; a commit, if it had passed such a position. If an
    id is used for two contents, or messages are identified by content, the engine's matching decides which message a
    row belongs to.
    """
    scope = with_topic_generations(scope)
    progress("looking for the message")
    targets, total = _identified(scope, request), 1
    if request.by == RequestedBy.KEY:
        targets, total = _with_key(scope, request.digests())
    if is_judged and any(_rows_by_target(scope, targets).values()):
        progress("judging")
        tables = judged_by(scope, requested=_terms_of(request)).tables
        scope = suspected(scope, tables)
        known = [_target_of(one, request) for one in tables["traced_messages"]]
        if known:
            targets, total = _with_places(known, targets), tables["traced_total"][0]["messages"]
            breaks = [_with_severity(scope, one) for one in tables["traced_breaks"]]
            progress("gathering the rows")
            return _document(
                scope, request, targets, _rows_by_target(scope, targets, tables), breaks, total, is_judged
            )
    return _document(scope, request, targets, _rows_by_target(scope, targets), [], total, is_judged)


def _terms_of(request: TraceRequest) -> dict[str, Any]:
    """Return the request as the variables of a bucket."""
    position = None if request.position is None else dict(zip(_PLACES, request.position, strict=True))
    return {
        "requested_by": request.by.value,
        "requested_id": request.value if request.by == RequestedBy.MESSAGE_ID else None,
        "requested_position": position,
        "requested_digests": list(request.digests()) if request.by == RequestedBy.KEY else [],
    }


def _with_severity(scope: Scope, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a break as the engine found it, without nulls, and with its severity."""
    known = {name: value for name, value in found.items() if value is not None}
    return known | {"severity": severity_of_break(scope.contract, found["class"], found["flags"])}


def _document(
    scope: Scope,
    request: TraceRequest,
    targets: Sequence[_Target],
    rows_by_target: Mapping[int, Mapping[Ledger, LedgerRows]],
    breaks: Sequence[dict[str, Any]],
    total: int,
    is_judged: bool,
) -> dict[str, Any]:
    """Return the trace of the target messages; a message without any row is left out."""
    subjects = [
        Subject(
            message_id=one.message_id,
            positions=tuple(sorted(one.positions)),
            judged=one.judged,
            breaks=tuple(found for found in breaks if _is_of(found, one)),
            ledger_rows=rows_by_target[number],
        )
        for number, one in enumerate(targets)
        if rows_by_target.get(number)
    ]
    return trace_document(
        scope.contract,
        scope.window if is_judged else None,
        request,
        subjects,
        total=total if subjects else 0,
        coverage=coverage_of(scope) if is_judged else None,
    )


def _identified(scope: Scope, request: TraceRequest) -> list[_Target]:
    """Return the one message that an id or a position identifies."""
    if request.position is not None:
        return [_Target(positions=frozenset({request.position}))]
    if request.by == RequestedBy.MESSAGE_ID:
        return [_Target(request.value, _positions(scope, F.col("message_id") == request.value))]
    return []


def _positions(scope: Scope, condition: Column) -> frozenset[Position]:
    """Return positions, at most 200 per ledger, of the rows for which the condition holds."""
    named: set[Position] = set()
    for found in scope.evidence.values():
        if {"message_id", *_PLACES} <= found.present:
            rows = found.rows.filter(condition).select(*_PLACES).dropna().filter(F.col("offset") >= 0)
            first = rows.distinct().orderBy(*_PLACES).limit(POSITIONS_KEPT)
            named |= {(row["topic"], row["partition"], row["offset"]) for row in first.collect()}
    return frozenset(named)


def _with_key(scope: Scope, digests: Sequence[str]) -> tuple[list[_Target], int]:
    """Return the first messages whose rows have one of the key hashes, and how many there are."""
    named = [
        found.rows.filter(F.col("key_hash").isin(*digests)).select(
            "message_id", *_PLACES, F.col(TIME_COLUMN[ledger]).alias("at")
        )
        for ledger, found in scope.evidence.items()
        if "key_hash" in found.present
    ]
    if not named:
        return [], 0
    place = F.when(F.col("message_id").isNull(), F.struct(*_PLACES))
    rows = reduce(DataFrame.unionByName, named).groupBy("message_id", place.alias("place"))
    messages = materialised(
        rows.agg(F.min("at").alias("at")).filter("message_id IS NOT NULL OR place IS NOT NULL")
    )
    first = messages.orderBy(F.col("at").asc_nulls_last(), "message_id", "place").limit(MESSAGES_SHOWN)
    targets = []
    for row in first.collect():
        if row["message_id"] is not None:
            has_id = F.col("message_id") == row["message_id"]
            targets.append(_Target(row["message_id"], _positions(scope, has_id)))
        elif None not in tuple(row["place"]):
            targets.append(_Target(positions=frozenset({tuple(row["place"])})))
    return targets, messages.count()


def _target_of(known: Mapping[str, Any], request: TraceRequest) -> _Target:
    """Return a judged message with its positions, and the position of the request."""
    places = {tuple(place.get(name) for name in _PLACES) for place in known["positions"] or ()}
    positions = {place for place in places if None not in place}
    if request.position is not None:
        positions.add(request.position)
    return _Target(known.get("message_id"), frozenset(positions), known["key"], known)


def _with_places(known: list[_Target], named: Sequence[_Target]) -> list[_Target]:
    """Return the messages with the positions of all rows with their id, if only one message has this id."""
    ids = [one.message_id for one in known]
    places = {
        one.message_id: one.positions for one in named if one.message_id and ids.count(one.message_id) == 1
    }
    return [
        replace(one, positions=one.positions | places.get(one.message_id or "", one.positions))
        for one in known
    ]


def _at(rows: DataFrame, positions: Iterable[Position]) -> Column:
    """Return whether a row names one of the positions; false where the rows have no positions."""
    is_match = F.lit(False)
    if set(_PLACES) <= set(rows.columns):
        for (topic, partition), offsets in _by_partition(positions).items():
            is_in = (F.col("topic") == topic) & (F.col("partition") == partition)
            is_match |= is_in & F.col("offset").isin(*offsets)
    return is_match


def _by_partition(positions: Iterable[Position]) -> dict[tuple[str, int], list[int]]:
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(positions):
        offsets.setdefault((topic, partition), []).append(offset)
    return offsets


def _rows_by_target(
    scope: Scope, targets: Sequence[_Target], tables: Tables | None = None
) -> dict[int, dict[Ledger, LedgerRows]]:
    """Return per target message, by its index, what each ledger shows; nothing where no row is about it.

    Where an id does not identify one message, the `tables` of the engine decide. A commit alone shows nothing: it has
    passed every position below it.
    """
    ids = [one.message_id for one in targets if one.message_id is not None]
    by_key = tables is not None and (scope.contract.identity == Identity.CONTENT or len(set(ids)) < len(ids))
    rows_by_target: dict[int, dict[Ledger, LedgerRows]] = {number: {} for number in range(len(targets))}
    for ledger, evidence in scope.evidence.items():
        if ledger is Ledger.ASSIGNED or not targets:
            continue
        if by_key and tables is not None and ledger not in POSITION_LEDGERS:
            found = _rows_by_key(tables[f"traced_{ledger.value}"], targets)
        else:
            found = _collected(
                evidence.rows, ledger, [_is_about(scope, evidence.rows, ledger, one) for one in targets]
            )
        for number, shown in found.items():
            rows_by_target[number][ledger] = shown
    return {
        number: ledgers if set(ledgers) - {*POSITION_LEDGERS} else {}
        for number, ledgers in rows_by_target.items()
    }


def _rows_by_key(rows: Sequence[Mapping[str, Any]], targets: Sequence[_Target]) -> dict[int, LedgerRows]:
    """Return what a ledger shows of each message by the engine's key, given its traced rows."""
    found = {}
    for number, one in enumerate(targets):
        of_one = [row for row in rows if row["key"] == one.key]
        if of_one:
            proofs = (
                {name: value for name, value in row["proof"].items() if value is not None} for row in of_one
            )
            found[number] = LedgerRows(tuple(proofs), of_one[0]["total"])
    return found


def _is_about(scope: Scope, rows: DataFrame, ledger: Ledger, one: _Target) -> Column:
    if ledger in POSITION_LEDGERS:
        passed = F.lit(False)
        for (topic, partition), offsets in _by_partition(one.positions).items():
            is_in = (F.col("topic") == topic) & (F.col("partition") == partition)
            passed |= is_in & F.exists(F.array(*map(F.lit, offsets)), _is_covered)
        return passed & scope.is_ours(ledger)
    is_match = _at(rows, one.positions)
    return is_match if one.message_id is None else is_match | (F.col("message_id") == one.message_id)


def _is_covered(offset: Column) -> Column:
    """Return whether a commit covers the offset: from the beginning where it does not say from where."""
    begins_below = F.coalesce(F.col("first_offset") <= offset, F.lit(True))
    return begins_below & (offset < F.col("committed_offset"))


def _collected(rows: DataFrame, ledger: Ledger, about: Sequence[Column]) -> dict[int, LedgerRows]:
    """Return per condition its first rows in time and their number, in one pass over the ledger."""
    numbers = F.array_compact(
        F.array(*[F.when(condition, F.lit(place)) for place, condition in enumerate(about)])
    )
    canonical = [name for name in SCHEMAS[ledger].names if name in rows.columns]
    offset = "committed_offset" if ledger in POSITION_LEDGERS else "offset"
    each = Frame.partitionBy("number")
    in_time = each.orderBy(F.col(TIME_COLUMN[ledger]).asc_nulls_last(), "topic", "partition", offset, "line")
    placed = (
        rows.withColumn("numbers", numbers)
        .filter(F.size("numbers") > 0)
        .withColumns({"number": F.explode("numbers"), "line": F.to_json(F.struct(*canonical))})
        .withColumns({"place": F.row_number().over(in_time), "total": F.count("*").over(each)})
    )
    first = placed.filter(F.col("place") <= ROWS_SHOWN).select("number", "place", "total", "line")
    shown: dict[int, list[Any]] = {}
    for row in sorted(first.collect(), key=lambda row: (row["number"], row["place"])):
        shown.setdefault(row["number"], []).append(row)
    return {
        number: LedgerRows(tuple(json.loads(row["line"]) for row in found), found[0]["total"])
        for number, found in shown.items()
    }


def _is_of(found: Mapping[str, Any], one: _Target) -> bool:
    if "key" in found:
        return bool(found["key"] == one.key)
    places = {tuple(place.get(name) for name in _PLACES) for place in found["positions"]}
    return bool(places & one.positions)
