"""After a run is stored: checks, final verdict, alerts; and the alerts about a failed run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tieout.checks import check_statement
from tieout.contracts import Contract
from tieout.errors import StoreError
from tieout.model import CheckResult, CheckStatus, Verdict, Window
from tieout.reporting.alerts import alerts_for, failure_alerts
from tieout.store import Store
from tieout.verdicts import final_verdict


@dataclass(frozen=True)
class Conclusion:
    """The run's final verdict, why, whether it is its window's current run, its statement, and the check results."""

    verdict: Verdict
    reasons: tuple[str, ...]
    is_current: bool
    statement: Mapping[str, Any]
    results: tuple[CheckResult, ...] = ()


def conclude(database_url: str, run_id: str, contract: Contract, page: str | None = None) -> Conclusion:
    """Check a stored run, store the final verdict together with its alerts, and return it.

    Repeating it stores the same.

    Args:
        database_url: The store's.
        run_id: The published run.
        contract: The contract it was judged by.
        page: Where the alerts' readers can read on.

    Raises:
        StoreError: where the store is out of reach, or holds no such run.
        SuiteError: where the suites cannot be used.
    """
    store = Store(database_url)
    run = store.run(run_id)
    if run is None:
        raise StoreError(
            f"run {run_id} is not in the store, although the task reconcile said so; clear the run"
        )
    report = check_statement(database_url, run_id, contract)
    final = final_verdict(run.verdict, report.results)
    store.record_checks(
        run_id,
        report.results,
        final,
        suite=report.suite,
        suite_digest=report.suite_digest,
        gx_version=report.gx_version,
        alerts=alerts_for(contract, run.statement, report.results, final, page=page),
    )
    reasons = (*run.reasons, *_worsened(run.verdict, final, report.results))
    return Conclusion(final, reasons, run.is_current, run.statement, report.results)


def enqueue_failure_alerts(
    database_url: str,
    contract: Contract,
    window: Window | None,
    dag_run_id: str,
    failed: Mapping[str, str],
    *,
    page: str | None = None,
) -> None:
    """Store the alerts about a run that gave no verdict."""
    Store(database_url).enqueue(failure_alerts(contract, window, dag_run_id, failed, page))


def _worsened(judged: Verdict, final: Verdict, results: tuple[CheckResult, ...]) -> tuple[str, ...]:
    """Return the failed checks, where they changed the judge's verdict."""
    if judged == final:
        return ()
    return tuple(
        f"check {result.rule} {result.status}: {result.observed}, expected {result.limit}"
        for result in results
        if result.status != CheckStatus.PASS
    )
