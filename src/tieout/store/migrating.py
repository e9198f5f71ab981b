"""Bringing a database to the schema of this version of the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from tieout.errors import StoreError
from tieout.store.connecting import Cursor, milliseconds
from tieout.store.sql import Migration, queries

LOCK_KEY: Final = 0x7469656F7574  # "tieout"
TIMEOUT: Final = timedelta(minutes=10)
OLDEST_SERVER: Final = 150_000
"""PostgreSQL 15, the first with NULLS NOT DISTINCT."""


def migrate(cursor: Cursor, known: Sequence[Migration]) -> tuple[int, ...]:
    """Apply the `known` migrations that are missing and return their versions.

    All of it is one transaction, and one migrating process at a time: others wait and then find nothing to
    do.

    Raises:
        StoreError: where the server is too old, the database newer than `known`, or an applied migration
            edited.
    """
    cursor.execute(queries()["set_lock_timeout"], {"lock_timeout": milliseconds(TIMEOUT)})
    cursor.execute(queries()["lock"], {"key": LOCK_KEY})
    _prepare(cursor)
    missing = _missing(cursor, known)
    for migration in missing:
        cursor.execute(migration.sql)
        cursor.execute(
            queries()["record_migration"],
            {"version": migration.version, "name": migration.name, "digest": migration.digest},
        )
    return tuple(migration.version for migration in missing)


def missing_versions(cursor: Cursor, known: Sequence[Migration]) -> tuple[int, ...]:
    """Return the versions of the `known` migrations that were not applied yet; changes nothing.

    Raises:
        StoreError: as `migrate` does.
    """
    found = _what_exists(cursor)
    missing = _missing(cursor, known) if found["has_migration_table"] else known
    return tuple(migration.version for migration in missing)


def _missing(cursor: Cursor, known: Sequence[Migration]) -> Sequence[Migration]:
    cursor.execute(queries()["applied_migrations"])
    applied = {row["version"]: row["digest"] for row in cursor.fetchall()}
    _refuse_strangers(applied, known)
    return [migration for migration in known if migration.version not in applied]


def _prepare(cursor: Cursor) -> None:
    """Create the schema and the table of migrations only if they are missing.

    A role without the right to create schemas can then migrate one that was made for it.
    """
    found = _what_exists(cursor)
    if not found["has_schema"]:
        cursor.execute(queries()["create_schema"])
    if not found["has_migration_table"]:
        cursor.execute(queries()["create_migration_table"])


def _what_exists(cursor: Cursor) -> Mapping[str, Any]:
    """Return whether the schema and the table of migrations exist.

    Raises:
        StoreError: where the server is too old.
    """
    cursor.execute(queries()["what_exists"])
    found = cursor.fetchone()
    if found is None:
        raise StoreError("expected the server to tell its version, found nothing; is this PostgreSQL?")
    if found["server_version"] < OLDEST_SERVER:
        raise StoreError(
            f"expected PostgreSQL 15 or newer, found {found['server_version'] // 10_000}; "
            "point TIEOUT_DATABASE_URL at another server"
        )
    return found


def _refuse_strangers(applied: dict[int, str], known: Sequence[Migration]) -> None:
    newest = max((migration.version for migration in known), default=0)
    if applied and max(applied) > newest:
        raise StoreError(
            f"schema_migration: expected versions up to {newest}, found {max(applied)}: a newer Tieout "
            "migrated this database; run that version or newer"
        )
    for migration in known:
        if migration.version in applied and applied[migration.version] != migration.digest:
            raise StoreError(
                f"migration {migration.version:04d}_{migration.name}: expected digest "
                f"{applied[migration.version]}, as applied to this database, found {migration.digest} in the "
                "code; an applied migration is never edited: restore the file and write a new one"
            )
