"""A database becomes what this version of the code expects, or is left as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import psycopg2
import pytest
from tests.store.examples import command, database_url, query

from tieout.errors import StoreError
from tieout.store import Store, migrating
from tieout.store.connecting import Database
from tieout.store.sql import Migration, migrations, numbered, parsed

_CATALOG = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull,
               a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid) AS default_expression,
               col_description(c.oid, a.attnum) AS comment
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'tieout'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')
          AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY 1, 2""",
    "relations": """
        SELECT relname, relkind, relpersistence, reloptions, obj_description(oid, 'pg_class') AS comment
        FROM pg_class WHERE relnamespace = 'tieout'::regnamespace ORDER BY 1""",
    "constraints": """
        SELECT conrelid::regclass::text AS relation, conname, contype, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE connamespace = 'tieout'::regnamespace ORDER BY 1, 2""",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'tieout' ORDER BY 1",
    "functions": """
        SELECT proname, pg_get_functiondef(oid) AS definition
        FROM pg_proc WHERE pronamespace = 'tieout'::regnamespace ORDER BY 1""",
    "triggers": """
        SELECT tgname, pg_get_triggerdef(t.oid) AS definition
        FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
        WHERE NOT tgisinternal AND c.relnamespace = 'tieout'::regnamespace ORDER BY 1""",
    "types": """
        SELECT typname, typtype FROM pg_type
        WHERE typnamespace = 'tieout'::regnamespace AND typtype NOT IN ('b', 'c') ORDER BY 1""",
}


def _catalog(url: str) -> dict[str, list[dict[str, Any]]]:
    return {name: query(url, sql) for name, sql in _CATALOG.items()}


def test_migrating_from_empty_gives_the_schema_in_schema_sql(
    empty_url: str, postgres_url: str, request: pytest.FixtureRequest
) -> None:
    """The migrations and `schema.sql` describe one schema, down to comments and indexes."""
    command(postgres_url, "CREATE DATABASE from_schema_file TEMPLATE template0")
    request.addfinalizer(lambda: command(postgres_url, "DROP DATABASE from_schema_file WITH (FORCE)"))
    other_url = database_url(postgres_url, "from_schema_file")

    Store(empty_url).migrate()
    query(other_url, files("tieout.store").joinpath("schema.sql").read_text())

    migrated = _catalog(empty_url)
    assert len(migrated["columns"]) > 100
    assert len(migrated["constraints"]) > 50
    assert migrated == _catalog(other_url)


def test_migrating_again_applies_nothing(empty_url: str) -> None:
    """The first call applies every migration, the second none."""
    store = Store(empty_url)

    first, second = store.migrate(), store.migrate()

    assert first == tuple(migration.version for migration in migrations())
    assert second == ()


def test_migrating_at_once_applies_each_migration_once(empty_url: str) -> None:
    """Of several processes that migrate one database, one does and the others wait for it."""
    with ThreadPoolExecutor(6) as pool:
        applied = list(pool.map(lambda _: Store(empty_url).migrate(), range(6)))

    assert sorted(applied)[:-1] == [()] * 5
    assert max(applied) == tuple(migration.version for migration in migrations())


def test_a_failing_migration_leaves_the_database_as_it_was(empty_url: str) -> None:
    """All missing migrations are applied together or not at all."""
    broken = Migration(len(migrations()) + 1, "broken", "CREATE TABLE tieout.half (a int); SELECT 1 / 0")

    with pytest.raises(StoreError, match="division by zero"), Database(empty_url).transaction() as cursor:
        migrating.migrate(cursor, [*migrations(), broken])

    assert query(empty_url, "SELECT to_regnamespace('tieout') AS found") == [{"found": None}]


def test_a_database_newer_than_the_code_is_refused(store_url: str) -> None:
    """Old code does not touch a schema that it does not know."""
    query(store_url, "INSERT INTO tieout.schema_migration VALUES (99, 'later', 'x', now())")

    with pytest.raises(StoreError, match=r"expected versions up to \d+, found 99: a newer Tieout"):
        Store(store_url).migrate()


def test_an_edited_migration_is_refused(store_url: str) -> None:
    """A migration whose file was changed after it had been applied is named, with both digests."""
    query(store_url, "UPDATE tieout.schema_migration SET digest = 'before' WHERE version = 1")

    with pytest.raises(
        StoreError, match=r"migration 0001_initial: expected digest before.*found [0-9a-f]{64}"
    ):
        Store(store_url).migrate()


def test_a_role_that_may_not_create_schemas_migrates_the_one_made_for_it(
    empty_url: str, postgres_url: str, request: pytest.FixtureRequest
) -> None:
    """An administrator can make the schema and keep the right to make others."""
    query(empty_url, "CREATE ROLE tieout_limited LOGIN PASSWORD 'limited'")
    request.addfinalizer(lambda: command(postgres_url, "DROP ROLE tieout_limited"))
    request.addfinalizer(lambda: query(empty_url, "DROP OWNED BY tieout_limited"))
    query(empty_url, "CREATE SCHEMA tieout AUTHORIZATION tieout_limited")
    place = empty_url.split("@")[1]

    applied = Store(f"postgresql://tieout_limited:limited@{place}").migrate()

    assert applied == tuple(migration.version for migration in migrations())


def test_line_ends_do_not_change_a_digest() -> None:
    """A checkout with other line ends is the same migration."""
    assert (
        Migration(1, "a", "SELECT 1;\r\nSELECT 2").digest == Migration(1, "a", "SELECT 1;\nSELECT 2\n").digest
    )
    assert Migration(1, "a", "SELECT 1;").digest != Migration(1, "a", "SELECT 2;").digest


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["0001_a.sql", "0003_b.sql"], r"found \[1, 3\]"),
        (["0001_a.sql", "0001_b.sql"], r"found \[1, 1\]"),
        (["0002_a.sql"], r"found \[2\]"),
        (["first.sql"], "first.sql: expected a name like"),
    ],
)
def test_migrations_are_numbered_without_gaps(names: list[str], complaint: str) -> None:
    """Two branches that add the same number are noticed before a database is."""
    with pytest.raises(StoreError, match=complaint):
        numbered(dict.fromkeys(names, "SELECT 1"))


@pytest.mark.parametrize(
    "text", ["-- name: a\nSELECT 1\n-- name: a\nSELECT 2", "-- name: a\n-- Only words.\n"]
)
def test_every_query_has_one_name_and_one_statement(text: str) -> None:
    """A query defined twice, or without SQL, is an error where the file is read."""
    with pytest.raises(StoreError, match="expected one statement named a"):
        parsed(text)


def test_the_table_constraints_refuse_what_the_code_would_never_write(store_url: str) -> None:
    """Someone who writes by hand cannot store a verdict that there is not."""
    with pytest.raises(psycopg2.errors.CheckViolation, match="run_verdict_check"):
        query(
            store_url,
            "INSERT INTO tieout.run (run_id, pipeline, consumer_group, window_start, window_end, guarantee, "
            "contract_digest, contract, verdict, reasons, statement, breaks_total, breaks_truncated, "
            "tieout_version, generated_at) VALUES (gen_random_uuid(), 'p', 'g', now(), now() + '1h', "
            "'exactly_once', 'd', '{}', 'FINE', '[]', '{}', 0, false, '1', now())",
        )
