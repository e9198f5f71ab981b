"""Maintenance between runs: waiting alerts, PENDING windows, expired data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from airflow.sdk import BaseOperator

from tieout import settings
from tieout.contracts import load_contracts
from tieout.model import Verdict
from tieout.orchestration.alerting import deliver
from tieout.orchestration.metrics import Measure, emit
from tieout.orchestration.retaining import delete_statements
from tieout.orchestration.versions import is_paused
from tieout.store import RunSummary, Store

SHORTEST_PAUSE: Final = timedelta(minutes=15)
"""The shortest time between two judgements of a PENDING window."""

WINDOWS_PER_PASS: Final = 10
"""The most windows that one pass has judged again, those waiting longest first."""


class DeliverOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Sends the waiting alerts of all pipelines, each when its next try is due."""

    def execute(self, context: Mapping[str, Any]) -> dict[str, int]:  # noqa: ARG002 - Airflow's signature
        """Return how many alerts were sent, failed, were given up and still wait."""
        report = deliver(Store(settings.required_database_url()))
        emit(
            [
                Measure("gauge", "alerts_waiting", report.waiting),
                Measure("counter", "alerts_given_up", report.given_up),
            ]
        )
        return asdict(report)


class PendingOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Finds the runs whose windows were PENDING and are due to be judged again."""

    def __init__(self, *, folders: Iterable[Path], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._folders = tuple(folders)

    def execute(self, context: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return `trigger_dag_id` and `trigger_run_id` of each of them.

        Only a run that ended and whose DAG is not paused is chosen: clearing a running one would break it
        off, and that of a paused DAG would wait unseen.
        """
        store, task = Store(settings.required_database_url()), context["ti"]
        contracts, _ = load_contracts(*self._folders)
        summaries = (run for contract in contracts for run in store.runs_of(contract.pipeline))
        return [
            {"trigger_dag_id": dag_id, "trigger_run_id": run_id}
            for dag_id, run_id in due_for_judging(summaries, datetime.now(UTC))
            if task.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=["success", "failed"])
            and is_paused(task, dag_id) is False
        ]


def due_for_judging(runs: Iterable[RunSummary], now: datetime) -> list[tuple[str, str]]:
    """Return the DAG and the run of each current PENDING result that is due, the one waiting longest first.

    The pauses grow: a window is judged again when half the time has passed that lay between its end and its
    last judgement. One that stays PENDING for a week costs some twenty runs, not two thousand.
    """
    pending = [
        run
        for run in runs
        if run.is_current
        and run.final_verdict == Verdict.PENDING
        and run.origin.dag_id
        and run.origin.dag_run_id
        and now - run.generated_at >= max(SHORTEST_PAUSE, (run.generated_at - run.window.end) / 2)
    ]
    pending.sort(key=lambda run: run.generated_at)
    return [(str(run.origin.dag_id), str(run.origin.dag_run_id)) for run in pending[:WINDOWS_PER_PASS]]


class RetentionOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Deletes expired data, in small batches: docs/reference/retention.md."""

    def execute(self, context: Mapping[str, Any]) -> dict[str, int]:  # noqa: ARG002 - Airflow's signature
        """Return how many runs, breaks and statements' folders were deleted now."""
        kept, now = settings.retention(), datetime.now(UTC)
        superseded, breaks, statements = (
            None if age is None else now - age for age in (kept.superseded, kept.breaks, kept.statements)
        )
        runs_deleted, breaks_deleted = Store(settings.required_database_url()).delete_expired(
            superseded, breaks
        )
        folders = settings.home() / "statements"
        statements_deleted = delete_statements(folders, statements) if statements else 0
        return {"runs": runs_deleted, "breaks": breaks_deleted, "statements": statements_deleted}
