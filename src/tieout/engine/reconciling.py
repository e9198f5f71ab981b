"""One run: evidence → matched → classified → breaks and statement → verdict.

A run is a pure function of contract, window and evidence; `run_id` and `now` only label it, and `now` is also the
extraction time of sources that are read as a snapshot. Docs: docs/reference/taxonomy.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout import settings
from tieout.contracts import Contract
from tieout.engine.balance import balanced
from tieout.engine.breaks import (
    broken_messages,
    lined_up,
    named_messages,
    named_standing,
    places_of_breaks,
)
from tieout.engine.causes import with_causes, with_standing_causes
from tieout.engine.classes.disagreement import position_disagreements
from tieout.engine.classes.key_order import orders_keys
from tieout.engine.classes.ranges import range_breaks
from tieout.engine.classes.reordered import (
    reorder_across_partitions,
    reorder_consumer,
    reorder_output,
    reorder_producer,
    shows_turns,
    with_order_keys,
)
from tieout.engine.classes.standing import standing_breaks
from tieout.engine.classes.stretches import SKIPPED_NEEDS, commit_stale, skipped
from tieout.engine.classifying import classified
from tieout.engine.clocks import with_clocks_apart
from tieout.engine.coverage import (
    coverage_of,
    limits_of,
    missing_for,
    not_judged_of,
    standing_is_told,
    with_partitions_shown,
)
from tieout.engine.incarnations import told_apart
from tieout.engine.judging.bucket import Limits
from tieout.engine.judging.numbers import numbers_of, suspected
from tieout.engine.judging.task import judged_by
from tieout.engine.levels import Settled, settled_window
from tieout.engine.matching import Matched, matched
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import fans_out
from tieout.engine.proof import with_rows_at_positions, with_rows_of_messages
from tieout.engine.quiet import Quiet
from tieout.engine.ranges import with_range_coverage
from tieout.engine.reading import open_ledgers
from tieout.engine.scope import Scope
from tieout.engine.session import set_to, suited_to
from tieout.engine.settled import no_breaks
from tieout.engine.statement import Numbers, identity_errors, partition_counts, partition_rows
from tieout.engine.summaries import counts_of, incidents_of, latency_of, sampled_latency, tallied
from tieout.engine.supported import refuse_other_windows
from tieout.engine.suspicions import with_suspicions
from tieout.engine.undecided import Undecided, undecided_of
from tieout.model import BreakClass, Identity, Ledger, Window
from tieout.reporting.schema import SCHEMA_VERSION
from tieout.verdicts import budgets_of, judge, severities

INCIDENTS_KEPT: Final = 10_000
BREAKS_KEPT: Final = 100_000

BREAK_COLUMNS: Final = (
    "break_id", "class", "flags", "message_id", "producer_id", "topic", "partition", "offset", "positions", "locus",
    "cause", "admissible", "rule", "severity", "incident_id", "evidence", "kind",
)  # fmt: skip
_KEPT_COLUMNS: Final = (*BREAK_COLUMNS, "is_covered", "key")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Reconciliation:
    """What one run found: the statement, ready for JSON, and every break, one row each."""

    statement: dict[str, Any]
    breaks: DataFrame


def reconcile(
    spark: SparkSession,
    contract: Contract,
    window: Window,
    *,
    run_id: str,
    now: datetime,
    progress: Progress = lambda _step: None,
) -> Reconciliation:
    """Return the statement of one window of the contract's pipeline, and its breaks.

    Raises:
        UsageError: where the window is not cut as the contract says.
        SourceError: where a ledger's source cannot be read as the contract describes it.
    """
    refuse_other_windows(contract, window)
    progress("reading the ledgers")
    opened = open_ledgers(spark, contract, window, now)
    found = settled_window(contract, window, opened, progress) if contract.match == "auto" else None
    if isinstance(found, Settled):
        return _of_settled(found, run_id=run_id, now=now)
    scope = found or Scope(contract, window, {ledger: known.kept() for ledger, known in opened.items()})
    with suited_to(spark, is_small=not scope.is_large, rows=scope.row_count):
        return reconciled(scope, run_id=run_id, now=now, progress=progress)


def _of_settled(found: Settled, *, run_id: str, now: datetime) -> Reconciliation:
    """Return the reconciliation of a window that the first level settled: every message delivered, no break."""
    latency = sampled_latency(found.sums, None)
    balance = None if found.balance is None else found.balance.collect()
    partitions = partition_rows(found.sums.counts.collect(), balance, fans_out=False)
    numbers = Numbers(
        partitions=partitions,
        classes={BreakClass.DELIVERED.value: latency["count"]} if latency["count"] else {},
        flags={},
        unconfirmed={},
        undecided=Undecided(),
        latency=latency,
        incidents=[],
        breaks_total=0,
    )
    scope = with_partitions_shown(found.scope, partitions)
    statement = assembled(scope, numbers) | {"run_id": run_id, "generated_at": _iso(now)}
    return Reconciliation(statement, no_breaks(found.scope, BREAK_COLUMNS))


def reconciled(
    scope: Scope, *, run_id: str, now: datetime, progress: Progress = lambda _step: None
) -> Reconciliation:
    """Return the reconciliation of evidence that has been read: the engine without its sources."""
    scope = told_apart(scope)
    if fits_one_bucket(scope):
        return _judged(scope, run_id=run_id, now=now, progress=progress)
    scope = with_range_coverage(scope)
    progress("matching")
    found = matched(scope)
    messages = materialised(classified(scope, found.messages))
    scope = with_suspicions(scope, messages)
    progress("classifying")
    kept, limits = _explained(scope, messages, found)
    breaks = materialised(kept)
    if limits:
        scope = replace(scope, suspicions=replace(scope.suspicions, limits=limits))
    progress("adding up")
    statement = statement_of(scope, messages, found, breaks) | {
        "run_id": run_id,
        "generated_at": _iso(now),
    }
    return Reconciliation(statement, breaks.drop("is_covered", "key"))


def fits_one_bucket(scope: Scope) -> bool:
    """Return whether the rows that the rules are put to are few enough for one task."""
    return scope.beside is None and scope.row_count <= settings.bucket().rows


def _judged(scope: Scope, *, run_id: str, now: datetime, progress: Progress) -> Reconciliation:
    """Return the reconciliation of evidence that one task judges."""
    progress("judging")
    tables, breaks = judged_by(scope, Limits(memory_bytes=settings.bucket().memory))
    scope = suspected(scope, tables)
    numbers = numbers_of(scope, tables)
    statement = assembled(with_partitions_shown(scope, numbers.partitions), numbers)
    told = _with_severity(scope, breaks).select(*BREAK_COLUMNS)
    return Reconciliation(statement | {"run_id": run_id, "generated_at": _iso(now)}, told)


def breaks_of(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return every break of the window with id, incident, cause, severity and the rows that prove it."""
    return _explained(scope, messages, found)[0]


def _explained(scope: Scope, messages: DataFrame, found: Matched) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the breaks, and why some of their causes are left open.

    Most windows are clean: neighbours are lined up and proof is gathered only where there is something to explain.
    """
    of_messages, limits = _proved_messages(scope, messages, found)
    proved = [*of_messages, *_proved_standing(scope, messages, found)]
    if not proved:
        return no_breaks(scope, _KEPT_COLUMNS), ()
    judged = [_with_severity(scope, one).select(*_KEPT_COLUMNS) for one in proved]
    return reduce(DataFrame.unionByName, judged), limits


def _with_severity(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks with the severity of their class, or of the flag PHANTOM_ABORTED."""
    loudness = {name: severity.value for name, severity in severities(scope.contract).items()}
    by_class = F.create_map(*[F.lit(word) for pair in loudness.items() for word in pair])
    is_aborted = F.array_contains("flags", BreakClass.PHANTOM_ABORTED.value)
    gravest = F.when(is_aborted, BreakClass.PHANTOM_ABORTED.value).otherwise(F.col("class"))
    return breaks.withColumn("severity", F.try_element_at(by_class, gravest))


def _proved_messages(
    scope: Scope, messages: DataFrame, found: Matched
) -> tuple[list[DataFrame], tuple[str, ...]]:
    """Return the breaks of messages with ids, cause and the rows of their messages, and why causes are left open.

    The list is empty where none broke.
    """
    places = materialised(places_of_breaks(messages))
    if places.isEmpty():
        return [], ()
    line = materialised(lined_up(messages, places))
    caused = materialised(with_causes(scope, broken_messages(messages), line, found))
    left, limits = with_clocks_apart(scope, caused, messages, found)
    named = materialised(named_messages(scope, left))
    return [with_rows_of_messages(named, found.keyed)], limits


def _proved_standing(scope: Scope, messages: DataFrame, found: Matched) -> list[DataFrame]:
    """Return the breaks that stand by themselves with ids, cause and the rows at their positions, as above."""
    standing = [
        *standing_breaks(scope, messages, found),
        *range_breaks(scope, messages, found),
        *position_disagreements(scope, messages, found),
        *_reorders(scope, messages, found),
        *_stretches(scope, messages, found),
    ]
    by_themselves = materialised(reduce(DataFrame.unionByName, standing))
    if by_themselves.isEmpty():
        return []
    named = materialised(named_standing(scope, with_standing_causes(scope, by_themselves, found)))
    return [with_rows_at_positions(named, _provable(scope, named, found))]


def _provable(scope: Scope, breaks: DataFrame, found: Matched) -> Mapping[Ledger, DataFrame]:
    """Return the rows of each ledger that may prove breaks by their positions."""
    at = breaks.select(F.explode("positions").alias("at")).select("at.*").distinct()
    if scope.beside is None or at.isEmpty():
        return found.keyed
    quiet = scope.beside.keyed_at(materialised(at), scope.contract.identity)
    return {
        ledger: rows.unionByName(quiet[ledger], allowMissingColumns=True) if ledger in quiet else rows
        for ledger, rows in found.keyed.items()
    }


def _reorders(scope: Scope, messages: DataFrame, known: Matched) -> list[DataFrame]:
    """Return the reorders that the evidence allows to judge, quiet messages among them."""
    beside, found = scope.beside, []

    def among(rows: DataFrame, quiet: Callable[[Quiet], DataFrame]) -> DataFrame:
        return rows if beside is None else rows.unionByName(quiet(beside), allowMissingColumns=True)

    if scope.has(Ledger.PRODUCED, "sequence"):
        found.append(reorder_producer(scope, among(messages, Quiet.sent)))
    if shows_turns(scope):
        handed = known.keyed[scope.reader_ledger].filter(F.col("effect_state").isin("ok", "again"))
        if scope.contract.ordering == "key":
            handed = among(with_order_keys(handed, messages), Quiet.read_by_key)
        else:
            handed = among(handed, Quiet.read)
        found.append(reorder_consumer(scope, handed))
    if scope.has(Ledger.PRODUCED, "key_hash") and scope.contract.identity != Identity.CONTENT:
        may_cross = (
            orders_keys(scope) and beside is None
        )  # beside quiet messages no key lies in several partitions
        found.append(reorder_output(scope, among(messages, Quiet.arrived), may_cross=may_cross))
        if may_cross:
            found.append(reorder_across_partitions(scope, messages))
    return found if beside is None else [beside.computed(rows) for rows in found]


def _stretches(scope: Scope, messages: DataFrame, found: Matched) -> list[DataFrame]:
    """Return the stretches of reads and commits that the evidence allows to judge."""
    stretches: list[DataFrame] = []
    if scope.contract.is_queue:
        return stretches
    if not missing_for(scope, SKIPPED_NEEDS):
        stretches.append(skipped(scope, messages, found))
    if found.commits is not None and standing_is_told(scope, BreakClass.COMMIT_STALE):
        stretches.append(commit_stale(scope, found.commits, found.progress))
    return stretches


def statement_of(scope: Scope, messages: DataFrame, found: Matched, breaks: DataFrame) -> dict[str, Any]:
    """Return the statement without `run_id` and `generated_at`."""
    balance = None
    if found.log is not None and found.bounds is not None:
        balance = balanced(scope, found.log, found.keyed[Ledger.LOG], found.bounds, messages).collect()
    counts = partition_counts(scope, messages).collect()
    partitions = partition_rows(counts, balance, fans_out=fans_out(scope))
    classes, flags, unconfirmed = counts_of(tallied(scope, messages, breaks).collect())
    incidents = incidents_of(breaks, INCIDENTS_KEPT)
    numbers = Numbers(
        partitions=partitions,
        classes=classes,
        flags=flags,
        unconfirmed=unconfirmed,
        undecided=undecided_of(scope, messages),
        latency=_latency(scope, messages),
        incidents=incidents,
        breaks_total=_total(breaks, incidents),
    )
    return assembled(with_partitions_shown(scope, partitions), numbers)


def _latency(scope: Scope, messages: DataFrame) -> dict[str, Any]:
    if scope.beside is None:
        return latency_of(messages)
    with set_to(messages.sparkSession, scope.beside.roomy):
        return sampled_latency(scope.beside.sums, messages)


def _total(breaks: DataFrame, incidents: list[dict[str, Any]]) -> int:
    """Return how many breaks there are, given the incidents that are kept; where that is all, they say it."""
    if len(incidents) < INCIDENTS_KEPT:
        return sum(incident["breaks"] for incident in incidents)
    return breaks.count()


def assembled(scope: Scope, numbers: Numbers) -> dict[str, Any]:
    """Return the statement of these numbers, judged, without `run_id` and `generated_at`."""
    contract, window = scope.contract, scope.window
    statement: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "pipeline": contract.pipeline,
        "group": contract.group,
        "contract_digest": contract.digest,
        "window": {"start": _iso(window.start), "end": _iso(window.end)} | _offsets_of(window),
        "guarantee": contract.guarantee.value,
        "identity": contract.identity.value,
        "effects": scope.effect_ledger.value,
        "not_judged": not_judged_of(scope),
        "limits": [*limits_of(scope, numbers.flags), *numbers.undecided.sentences],
        "coverage": coverage_of(scope),
        "partitions": numbers.partitions,
        "classes": numbers.classes,
        "flags": numbers.flags,
        "unconfirmed": numbers.unconfirmed,
        "undecided": numbers.undecided.counts,
        "identity_errors": identity_errors(numbers.partitions),
        "latency": numbers.latency,
        "incidents": numbers.incidents,
        "breaks_total": numbers.breaks_total,
        "breaks_truncated": numbers.breaks_total > BREAKS_KEPT,
    }
    statement["budgets"] = budgets_of(contract, statement)
    judgement = judge(contract, statement)
    statement["verdict"] = judgement.verdict.value
    statement["reasons"] = list(judgement.reasons)
    statement["checks"] = [
        {
            "rule": c.rule,
            "severity": c.severity.value,
            "status": c.status.value,
            "observed": c.observed,
            "limit": c.limit,
        }
        for c in judgement.checks
    ]
    return statement


def _offsets_of(window: Window) -> dict[str, Any]:
    """Return the window's ranges of offsets for the statement, nothing where it is a window of time."""
    named = [
        {"topic": one.topic, "partition": one.partition, "from": one.start, "to": one.end}
        for one in sorted(window.offsets)
    ]
    return {"offsets": named} if named else {}


def _iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
