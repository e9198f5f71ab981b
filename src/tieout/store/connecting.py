"""Connections to PostgreSQL, and its errors as ours; a password never leaves this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import connection, parse_dsn
from psycopg2.extras import RealDictCursor

from tieout.errors import StoreError
from tieout.settings import DATABASE_URL
from tieout.store.sql import queries

Cursor: TypeAlias = RealDictCursor
_T = TypeVar("_T")

CONNECT_TIMEOUT: Final = timedelta(seconds=10)
STATEMENT_TIMEOUT: Final = timedelta(minutes=2)
LOCK_TIMEOUT: Final = timedelta(seconds=30)
IDLE_TIMEOUT: Final = timedelta(minutes=10)
"""How long a transaction may be idle; its client may be waiting for Spark."""

_DEFAULTS: Final = {
    "connect_timeout": int(CONNECT_TIMEOUT.total_seconds()),
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_LOST: Final = ("08", "57P")
_NOT_MIGRATED: Final = (
    errorcodes.UNDEFINED_TABLE,
    errorcodes.INVALID_SCHEMA_NAME,
    errorcodes.UNDEFINED_COLUMN,
)


@dataclass(frozen=True, repr=False)
class Database:
    """The address of the store; its `repr` hides the password."""

    url: str
    application_name: str = "tieout"
    named_by: str = DATABASE_URL
    """The setting that holds the address, for messages."""

    def __repr__(self) -> str:
        return f"Database({self.place()})"

    def place(self) -> str:
        """Return `host:port/database`, for messages.

        Raises:
            StoreError: where the URL is not one that libpq understands.
        """
        parts = self._parts()
        name = parts.get("dbname") or "(the default database)"
        return f"{parts.get('host') or '(the default host)'}:{parts.get('port') or 5432}/{name}"

    def _parts(self) -> dict[str, str]:
        """Return the URL's parts.

        What libpq says about a wrong URL quotes it, and so does the exception's chain: neither is passed on.
        """
        try:
            parts: dict[str, str] = parse_dsn(self.url)
        except (psycopg2.Error, TypeError, ValueError):
            parts = {}
        # A reserved character in the password makes libpq take a piece of it for another part.
        if not parts or any("@" in parts.get(key, "") for key in ("host", "port", "dbname")):
            raise StoreError(
                "the store's URL: expected postgresql://user:password@host:port/database, found something "
                f"else (not shown, it may hold a password); check {self.named_by}, and write reserved "
                "characters in the user and the password as %-escapes, @ as %40"
            )
        return parts

    @contextmanager
    def transaction(
        self, statement_timeout: timedelta = STATEMENT_TIMEOUT, *, is_snapshot: bool = False
    ) -> Iterator[Cursor]:
        """Give a cursor in its own transaction, committed at the end and rolled back on any exception.

        A connection each time is slower by some milliseconds than a kept one, and never stale, shared between
        threads or inherited by a forked worker.

        Args:
            statement_timeout: How long one statement may take.
            is_snapshot: Whether every statement sees the store as it was at the first, and none may write.

        Raises:
            StoreError: where PostgreSQL cannot be reached, or refuses something.
        """
        place = self.place()
        limits = {
            "statement_timeout": milliseconds(statement_timeout),
            "lock_timeout": milliseconds(LOCK_TIMEOUT),
            "idle_timeout": milliseconds(IDLE_TIMEOUT),
        }
        with (
            _store_errors(place, self.named_by),
            closing(self._connect(is_snapshot=is_snapshot)) as opened,
            opened,
            opened.cursor(cursor_factory=RealDictCursor) as cursor,
        ):
            cursor.execute(queries()["session"], limits)
            yield cursor

    def all(
        self, query: str, convert: Callable[[Mapping[str, Any]], _T], **parameters: object
    ) -> tuple[_T, ...]:
        """Return the rows of a query by its name, each converted, in a transaction of their own.

        Raises: what `transaction` raises.
        """
        with self.transaction() as cursor:
            cursor.execute(queries()[query], parameters)
            return tuple(convert(row) for row in cursor.fetchall())

    def first(
        self, query: str, convert: Callable[[Mapping[str, Any]], _T], **parameters: object
    ) -> _T | None:
        """Return the first row that `all` returns, or None."""
        return next(iter(self.all(query, convert, **parameters)), None)

    def _connect(self, *, is_snapshot: bool) -> connection:
        given = self._parts()
        defaults = {"application_name": self.application_name, **_DEFAULTS}
        arguments: dict[str, Any] = {key: value for key, value in defaults.items() if key not in given}
        try:
            opened: connection = psycopg2.connect(self.url, connection_factory=connection, **arguments)
        except psycopg2.OperationalError as error:
            raise StoreError(
                f"{self.place()}: expected a PostgreSQL that accepts connections, found: {_first_line(error)}"
                f"; is it running, and do the host, port, user and password of {self.named_by} belong to it?"
            ) from error
        if is_snapshot:
            opened.set_session(isolation_level="REPEATABLE READ", readonly=True)
        return opened


def milliseconds(duration: timedelta) -> str:
    """Return a duration as PostgreSQL's settings want it.

    >>> milliseconds(timedelta(seconds=2))
    '2000ms'
    """
    return f"{int(duration.total_seconds() * 1000)}ms"


@contextmanager
def _store_errors(place: str, named_by: str) -> Iterator[None]:
    """Raise psycopg2's errors as a `StoreError` that says where, what, and what to do."""
    try:
        yield
    except psycopg2.Error as error:
        raise StoreError(f"{place}: {_error_text(error, named_by)}") from error


def _error_text(error: psycopg2.Error, named_by: str) -> str:
    """Return the message of the error, without its details, which quote the rows."""
    code = error.pgcode
    if code is None or code.startswith(_LOST):
        return f"the connection was lost: {_first_line(error)}; run it again, which changes nothing twice"
    message = error.diag.message_primary or _first_line(error)
    if code in _NOT_MIGRATED and named_by == DATABASE_URL:
        return f"expected the schema tieout of this version, found: {message}; migrate the store first"
    if code == errorcodes.INSUFFICIENT_PRIVILEGE:
        return f"{message}; grant the user of {named_by} the rights that this needs"
    if code in (errorcodes.QUERY_CANCELED, errorcodes.LOCK_NOT_AVAILABLE):
        return f"gave up waiting: {message}; nothing was stored, run it again when the server has less to do"
    names = [name for name in (error.diag.table_name, error.diag.constraint_name) if name]
    where = ", ".join(names) or "no table"
    return f"nothing was stored, PostgreSQL refused it (SQLSTATE {code}): {message} [{where}]"


def _first_line(error: psycopg2.Error) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
