"""Checks everything that a window judged by Airflow needs, in the order in which a run needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tieout import settings
from tieout.cli.doctor.airflow_setup import examine_airflow
from tieout.cli.doctor.finding import Finding
from tieout.cli.doctor.spark_setup import examine_executors, examine_master, examine_programs
from tieout.cli.engine import Progress
from tieout.errors import TieoutError


def examined(progress: Progress) -> Iterator[Finding]:
    """Yield the findings as they become known; a Spark job checks the executors last."""
    programs = list(examine_programs())
    yield from programs
    progress("asking Airflow")
    of_airflow, master = examine_airflow()
    yield from of_airflow
    yield from _database()
    home = list(_shared_home())
    yield from home
    if master is None:
        return
    of_master = list(examine_master(master))
    yield from of_master
    if all(finding.is_there for finding in (*programs, *home, *of_master)):
        progress("asking Spark's executors")
        yield from examine_executors(master)


def _database() -> Iterator[Finding]:
    from tieout.store import Store  # noqa: PLC0415 - brings PostgreSQL's driver

    try:
        store = Store(settings.required_database_url(), application_name="tieout doctor")
        missing = store.missing_migrations()
    except TieoutError as error:
        yield Finding("database", False, str(error))
        return
    place = repr(store).removeprefix("Store(").removesuffix(")")
    if missing:
        yield Finding("database", False, f"{place} lacks {len(missing)} migrations", "tieout migrate")
    else:
        yield Finding("database", True, f"{place}, migrated")


def _shared_home() -> Iterator[Finding]:
    remedy = "set TIEOUT_HOME to a folder that workers and Spark's executors see under one path"
    if not settings.is_set(settings.HOME):
        yield Finding("home", False, "TIEOUT_HOME is not set", remedy)
        return
    folder = settings.home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield Finding("home", True, str(folder))
    except OSError as error:
        yield Finding("home", False, f"{folder} cannot be made: {error.strerror}", remedy)
