"""Writing replayed messages into a PostgreSQL table, each once: the rows and their keys in one transaction.

The keys are kept in `tieout_replayed` beside the table, not in the table itself: whoever publishes its rows may delete
them, and a message must not come a second time for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from psycopg2 import Binary, sql
from psycopg2.extensions import make_dsn
from psycopg2.extras import Json, execute_values

from tieout.replaying import Record
from tieout.store.connecting import Cursor, Database

LEDGER: Final = "tieout_replayed"
_PAGE: Final = 200

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))"
_TABLE_EXISTS: Final = "SELECT to_regclass(%(name)s) IS NOT NULL AS is_there"
_CREATE_LEDGER: Final = sql.SQL("""
CREATE TABLE {ledger} (
    idempotence_key text PRIMARY KEY,
    plan_id text NOT NULL,
    replayed_at timestamptz NOT NULL DEFAULT now()
)""")
_CREATE_TABLE: Final = sql.SQL("""
CREATE TABLE {table} (
    idempotence_key text NOT NULL,
    message_id text,
    topic text NOT NULL,
    partition integer,
    key bytea,
    value bytea,
    headers jsonb NOT NULL,
    replayed_at timestamptz NOT NULL DEFAULT now()
)""")
_CLAIM: Final = sql.SQL(
    "INSERT INTO {ledger} (idempotence_key, plan_id) VALUES %s "
    "ON CONFLICT (idempotence_key) DO NOTHING RETURNING idempotence_key"
)
_INSERT: Final = sql.SQL(
    "INSERT INTO {table} (idempotence_key, message_id, topic, partition, key, value, headers) VALUES %s"
)


def target_database(name: str, parameters: Mapping[str, Any]) -> Database:
    """Return the database behind a connection, from libpq's own parameters; errors name the connection."""
    given = {key: value for key, value in parameters.items() if value not in (None, "")}
    return Database(make_dsn(**given), "tieout replay", f"the connection {name}")


def insert_once(database: Database, table: str, plan_id: str, records: Iterable[Record]) -> int:
    """Insert the records that were never inserted before, all or none, and return how many there are.

    Creates the table and `tieout_replayed` where they are missing. Concurrent calls run one after the other.

    Args:
        database: Where the table is.
        table: `table` or `schema.table`.
        plan_id: The plan they belong to.
        records: What to insert, in this order.

    Raises:
        StoreError: where the database refuses; nothing is inserted then.
    """
    names = _names(table)
    new = 0
    with database.transaction() as cursor:
        _prepare(cursor, names)
        for page in _pages(records):
            new += _insert_page(cursor, names, plan_id, page)
    return new


def _prepare(cursor: Cursor, names: Mapping[str, sql.Composable]) -> None:
    """Lock the ledger for this transaction, and create only what is missing: a role may lack the right to create."""
    cursor.execute(_LOCK, {"name": names["ledger"].as_string(cursor)})
    for part, statement in (("ledger", _CREATE_LEDGER), ("table", _CREATE_TABLE)):
        cursor.execute(_TABLE_EXISTS, {"name": names[part].as_string(cursor)})
        found = cursor.fetchone()
        if found is None or not found["is_there"]:
            cursor.execute(statement.format(**names))


def _insert_page(
    cursor: Cursor, names: Mapping[str, sql.Composable], plan_id: str, page: list[Record]
) -> int:
    keys = [(record.message.key, plan_id) for record in page]
    claimed = execute_values(
        cursor, _CLAIM.format(**names).as_string(cursor), keys, page_size=_PAGE, fetch=True
    )
    fresh = {row["idempotence_key"] for row in claimed}
    rows = [_row(record) for record in page if record.message.key in fresh]
    execute_values(cursor, _INSERT.format(**names).as_string(cursor), rows, page_size=_PAGE)
    return len(rows)


def _row(record: Record) -> tuple[Any, ...]:
    message, body = record.message, record.body
    return (
        message.key,
        message.message_id,
        message.topic,
        message.partition,
        None if body.key is None else Binary(body.key),
        None if body.value is None else Binary(body.value),
        Json([list(header) for header in body.headers]),
    )


def _names(table: str) -> dict[str, sql.Composable]:
    *schema, name = table.split(".")
    return {"table": sql.Identifier(*schema, name), "ledger": sql.Identifier(*schema, LEDGER)}


def _pages(records: Iterable[Record]) -> Iterator[list[Record]]:
    remaining = iter(records)
    while page := list(islice(remaining, _PAGE)):
        yield page
