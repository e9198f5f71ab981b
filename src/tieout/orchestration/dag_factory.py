"""Building DAGs from contracts; a pipeline's DAG always has the same five tasks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from airflow.sdk import DAG, Param, TriggerRule, chain, get_parsing_context

from tieout.contracts import Contract
from tieout.errors import ContractError
from tieout.orchestration import docs
from tieout.orchestration.assets import outlets_of
from tieout.orchestration.catalogue import entries, error_dag_id
from tieout.orchestration.operators import (
    AlertOperator,
    CheckOperator,
    ContractErrorOperator,
    VerdictOperator,
    WindowOperator,
)
from tieout.orchestration.submitting import CONF, TieoutSparkSubmit
from tieout.orchestration.timetable import timetable_of
from tieout.orchestration.versions import DOUBLING
from tieout.shipped import SPARK_APPS, shipped

START_DATE: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The start of every DAG: Airflow ends a manual run before it as a success without tasks."""

POOL: Final = "spark"
UPKEEP: Final = "tieout_upkeep"
GAP_AUDIT: Final = "tieout_gap_audit"
REPLAY: Final = "tieout_replay"
RESERVED: Final = (UPKEEP, GAP_AUDIT, REPLAY)
CONTRACT_ERROR_TAG: Final = "contract_error"
_RECONCILE_LIMIT: Final = timedelta(hours=2)
_SHORT_LIMIT: Final = timedelta(minutes=10)
_RETRIED: Final = {
    "retries": 4,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": DOUBLING,
    "max_retry_delay": timedelta(minutes=5),
}
"""Four minutes in all: an API server or a database needs that long to restart after a kill or an upgrade."""


def pipeline_dags(folders: Iterable[Path]) -> dict[str, DAG]:
    """Return a DAG for each contract file, valid or not, by its name; within a task, only that task's DAG."""
    only = get_parsing_context().dag_id
    return {dag.dag_id: dag for dag in (dag_for(entry) for entry in entries(folders, only=only))}


def dag_for(entry: Contract | ContractError) -> DAG:
    """Return the DAG of a contract, or the one that shows why there is none."""
    if isinstance(entry, ContractError):
        return contract_error_dag(entry)
    place = str(entry.base_dir / entry.pipeline)
    if entry.pipeline in RESERVED:
        return contract_error_dag(
            ContractError(place, None, f"pipeline: {entry.pipeline} is Tieout's own DAG")
        )
    try:
        return pipeline_dag(entry)
    except Exception as error:
        # Anything raised here would take the other contracts' DAGs away with it.
        reason = f"no DAG can be built from it: {type(error).__name__}: {error}"
        return contract_error_dag(ContractError(place, None, reason))


def pipeline_dag(contract: Contract) -> DAG:
    """Return `window → reconcile → check → alert → verdict` for one contract.

    `alert` and `verdict` run whatever happened before them, and `verdict`, the only leaf, alone decides the
    run's state: an alert at the end would turn a failed run into a successful one. Every task is retried: errors of the
    run itself fail it for good (`AirflowFailException`), so the other causes are a killed worker, or one that a busy
    Airflow API server did not let start (docs/how-to/deploy.md).
    """
    with DAG(
        contract.pipeline,
        description=contract.description or None,
        doc_md=docs.pipeline_doc(contract),
        schedule=timetable_of(contract),
        start_date=START_DATE,
        catchup=False,
        max_active_runs=2,
        tags={"tieout", contract.guarantee.value},
        default_args={"owner": contract.owner or "tieout", **_RETRIED},
        params=_params(),
        render_template_as_native_obj=True,
    ) as dag:
        chain(
            WindowOperator(
                task_id="window",
                contract=contract,
                doc_md="Fixes what is judged.",
                execution_timeout=_SHORT_LIMIT,
            ),
            _reconcile(contract),
            CheckOperator(
                task_id="check",
                outlets=outlets_of(contract.pipeline),
                execution_timeout=_SHORT_LIMIT,
                doc_md="Great Expectations on the stored rows; stores the final verdict with its alerts.",
            ),
            AlertOperator(
                task_id="alert",
                contract=contract,
                trigger_rule=TriggerRule.ALL_DONE,
                execution_timeout=_SHORT_LIMIT,
                doc_md="Sends what is to be told, also when a task before it failed.",
            ),
            VerdictOperator(
                task_id="verdict",
                trigger_rule=TriggerRule.ALL_DONE,
                execution_timeout=_SHORT_LIMIT,
                doc_md="KEPT and PENDING succeed; BROKEN, UNKNOWN and no result fail the run.",
            ),
        )
    return dag


def contract_error_dag(error: ContractError) -> DAG:
    """Return a DAG that shows what is wrong with a contract file, and fails with it when run."""
    with DAG(
        error_dag_id(error),
        description="This contract cannot be used.",
        doc_md=docs.error_doc(error),
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        tags={"tieout", CONTRACT_ERROR_TAG},
    ) as dag:
        ContractErrorOperator(task_id="contract", message=str(error), doc_md=f"```\n{error}\n```")
    return dag


def _reconcile(contract: Contract) -> TieoutSparkSubmit:
    return TieoutSparkSubmit(
        task_id="reconcile",
        application=str(shipped(SPARK_APPS, "reconcile.py")),
        name=f"tieout-{contract.pipeline}",
        conf=dict(CONF),
        pool=POOL,
        execution_timeout=_RECONCILE_LIMIT,
        doc_md="One Spark job; stores the statement and its breaks under the window.",
    )


def _params() -> dict[str, Any]:
    def time(title: str) -> Param:
        return Param(
            None,
            type=["null", "string"],
            format="date-time",
            title=title,
            description="ISO 8601 with a time zone; leave both empty to judge the run's own interval.",
        )

    return {"window_start": time("First moment of the window"), "window_end": time("First moment after it")}
