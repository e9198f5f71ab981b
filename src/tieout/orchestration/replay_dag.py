"""The DAG that repairs what a run found, after approval. Docs: docs/how-to/replay-lost-messages.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, chain

from tieout.orchestration.approving import ReplayApproval
from tieout.orchestration.dag_factory import POOL, REPLAY, START_DATE
from tieout.orchestration.replaying import ReplayOperator, ReplayPlanSubmit, SettleOperator
from tieout.orchestration.submitting import CONF
from tieout.shipped import SPARK_APPS, shipped

_DOC = """
### Repairing what a run found

* `plan` looks up the run's LOST and OUTPUT_DUPLICATE breaks and the bodies of the lost messages. It changes
nothing.
* `approve` shows the plan under *Required Actions*, and takes the approval of those whom the contract names in
`replay.approvers`, never of whoever started the run. Without an answer within a day it is rejected.
* `replay` carries out what was approved, each message once: into the contract's `replay.to`, a table or a topic, or to
files for `kafka-console-producer`. Surplus rows are never deleted here: `remove.sql` is for their owner.
* `settle` waits for `max_latency`, and `judge_again` has the window judged anew.
"""


def replay_dag(folders: Sequence[Path]) -> DAG:
    """Return the DAG that is run by hand: plan the repair, wait for approval, carry it out, judge the window again."""
    with DAG(
        REPLAY,
        description="Replay lost messages, after approval.",
        doc_md=_DOC,
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=4,
        tags={"tieout"},
        default_args={"owner": "tieout"},
        params={
            "run_id": Param(
                type="string", minLength=36, title="Run", description="The run to repair: its id."
            ),
            "incident_id": Param(
                None, type=["null", "string"], title="Incident", description="Only this incident."
            ),
            "attempt": Param(
                1,
                type="integer",
                minimum=1,
                title="Attempt",
                description="2 to replay once more what was replayed.",
            ),
        },
    ) as dag:
        chain(
            ReplayPlanSubmit(
                task_id="plan",
                folders=folders,
                application=str(shipped(SPARK_APPS, "replay.py")),
                name="tieout-replay",
                conf=dict(CONF),
                pool=POOL,
                retries=1,
                retry_delay=timedelta(seconds=30),
                execution_timeout=timedelta(hours=1),
                doc_md="Finds what can be repaired, and the bodies of lost messages; changes nothing.",
            ),
            ReplayApproval(
                task_id="approve",
                folders=folders,
                subject=(
                    "{% set plan = ti.xcom_pull(task_ids='plan') %}{{ plan['pipeline'] }}: produce "
                    "{{ plan['records'] }} messages again, hand out {{ plan['removals'] }} removals?"
                ),
                body="{{ ti.xcom_pull(task_ids='plan')['markdown'] }}",
                defaults="Reject",
                response_timeout=timedelta(days=1),
                # Retried, never answered by itself: an answer given at once may come before
                # Airflow notes the question.
                retries=2,
                retry_delay=timedelta(seconds=10),
                doc_md="Waits for a person whom the contract names, at most a day; no answer is a rejection.",
            ),
            ReplayOperator(
                task_id="replay",
                folders=folders,
                retries=2,
                retry_delay=timedelta(seconds=30),
                execution_timeout=timedelta(minutes=30),
                doc_md="Carries out what was approved, each message once.",
            ),
            SettleOperator(
                task_id="settle",
                execution_timeout=timedelta(minutes=10),
                doc_md="Waits until the replayed messages must have had their effects.",
            ),
            TriggerDagRunOperator(
                task_id="judge_again",
                trigger_dag_id="{{ ti.xcom_pull(task_ids='plan')['dag_id'] }}",
                trigger_run_id="{{ ti.xcom_pull(task_ids='plan')['dag_run_id'] or run_id }}",
                reset_dag_run=True,
                conf={
                    "window_start": "{{ ti.xcom_pull(task_ids='plan')['start'] }}",
                    "window_end": "{{ ti.xcom_pull(task_ids='plan')['end'] }}",
                },
                doc_md="Has the window judged again, by the run that judged it before.",
            ),
        )
    return dag
