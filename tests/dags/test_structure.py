"""The edges and rules on which it depends that a broken guarantee is seen and told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG, TriggerRule
from tests.dags.home import write_contract

from tieout.contracts import load_contract
from tieout.orchestration.dag_factory import POOL, START_DATE, pipeline_dag


@pytest.fixture
def dag(contracts: Path) -> DAG:
    """The DAG of a contract."""
    return pipeline_dag(load_contract(write_contract(contracts, "orders")))


def test_the_tasks_follow_each_other(dag: DAG) -> None:
    """Each has the one before as its only upstream, so a rule on that one speaks for all before it."""
    upstream = {task.task_id: task.upstream_task_ids for task in dag.tasks}

    assert upstream == {
        "window": set(),
        "reconcile": {"window"},
        "check": {"reconcile"},
        "alert": {"check"},
        "verdict": {"alert"},
    }


def test_the_verdict_is_the_only_leaf(dag: DAG) -> None:
    """Leaves decide a run's state: an alert at the end would turn a failed run green."""
    assert [task.task_id for task in dag.leaves] == ["verdict"]


def test_alert_and_verdict_run_whatever_failed_before(dag: DAG) -> None:
    """The rest needs what comes before it."""
    rules = {task.task_id: task.trigger_rule for task in dag.tasks}

    assert rules == {
        "window": TriggerRule.ALL_SUCCESS,
        "reconcile": TriggerRule.ALL_SUCCESS,
        "check": TriggerRule.ALL_SUCCESS,
        "alert": TriggerRule.ALL_DONE,
        "verdict": TriggerRule.ALL_DONE,
    }


def test_only_spark_takes_a_place_in_the_pool(dag: DAG) -> None:
    """A backfill ignores the DAG's own limit of active runs: the pool alone bounds the memory."""
    assert {task.task_id for task in dag.tasks if task.pool == POOL} == {"reconcile"}


def test_every_task_is_bounded_in_time_and_explained(dag: DAG) -> None:
    """A run without a time limit would skip the alert, so the tasks have theirs."""
    assert dag.dagrun_timeout is None
    for task in dag.tasks:
        assert task.execution_timeout is not None, task.task_id
        assert task.doc_md, task.task_id


def test_every_task_is_tried_again(dag: DAG) -> None:
    """A worker may be killed at any of them, and an API server that is busy or coming up lets none begin."""
    assert dag.tasks
    for task in dag.tasks:
        assert task.retry_exponential_backoff == 2.0, task.task_id
        assert task.retry_delay * (2**task.retries - 1) > timedelta(minutes=3), task.task_id


def test_runs_may_begin_long_ago(dag: DAG) -> None:
    """Airflow ends a manual run before a DAG's start as a success without tasks."""
    assert dag.start_date == START_DATE
    assert dag.end_date is None


def test_nothing_is_templated_with_the_data_interval(dag: DAG) -> None:
    """A run without a logical date has none, and rendering would fail before anything could be told."""
    for task in dag.tasks:
        for name in task.template_fields:
            assert "data_interval" not in str(getattr(task, name, "")), (task.task_id, name)


def test_the_conditions_of_a_manual_window_are_asked_for(dag: DAG) -> None:
    """Both may be left empty."""
    assert dag.params.get_param("window_start").value is None
    assert dag.params.get_param("window_end").value is None


def test_a_hop_of_a_chain_is_the_same_dag(contracts: Path, dag: DAG) -> None:
    """It waits in its task `window` for the hop before, which its page names; its edges are those of any other."""
    file = write_contract(contracts, "orders")
    file.write_text(
        file.read_text().replace("pipeline: orders\n", "pipeline: orders\nafter: orders_enrich\n")
    )

    hop = pipeline_dag(load_contract(file))

    assert {task.task_id: task.upstream_task_ids for task in hop.tasks} == {
        task.task_id: task.upstream_task_ids for task in dag.tasks
    }
    assert "| after | `orders_enrich` |" in (hop.doc_md or "")
