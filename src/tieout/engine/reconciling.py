"""One run: evidence → prematch → judged in a bucket → statement and breaks → verdict.

A run is a pure function of contract, window and evidence; `run_id` and `now` only label it, and `now` is also the
extraction time of sources that are read as a snapshot. Docs: docs/reference/taxonomy.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from tieout.contracts import Contract, position_form
from tieout.engine.doubts import with_shared_inputs
from tieout.engine.judging.breaks import BREAKS_KEPT, Breaks, proven
from tieout.engine.judging.task import JudgingInput, judged_by
from tieout.engine.prematch.prematching import prematched
from tieout.engine.reading import kept_evidence, open_ledgers
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.statement.counts import Numbers, identity_errors
from tieout.engine.statement.coverage import coverage_of, limits_of, not_judged_of, with_partitions_shown
from tieout.engine.statement.numbers import numbers_of, suspected
from tieout.engine.supported import refuse_other_windows
from tieout.engine.topic_generations import with_topic_generations
from tieout.model import Window
from tieout.reporting.schema import SCHEMA_VERSION
from tieout.verdicts import budgets_of, judge

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Reconciliation:
    """The result of one run: the statement, ready for JSON, every break, and the judged input (`given`)."""

    statement: dict[str, Any]
    breaks: Breaks
    inputs: JudgingInput


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
        JudgingError: where executors lack memory or a package.
    """
    refuse_other_windows(contract, window)
    progress("reading the ledgers")
    opened = open_ledgers(spark, contract, window, now)
    scope = prematched(contract, window, opened, progress) if contract.match == "auto" else None
    if scope is None:
        scope = Scope(contract, window, kept_evidence(contract, opened))
    with suited_to(spark, is_small=not scope.is_large, rows=scope.row_count):
        return reconciled(scope, run_id=run_id, now=now, progress=progress)


def reconciled(
    scope: Scope, *, run_id: str, now: datetime, progress: Progress = lambda _step: None
) -> Reconciliation:
    """Return the reconciliation of evidence that has been read: the engine without its sources."""
    scope = with_topic_generations(with_shared_inputs(scope))
    progress("judging")
    judged = judged_by(scope)
    scope = suspected(scope, judged.tables)
    numbers = numbers_of(scope, judged.tables)
    statement = assembled(with_partitions_shown(scope, numbers.partitions, numbers.unaccounted), numbers)
    labels = {"run_id": run_id, "generated_at": _iso(now)}
    return Reconciliation(statement | labels, proven(scope, judged.breaks, judged.tables), judged.inputs)


def assembled(scope: Scope, numbers: Numbers) -> dict[str, Any]:
    """Return the statement of these numbers, judged, without `run_id` and `generated_at`."""
    contract, window = scope.contract, scope.window
    form = position_form(contract)
    statement: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "pipeline": contract.pipeline,
        "group": contract.group,
        **({} if contract.after is None else {"after": contract.after.pipeline}),
        "contract_digest": contract.digest,
        "window": {"start": _iso(window.start), "end": _iso(window.end)} | _offsets_of(window),
        **({} if form is None else {"position_form": form}),
        "guarantee": contract.guarantee.value,
        "identity": contract.identity.value,
        "effects": scope.effect_ledger.value,
        "not_judged": not_judged_of(scope),
        "limits": [*limits_of(scope, numbers.flags, numbers.unaccounted), *numbers.undecided.sentences],
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
