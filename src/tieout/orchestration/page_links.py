"""Links from Airflow's tasks to Tieout's pages of the judged window."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from airflow.sdk import BaseOperatorLink

from tieout.orchestration.versions import conf


class WindowLink(BaseOperatorLink):  # type: ignore[misc]  # airflow is untyped to us
    """Leads to the page of the window, from a task whose result names the run."""

    name = "Window"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the page's address, or nothing where there is no run."""
        run_id = _judged(ti_key).get("run_id")
        return f"{_pages()}/runs/{run_id}" if run_id else ""


class IncidentLink(BaseOperatorLink):  # type: ignore[misc]  # airflow is untyped to us
    """Leads to the page of the window's first incident, from a task whose result names it."""

    name = "Incident"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the page's address, or nothing where there is no incident."""
        judged = _judged(ti_key)
        if not judged.get("incident_id"):
            return ""
        query = urlencode({"id": judged["incident_id"]})
        return f"{_pages()}/runs/{judged['run_id']}/incident?{query}"


def _judged(task: Any) -> dict[str, Any]:
    """Return the result of the last of the run's tasks that has one."""
    for task_id in ("check", "reconcile"):
        found = task.xcom_pull(task_ids=task_id)
        if isinstance(found, dict):
            return found
    return {}


def _pages() -> str:
    return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}/tieout"
