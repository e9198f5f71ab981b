"""What Airflow 3.1, 3.2 and 3.3 have in different places, or do not have, behind one name each."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    Stats,
    conf,
)
from airflow.sdk.exceptions import AirflowRuntimeError

try:
    from airflow.sdk.exceptions import AirflowRescheduleException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowRescheduleException

__all__ = [
    "DOUBLING",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "AirflowSkipException",
    "Stats",
    "conf",
    "is_paused",
]


DOUBLING: Final[float | bool] = True if version("apache-airflow-core").startswith("3.1.") else 2.0
"""The value of `retry_exponential_backoff` with which each pause is twice the one before: a switch in Airflow 3.1."""


def is_paused(task: Any, dag_id: str) -> bool | None:
    """Return whether a DAG is paused, or None where there is none.

    In Airflow 3.1 a task cannot find out: every DAG counts as not paused.
    """
    if not hasattr(task, "get_dag"):
        return False
    try:
        return bool(task.get_dag(dag_id).is_paused)
    except AirflowRuntimeError:
        return None
