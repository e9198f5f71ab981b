"""What Tieout adds to Airflow: the timetable whose intervals are windows, and the pages.

Airflow finds it by the wheel's entry point `airflow.plugins`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tieout import settings
from tieout.orchestration.timetable import WindowTimetable

NAME = "tieout"

if settings.preloads_checks() and sys.argv[1:2] == ["scheduler"]:
    # Importing Great Expectations takes a task five seconds; one forked by a process that has it, none.
    importlib.import_module("tieout.checks.running")


def is_announced() -> bool:
    """Return whether an installed package announces the plugin: Airflow reports a second one as an error."""
    return NAME in entry_points(group="airflow.plugins").names


async def pages(
    scope: Any, receive: Callable[..., Awaitable[Any]], send: Callable[..., Awaitable[Any]]
) -> None:
    """Answer one request to the pages."""
    await _application()(scope, receive, send)


@cache
def _application() -> Any:
    """Return the pages, made at the first request: every process of Airflow's loads this, one serves them."""
    from tieout.orchestration.access import AirflowAccess  # noqa: PLC0415
    from tieout.web import create_app  # noqa: PLC0415

    return create_app(settings.required_database_url, AirflowAccess())


class TieoutPlugin(AirflowPlugin):  # type: ignore[misc]  # airflow is untyped to us
    """Registers the pages, and the timetable: without it, no pipeline's DAG can be stored."""

    name = NAME
    timetables = [WindowTimetable]  # noqa: RUF012 - Airflow's attributes
    fastapi_apps = [{"app": pages, "url_prefix": "/tieout", "name": "Tieout"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Tieout",
            "href": "tieout/",
            "destination": "nav",
            "url_route": "tieout",
            "nav_top_level": True,
        },
        {
            "name": "Delivery",
            "href": "tieout/pipelines/{DAG_ID}",
            "destination": "dag",
            "url_route": "tieout-delivery",
        },
    ]
