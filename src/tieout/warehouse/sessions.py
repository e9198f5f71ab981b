"""Read-only sessions, whose errors have all details except the password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg2
from psycopg2 import errors, sql
from psycopg2.extensions import connection as PgConnection

from tieout.connections import Connection, connection
from tieout.errors import SourceError, SourceUnreachableError

if TYPE_CHECKING:
    from tieout.contracts import JdbcSource

_PASSED_ON: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options", "keepalives_idle")
_TIMEOUT_SECONDS: Final = 10


@contextmanager
def snapshot(spec: JdbcSource, place: str) -> Iterator[PgConnection]:
    """Yield a read-only session whose queries all see the same snapshot of the database.

    Raises:
        ConnectionNotFoundError: if the connection is not defined.
        SourceUnreachableError: if the server accepts no connection.
        SourceError: if the connection is not PostgreSQL's, or a query fails.
    """
    with session_on(spec.connection, place, "table" if spec.table else "query") as session:
        if spec.query is not None:
            _check_query(session, _text_of(spec.query), place)
        yield session


@contextmanager
def session_on(
    name: str, place: str, field_name: str, *, shared: str | None = None
) -> Iterator[PgConnection]:
    """Yield such a session over a named connection; `shared` is the exported snapshot of another session.

    Raises:
        ConnectionNotFoundError: if the connection is not defined.
        SourceUnreachableError: if the server accepts no connection.
        SourceError: if the connection is not PostgreSQL's, or a query from the contract's field `field_name` fails.
    """
    settings = connection(name)
    if settings.conn_type != "postgres":
        raise SourceError(
            f"{place}.connection: expected a PostgreSQL connection, found {name} of type "
            f"{settings.conn_type or '(none)'}"
        )
    try:
        session = psycopg2.connect(**_parameters(settings))
    except psycopg2.Error as error:
        text = _error_text(error, settings)
        raise SourceUnreachableError(f"{place}.connection: {name}: {text}") from None
    try:
        session.set_session(isolation_level="REPEATABLE READ", readonly=True)
        session.set_client_encoding("UTF8")
        with session.cursor() as cursor:
            cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            if shared is not None:
                cursor.execute("SET TRANSACTION SNAPSHOT %s", (shared,))
            cursor.execute("SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'")
        yield session
    except psycopg2.Error as error:
        raise SourceError(f"{place}.{field_name}: {_error_text(error, settings)}") from None
    finally:
        session.close()


def relation(spec: JdbcSource) -> sql.Composable:
    """Return the table, or the query in parentheses, for a FROM clause."""
    if spec.table is not None:
        return sql.SQL(".").join(sql.Identifier(part) for part in spec.table.split("."))
    return sql.SQL("({}\n)").format(sql.SQL(_text_of(spec.query or "")))


def _text_of(query: str) -> str:
    return query.strip().rstrip(";")


def _check_query(session: PgConnection, query: str, place: str) -> None:
    """Let the server check that a text is one query that returns rows: only then it is safe in parentheses.

    The text is passed as a value. A cursor accepts one statement, and none that changes or commits anything
    (https://www.postgresql.org/docs/current/plpgsql-cursors.html, "OPEN FOR EXECUTE"); nothing is fetched from it.

    Raises:
        SourceError: if it is something else.
        psycopg2.Error: if it is not valid SQL, or refers to unknown names.
    """
    with session.cursor() as cursor:
        cursor.execute("SELECT set_config('tieout.query', %s, true)", (query,))
        try:
            cursor.execute(_OPENS_A_CURSOR)
        except (errors.InvalidCursorDefinition, errors.FeatureNotSupported) as error:
            raise SourceError(
                f"{place}.query: expected one query that returns rows: {error.diag.message_primary}"
            ) from None


_OPENS_A_CURSOR: Final = """
DO $$
DECLARE checked refcursor;
BEGIN
  OPEN checked FOR EXECUTE current_setting('tieout.query');
  CLOSE checked;
END
$$
"""


def _parameters(settings: Connection) -> dict[str, Any]:
    stated = {
        "host": settings.host,
        "port": settings.port,
        "user": settings.login,
        "password": settings.password,
        "dbname": settings.schema,
        **{name: settings.extra[name] for name in _PASSED_ON if name in settings.extra},
    }
    parameters = {name: value for name, value in stated.items() if value not in (None, "")}
    return {"connect_timeout": _TIMEOUT_SECONDS, "application_name": "tieout", **parameters}


def _error_text(error: psycopg2.Error, settings: Connection) -> str:
    """Return the first line of the server's error, without the password."""
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.SyntaxError):
        text = error.diag.message_primary or str(error)
    else:
        text = str(error)
    text = next(iter(text.strip().splitlines()), type(error).__name__)
    return text.replace(settings.password, "***") if settings.password else text
