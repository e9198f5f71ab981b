"""The buttons of a task lead to the pages of what it judged, and nowhere where it judged nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.dags.home import write_contract  # noqa: F401 - gives Airflow its home before it is imported

from tieout.airflow_provider import provider_info
from tieout.orchestration.operators import CheckOperator, VerdictOperator
from tieout.orchestration.page_links import IncidentLink, WindowLink

BASE = "http://airflow.example"


def ti(**results: dict[str, Any]) -> Any:
    """A task instance of a run whose tasks left these results."""

    def pulled(task_ids: str) -> dict[str, Any] | None:
        return results.get(task_ids)

    return SimpleNamespace(xcom_pull=pulled)


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Airflow says its pages are."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", f"{BASE}/")


def test_a_judged_window_has_both_links() -> None:
    """The incident's id is escaped: it comes from evidence."""
    judged = ti(check={"run_id": "r1", "incident_id": "LOST orders/0"})

    assert WindowLink().get_link(None, ti_key=judged) == f"{BASE}/tieout/runs/r1"
    assert (
        IncidentLink().get_link(None, ti_key=judged) == f"{BASE}/tieout/runs/r1/incident?id=LOST+orders%2F0"
    )


def test_before_the_check_the_job_s_run_is_linked() -> None:
    """It is stored by then; its incidents are known to the check only."""
    judged = ti(reconcile={"run_id": "r1"})

    assert WindowLink().get_link(None, ti_key=judged).endswith("/runs/r1")
    assert IncidentLink().get_link(None, ti_key=judged) == ""


def test_without_a_run_there_is_no_link() -> None:
    """Airflow shows no button for an empty one."""
    assert WindowLink().get_link(None, ti_key=ti()) == ""


def test_the_provider_names_the_links_that_the_tasks_have() -> None:
    """Airflow refuses links that no provider announces."""
    announced = set(provider_info()["extra-links"])

    for operator in (CheckOperator, VerdictOperator):
        for link in operator.operator_extra_links:
            assert f"{type(link).__module__}.{type(link).__qualname__}" in announced
