"""Statements, breaks and alerts to publish, and looking at what the database then holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg2
from psycopg2.extras import RealDictCursor

from tieout.model import Alert, Severity, Window
from tieout.store import RunOrigin, Store
from tieout.store.run_rows import COUNTS

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
CONTRACT = {"pipeline": "orders", "guarantee": "exactly_once"}
ORIGIN = RunOrigin("tieout__orders", "scheduled__2026-11-20T11:00:00+00:00", 1)
TABLES = (
    "run",
    "statement_partition",
    "statement_count",
    "incident",
    "break",
    "check_result",
    "alert",
)


def run_id(number: int) -> str:
    """Return the UUID that stands for a small number."""
    return str(UUID(int=number))


def partition(topic: str | None, number: int | None, **counts: int) -> dict[str, Any]:
    """Return one partition of a statement; counts not given are 0."""
    return {"topic": topic, "partition": number, **dict.fromkeys(COUNTS, 0), **counts}


def incident(incident_id: str, breaks: int) -> dict[str, Any]:
    """Return one incident of a statement."""
    return {
        "incident_id": incident_id,
        "class": "LOST",
        "locus": "consumer",
        "cause": "commit before process",
        "topic": "orders",
        "partition": 0,
        "first_position": 5,
        "last_position": 9,
        "breaks": breaks,
    }


def statement(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a statement with two lost messages of ten, under the run id that stands for `number`."""
    return {
        "schema_version": 1,
        "pipeline": "orders",
        "group": "loader",
        "contract_digest": "c0ffee",
        "window": {"start": WINDOW.start.isoformat(), "end": WINDOW.end.isoformat()},
        "run_id": run_id(number),
        "generated_at": f"2026-11-20T12:00:{number:02d}+00:00",
        "guarantee": "exactly_once",
        "identity": "message_id",
        "verdict": "BROKEN",
        "reasons": ["2 messages lost"],
        "not_judged": [],
        "coverage": {
            "produced": {"covers": True, "complete_until": "2026-11-20T11:15:00Z", "rows": 10},
            "delivered": {"covers": True, "complete_until": "2026-11-20T11:20:00Z", "rows": 8},
        },
        "partitions": [
            partition("orders", 0, attempts=10, messages=10, accepted=10, delivered=8, lost=2),
            partition(None, None, attempts=1, messages=1, failed=1),
        ],
        "classes": {"LOST": 2, "DELIVERED": 8},
        "flags": {"LATE": 1},
        "budgets": {},
        "latency": {},
        "incidents": [incident("incident-1", 2)],
        "checks": [],
        "breaks_total": 2,
        "breaks_truncated": False,
        **changes,
    }


def one_break(number: int, **changes: Any) -> dict[str, Any]:
    """Return one break of `incident-1`."""
    return {
        "break_id": f"break-{number}",
        "class": "LOST",
        "flags": ["COMMIT_AHEAD"],
        "message_id": f"m-{number}",
        "producer_id": "p1",
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "positions": [["orders", 0, number]],
        "locus": "consumer",
        "cause": "commit before process",
        "admissible": [],
        "rule": "lost",
        "severity": "critical",
        "incident_id": "incident-1",
        "evidence": {"produced": [{"message_id": f"m-{number}", "outcome": "acked"}]},
        **changes,
    }


def breaks(amount: int = 2) -> Iterator[dict[str, Any]]:
    """Yield breaks of `incident-1`."""
    return (one_break(number) for number in range(amount))


def alert(key: str = "orders|1", **changes: Any) -> Alert:
    """Return an alert about the first run."""
    fields: dict[str, Any] = {
        "dedup_key": key,
        "pipeline": "orders",
        "window": WINDOW,
        "run_id": run_id(1),
        "kind": "verdict",
        "severity": Severity.CRITICAL,
        "to": "webhook",
        "connection": "tieout_alerts",
        "payload": {"subject": "orders: BROKEN"},
    }
    return Alert(**{**fields, **changes})


def rows(url: str, table: str) -> list[dict[str, Any]]:
    """Return what a table of the store holds, in a fixed order."""
    return query(url, f"SELECT * FROM tieout.{table} AS stored ORDER BY stored::text")  # noqa: S608 - own names


def contents(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return everything that the store holds."""
    return {table: rows(url, table) for table in TABLES}


def query(url: str, sql: str, parameters: tuple[object, ...] = ()) -> list[dict[str, Any]]:
    """Return the rows of a statement of the test's own, if it has any."""
    with (
        closing(psycopg2.connect(url)) as connection,
        connection,
        connection.cursor(cursor_factory=RealDictCursor) as cursor,
    ):
        cursor.execute(sql, parameters)
        return [dict(row) for row in cursor.fetchall()] if cursor.description else []


def database_url(server_url: str, name: str) -> str:
    """Return the URL of the database `name` on the server of `server_url`."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


@contextmanager
def store_named(server_url: str, name: str) -> Iterator[str]:
    """Give the URL of a new, migrated database of that name, which is dropped afterwards."""
    command(server_url, f"CREATE DATABASE {name} TEMPLATE template0")
    url = database_url(server_url, name)
    try:
        Store(url).migrate()
        yield url
    finally:
        command(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def command(server_url: str, sql: str) -> None:
    """Run one statement that PostgreSQL refuses inside a transaction."""
    with closing(psycopg2.connect(server_url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql)
