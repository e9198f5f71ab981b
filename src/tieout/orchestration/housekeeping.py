"""The maintenance DAGs of Tieout: the upkeep, and the audit for windows that were not judged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, TriggerRule, chain

from tieout.orchestration.dag_factory import GAP_AUDIT, START_DATE, UPKEEP
from tieout.orchestration.gap_audit import GapAuditOperator, GapReportOperator
from tieout.orchestration.upkeep import DeliverOperator, PendingOperator, RetentionOperator

_UPKEEP_DOC = """
### What Tieout does between the runs

* `deliver` sends the alerts that a receiver did not take. Each is tried up to ten times, at growing
intervals.
* `pending` finds the windows that were PENDING: messages were in flight when they were judged. `judge_again`
clears
  their runs, so that the same run judges the same window with the evidence there is now. The pauses grow with
  time.
* `retention` deletes what is kept no longer; nothing, unless the environment says how long.

Only windows judged by Airflow, of DAGs that are not paused, are judged again.
"""
_GAP_AUDIT_DOC = """
### Windows that nobody judged

* `audit` compares the windows that each contract's timetable expects, up to now less its grace, with those in
  the store. Its log shows a table of those that are **missing** or **failed** (no verdict), **running**, **stale**
  (judged by another version of the contract) or **superseded** (judged in windows of other bounds).
* `deliver` sends the alerts: one when a gap is found, one when it is closed.
* `report` fails while there are windows without a verdict.

What to do about one: `docs/reference/gap-audit.md`.
"""


def upkeep_dag(folders: Sequence[Path]) -> DAG:
    """Return the DAG that sends waiting alerts and has PENDING windows judged again, every five minutes."""
    description = "Alerts that wait, windows that were PENDING."
    with _dag(
        UPKEEP, description, _UPKEEP_DOC, every=timedelta(minutes=5), at_most=timedelta(minutes=10)
    ) as dag:
        DeliverOperator(task_id="deliver", retries=1, retry_delay=timedelta(seconds=30))
        pending = PendingOperator(task_id="pending", folders=folders)
        RetentionOperator(task_id="retention")
        TriggerDagRunOperator.partial(task_id="judge_again", reset_dag_run=True).expand_kwargs(pending.output)
    return dag


def gap_audit_dag(folders: Sequence[Path]) -> DAG:
    """Return the DAG that looks for windows that were due and not judged, every hour."""
    description = "Windows that should have been judged and were not."
    with _dag(
        GAP_AUDIT, description, _GAP_AUDIT_DOC, every=timedelta(hours=1), at_most=timedelta(minutes=30)
    ) as dag:
        chain(
            GapAuditOperator(task_id="audit", folders=folders, retries=2, retry_delay=timedelta(seconds=30)),
            DeliverOperator(task_id="deliver", retries=1, retry_delay=timedelta(seconds=30)),
            GapReportOperator(task_id="report", trigger_rule=TriggerRule.ALL_DONE),
        )
    return dag


def _dag(name: str, description: str, doc: str, *, every: timedelta, at_most: timedelta) -> DAG:
    """Return a scheduled DAG without tasks, with one run at a time and a time limit for each task."""
    return DAG(
        name,
        description=description,
        doc_md=doc,
        schedule=every,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        tags={"tieout"},
        default_args={"owner": "tieout", "execution_timeout": at_most},
    )
