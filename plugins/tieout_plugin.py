"""What Tieout adds to Airflow: the timetable whose intervals are windows."""

from __future__ import annotations

import importlib
import sys

from airflow.plugins_manager import AirflowPlugin

from tieout import settings
from tieout.orchestration.timetable import WindowTimetable

if settings.preloads_checks() and sys.argv[1:2] == ["scheduler"]:
    # Importing Great Expectations takes a task five seconds; one forked by a process that has it, none.
    importlib.import_module("tieout.checks.running")


class TieoutPlugin(AirflowPlugin):  # type: ignore[misc]  # airflow is untyped to us
    """Registers the timetable: without that, Airflow can neither store nor schedule the pipelines' DAGs."""

    name = "tieout"
    timetables = [WindowTimetable]  # noqa: RUF012 - Airflow's attribute
