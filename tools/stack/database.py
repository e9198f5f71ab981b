"""A stack's two databases, Airflow's and Tieout's: on the embedded PostgreSQL or on the user's server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT, cursor

from tieout.store import Store
from tieout.testing import postgres
from tools.stack.errors import StackError
from tools.stack.layout import Layout

# A crash of the machine may cost the last moments of a demonstration; a crash of the server costs nothing.
SERVER_SETTINGS = {"synchronous_commit": "off", "max_connections": "100"}
LONGEST_IDLE = "5min"
"""How long a transaction in Airflow's database may be idle before PostgreSQL ends it; the same as a task's heartbeat.

The workers of a killed scheduler survive, and with them its connection, which they inherited. If it was killed while it
scheduled tasks, its locks would otherwise stay forever, because PostgreSQL sees a connected client.
"""


@dataclass(frozen=True)
class Databases:
    """The libpq URLs of a stack's databases."""

    airflow: str
    tieout: str

    @property
    def sqlalchemy(self) -> str:
        """Airflow's database as a SQLAlchemy URL; a bare `postgresql://` would mean another driver."""
        return self.airflow.replace("postgresql://", "postgresql+psycopg2://", 1)


def provide(layout: Layout, *, is_fresh: bool) -> Databases:
    """Start the embedded server, or connect to that of TIEOUT_DATABASE_URL, and create the databases.

    On the user's own server, a fresh start uses separate databases (`<name>_demo`), so that other data is not touched.

    Args:
        layout: The home of the stack.
        is_fresh: Whether the databases must be empty.

    Raises:
        StackError: if the server cannot be reached or we may not create a database.
    """
    external = os.environ.get("TIEOUT_DATABASE_URL")
    if not external:
        postgres.initialise(layout.postgres)
        server = postgres.start(layout.postgres, postgres.free_port(), SERVER_SETTINGS)
        names = ("airflow", "tieout")
    else:
        server = external
        name = (urlsplit(external).path.strip("/") or "tieout") + ("_demo" if is_fresh else "")
        names = (f"{name}_airflow", name)
    with _administrating(server) as cursor:
        for name in names:
            _create(cursor, name, is_fresh=is_fresh)
        cursor.execute(
            sql.SQL("ALTER DATABASE {} SET idle_in_transaction_session_timeout = %s").format(
                sql.Identifier(names[0])
            ),
            (LONGEST_IDLE,),
        )
    airflow, tieout = (_with_database(server, name) for name in names)
    return Databases(airflow, tieout)


def migrate_results(databases: Databases) -> None:
    """Bring the result store to this version's schema."""
    Store(databases.tieout).migrate()


def stop(layout: Layout) -> None:
    """Stop the embedded server, if it runs."""
    if layout.postgres.exists():
        postgres.stop(layout.postgres)


@contextmanager
def _administrating(url: str) -> Iterator[cursor]:
    """Yield a cursor that may create databases.

    Raises:
        StackError: if the server refuses; the password is not shown.
    """
    try:
        with closing(psycopg2.connect(url, connect_timeout=10)) as connection:
            connection.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
            with connection.cursor() as opened:
                yield opened
    except psycopg2.Error as error:
        parts = urlsplit(url)
        first_line = str(error).strip().splitlines()[0]
        raise StackError(
            f"PostgreSQL at {parts.hostname}:{parts.port or 5432}: {first_line}; check TIEOUT_DATABASE_URL and "
            "that its user may create databases, or unset it to use the embedded server"
        ) from error


def _create(opened: cursor, name: str, *, is_fresh: bool) -> None:
    if is_fresh:
        opened.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
    opened.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
    if opened.fetchone() is None:
        opened.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
