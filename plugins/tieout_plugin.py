"""What Tieout adds to Airflow: the timetable whose intervals are windows."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from tieout.orchestration.timetable import WindowTimetable


class TieoutPlugin(AirflowPlugin):  # type: ignore[misc]  # airflow is untyped to us
    """Registers the timetable: without that, Airflow can neither store nor schedule the pipelines' DAGs."""

    name = "tieout"
    timetables = [WindowTimetable]  # noqa: RUF012 - Airflow's attribute
