"""Services that tests of several parts share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tieout.testing.postgres import running_postgres


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A libpq URL of a real PostgreSQL of this session; tests make their own schemas or databases."""
    with running_postgres(tmp_path_factory.mktemp("postgres") / "data", {"fsync": "off"}) as url:
        yield url
