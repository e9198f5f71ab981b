"""Airflow's connections as environment variables, where the rest of Tieout reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from airflow.sdk import BaseHook

from tieout import connections
from tieout.orchestration.versions import AirflowNotFoundException


def connection_variables(names: Iterable[str]) -> dict[str, str]:
    """Return Airflow's connections of these names as the job's environment variables.

    The environment takes precedence over Airflow's other backends. Undefined names are omitted.
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


def export_connections(names: Iterable[str]) -> None:
    """Set Airflow's connections of these names as environment variables of this task's process."""
    connections.define_connections(connection_variables(names))
