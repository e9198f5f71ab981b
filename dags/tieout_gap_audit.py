"""Every hour, and by hand: looks for windows that should have been judged and were not, and tells of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, TriggerRule, chain

from tieout import settings
from tieout.orchestration.dag_factory import GAP_AUDIT, LONG_AGO
from tieout.orchestration.gap_audit import GapAuditOperator, GapReportOperator
from tieout.orchestration.upkeep import DeliverOperator

FOLDERS = [Path(__file__).resolve().parents[1] / folder for folder in settings.contract_folders()]

DOC = """
### Windows that nobody judged

* `audit` compares the windows that each contract's timetable expects, up to now less its grace, with those in
  the store. Its log shows a table of those that are **missing** or **failed** (no verdict), **running**, **stale**
  (judged by another version of the contract) or **superseded** (judged in windows of other bounds).
* `deliver` sends the alerts: one when a gap is found, one when it is closed.
* `report` fails while there are windows without a verdict.

What to do about one: `docs/reference/gap-audit.md`.
"""

with DAG(
    GAP_AUDIT,
    description="Windows that should have been judged and were not.",
    doc_md=DOC,
    schedule=timedelta(hours=1),
    start_date=LONG_AGO,
    catchup=False,
    max_active_runs=1,
    tags={"tieout"},
    default_args={"owner": "tieout", "execution_timeout": timedelta(minutes=30)},
) as dag:
    chain(
        GapAuditOperator(task_id="audit", folders=FOLDERS, retries=2, retry_delay=timedelta(seconds=30)),
        DeliverOperator(task_id="deliver", retries=1, retry_delay=timedelta(seconds=30)),
        GapReportOperator(task_id="report", trigger_rule=TriggerRule.ALL_DONE),
    )
