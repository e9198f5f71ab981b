"""Airflow's connections in the form in which the rest of Tieout finds them: environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from airflow.sdk import BaseHook

from tieout import connections
from tieout.orchestration.versions import AirflowNotFoundException


def connection_variables(names: Iterable[str]) -> dict[str, str]:
    """Return Airflow's connections of these names as the variables that the job finds them by.

    What the environment has goes before Airflow's other places. What is not defined is left out: who needs it says so.
    """
    variables = {name: connections.connection_variable(name) for name in names}
    found = {}
    for name, variable in variables.items():
        if variable in os.environ:
            found[variable] = os.environ[variable]
        else:
            with suppress(AirflowNotFoundException):
                found[variable] = BaseHook.get_connection(name).as_json()
    return found


def make_known(names: Iterable[str]) -> None:
    """Let the rest of Tieout find Airflow's connections of these names for as long as this task's process lives."""
    connections.define_connections(connection_variables(names))
