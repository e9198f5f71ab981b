"""Every five minutes: sends alerts that could not be sent, and has PENDING windows judged again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from tieout import settings
from tieout.orchestration.dag_factory import LONG_AGO, UPKEEP
from tieout.orchestration.upkeep import DeliverOperator, PendingOperator, RetentionOperator

FOLDERS = [Path(__file__).resolve().parents[1] / folder for folder in settings.contract_folders()]

DOC = """
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

with DAG(
    UPKEEP,
    description="Alerts that wait, windows that were PENDING.",
    doc_md=DOC,
    schedule=timedelta(minutes=5),
    start_date=LONG_AGO,
    catchup=False,
    max_active_runs=1,
    tags={"tieout"},
    default_args={"owner": "tieout", "execution_timeout": timedelta(minutes=10)},
) as dag:
    DeliverOperator(task_id="deliver", retries=1, retry_delay=timedelta(seconds=30))
    pending = PendingOperator(task_id="pending", folders=FOLDERS)
    RetentionOperator(task_id="retention")
    TriggerDagRunOperator.partial(task_id="judge_again", reset_dag_run=True).expand_kwargs(pending.output)
