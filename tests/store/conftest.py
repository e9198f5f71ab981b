"""Databases of their own for tests of the store: empty ones, and migrated ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from tests.store.examples import command, database_url

from tieout.store import Store

_NUMBERS = count(1)
_TEMPLATE = "store_template"


@contextmanager
def made_database(server_url: str, template: str) -> Iterator[str]:
    """Give the URL of a new database, which is dropped afterwards, open connections or not."""
    name = f"store_{next(_NUMBERS)}"
    command(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield database_url(server_url, name)
    finally:
        command(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_url(postgres_url: str) -> Iterator[str]:
    """The URL of a database in which nothing is."""
    with made_database(postgres_url, "template0") as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres_url: str) -> str:
    """The name of a migrated database, to be copied."""
    command(postgres_url, f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
    Store(database_url(postgres_url, _TEMPLATE)).migrate()
    return _TEMPLATE


@pytest.fixture
def store_url(postgres_url: str, migrated_template: str) -> Iterator[str]:
    """The URL of a migrated database without runs."""
    with made_database(postgres_url, migrated_template) as url:
        yield url


@pytest.fixture
def store(store_url: str) -> Store:
    """A store without runs."""
    return Store(store_url)
