"""One run: evidence → matched → classified → breaks and statement → verdict.

A run is a pure function of contract, window and evidence; `run_id` and `now` only label it, and `now` is also the
extraction time of sources that are read as a snapshot. Docs: docs/reference/taxonomy.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.balance import balanced
from tieout.engine.breaks import all_breaks, lined_up, message_breaks, with_causes, with_runs
from tieout.engine.classes.reordered import reorder_consumer, reorder_output, reorder_producer
from tieout.engine.classes.standing import standing_breaks
from tieout.engine.classifying import classified
from tieout.engine.coverage import coverage_of, not_judged_of
from tieout.engine.matching import Matched, matched
from tieout.engine.materialising import materialised
from tieout.engine.proof import with_proof_rows
from tieout.engine.reading import read_evidence
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.statement import identity_errors, partition_counts, partition_rows
from tieout.engine.supported import refuse_unsupported
from tieout.model import BreakClass, Ledger, Window
from tieout.verdicts import budgets_of, judge, severities

SCHEMA_VERSION: Final = 1
INCIDENTS_KEPT: Final = 10_000
BREAKS_KEPT: Final = 100_000
_NEVER_FLAGS: Final = (BreakClass.DELIVERED.value, BreakClass.RECOVERED.value, BreakClass.NOT_SENT.value)

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
        UsageError: where the contract asks for a way of matching that the engine does not have.
        SourceError: where a ledger's source cannot be read as the contract describes it.
    """
    refuse_unsupported(contract)
    progress("reading the ledgers")
    evidence = read_evidence(spark, contract, window, now)
    rows = sum(found.coverage.rows for found in evidence.values())
    with suited_to(spark, rows):
        return reconciled(Scope(contract, window, evidence), run_id=run_id, now=now, progress=progress)


def reconciled(
    scope: Scope, *, run_id: str, now: datetime, progress: Progress = lambda _step: None
) -> Reconciliation:
    """Return the reconciliation of evidence that has been read: the engine without its sources."""
    progress("matching")
    found = matched(scope)
    messages = materialised(classified(scope, found.messages))
    progress("classifying")
    breaks = materialised(breaks_of(scope, messages, found))
    progress("adding up")
    statement = statement_of(scope, messages, found, breaks) | {
        "run_id": run_id,
        "generated_at": _iso(now),
    }
    return Reconciliation(statement, breaks)


def breaks_of(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return every break of the window with id, incident, cause, severity and the rows that prove it.

    Most windows are clean: neighbours are lined up and proof is gathered only where there is something to explain.
    """
    of_messages = materialised(message_breaks(messages))
    if not of_messages.isEmpty():
        of_messages = with_runs(of_messages, lined_up(messages, of_messages))
        of_messages = materialised(with_causes(of_messages, found.commits))
    attempts, records = found.keyed[Ledger.PRODUCED], found.keyed.get(Ledger.LOG)
    standing = standing_breaks(scope, messages, attempts, records, found.bounds, found.commits)
    standing += _reorders(scope, messages)
    named = materialised(all_breaks(scope, of_messages, standing))
    loudness = {name: severity.value for name, severity in severities(scope.contract).items()}
    by_class = F.create_map(*[F.lit(word) for pair in loudness.items() for word in pair])
    proved = with_proof_rows(named, {} if named.isEmpty() else found.keyed)
    return proved.withColumn("severity", F.try_element_at(by_class, "class")).select(
        "break_id", "class", "flags", "message_id", "producer_id", "topic", "partition", "offset", "positions", "locus",
        "cause", "admissible", "rule", "severity", "incident_id", "evidence", "kind",
    )  # fmt: skip


def _reorders(scope: Scope, messages: DataFrame) -> list[DataFrame]:
    """Return the reorders that the evidence allows to judge."""
    found = []
    if scope.has(Ledger.PRODUCED, "sequence"):
        found.append(reorder_producer(scope, messages))
    if scope.has(Ledger.DELIVERED, "consumer_id", "generation", "processed_at"):
        found.append(reorder_consumer(scope, messages))
    if scope.has(Ledger.PRODUCED, "key_hash"):
        found.append(reorder_output(scope, messages))
    return found


def statement_of(scope: Scope, messages: DataFrame, found: Matched, breaks: DataFrame) -> dict[str, Any]:
    """Return the statement without `run_id` and `generated_at`."""
    balance = None
    if found.log is not None and found.bounds is not None:
        balance = balanced(scope, found.log, found.keyed[Ledger.LOG], found.bounds, messages)
    partitions = partition_rows(partition_counts(scope, messages), balance)
    classes, flags, unconfirmed = _counts(scope, messages, breaks)
    incidents = _incidents(breaks)
    total = sum(incident["breaks"] for incident in incidents)
    contract, window = scope.contract, scope.window
    statement: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "pipeline": contract.pipeline,
        "group": contract.group,
        "contract_digest": contract.digest,
        "window": {"start": _iso(window.start), "end": _iso(window.end)},
        "guarantee": contract.guarantee.value,
        "identity": contract.identity.value,
        "effects": scope.effect_ledger.value,
        "not_judged": not_judged_of(scope),
        "coverage": coverage_of(scope),
        "partitions": partitions,
        "classes": classes,
        "flags": flags,
        "unconfirmed": unconfirmed,
        "identity_errors": identity_errors(partitions),
        "latency": _latency(messages),
        "incidents": incidents[:INCIDENTS_KEPT],
        "breaks_total": total,
        "breaks_truncated": total > BREAKS_KEPT,
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


def _counts(
    scope: Scope, messages: DataFrame, breaks: DataFrame
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the counts of primary classes, of everything that holds, and of what its ledgers do not cover."""
    held = F.array_distinct(F.concat(F.array("class"), "flags"))
    of_messages = messages.filter("is_judged_here").select(
        "class", held.alias("held"), is_confirmed(scope).alias("is_confirmed")
    )
    standing = breaks.filter(F.col("kind") != "message").select(
        "class", held.alias("held"), F.lit(True).alias("is_confirmed")
    )
    together = of_messages.unionByName(standing).groupBy("class", "held", "is_confirmed").count().collect()
    classes: dict[str, int] = {}
    flags: dict[str, int] = {}
    unconfirmed: dict[str, int] = {}
    for row in together:
        classes[row["class"]] = classes.get(row["class"], 0) + row["count"]
        for name in row["held"]:
            if name not in _NEVER_FLAGS:
                flags[name] = flags.get(name, 0) + row["count"]
                if not row["is_confirmed"]:
                    unconfirmed[name] = unconfirmed.get(name, 0) + row["count"]
    return dict(sorted(classes.items())), dict(sorted(flags.items())), dict(sorted(unconfirmed.items()))


def is_confirmed(scope: Scope) -> Any:
    """Return whether the effects' ledger covers every effect of a message that has some; loss carries its own proof."""
    ledger = scope.effect_ledger
    covered = scope.covered_from(ledger, F.col("first_effect_at")) & scope.covered_until(
        ledger, F.col("last_effect_at")
    )
    return (F.col("effect_rows") == 0) | covered


def _latency(messages: DataFrame) -> dict[str, Any]:
    """Return the seconds from acceptance to first effect over the window's delivered messages, null without any."""
    seconds = (F.unix_micros("first_effect_at") - F.unix_micros("sent_at")) / F.lit(1_000_000)
    row = (
        messages.filter(F.col("is_owned") & (F.col("disposition") == "delivered"))
        .agg(
            F.count(seconds).alias("count"),
            F.round(F.avg(seconds), 6).alias("mean"),
            F.percentile_approx(seconds, F.array(F.lit(0.5), F.lit(0.95), F.lit(0.99)), F.lit(10_000)).alias(
                "p"
            ),
            F.max(seconds).alias("max"),
        )
        .collect()[0]
    )
    p50, p95, p99 = row["p"] or (None, None, None)
    return {
        "count": row["count"],
        "mean_s": row["mean"],
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
        "max_s": row["max"],
    }


def _incidents(breaks: DataFrame) -> list[dict[str, Any]]:
    """Return the incidents, largest first."""
    grouped = (
        breaks.groupBy("incident_id", "class", "locus", "cause", "topic", "partition")
        .agg(
            F.min("offset").alias("first_position"),
            F.max("offset").alias("last_position"),
            F.count("*").alias("breaks"),
            F.max("severity").alias("severity"),
        )
        .orderBy(F.col("breaks").desc(), "incident_id")
    )
    return [row.asDict() for row in grouped.collect()]


def _iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
