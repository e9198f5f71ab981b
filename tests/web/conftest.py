"""One store for all tests of the pages, filled once, and pages for people with different rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import store_named
from tests.web.people import Badges
from tests.web.stories import NOW, publish_all

from tieout.store import Store
from tieout.web import create_app

ClientFor = Callable[[str], TestClient]


@pytest.fixture(scope="session")
def stories_url(postgres_url: str) -> Iterator[str]:
    """The URL of a store that holds every story of `stories.py`."""
    with store_named(postgres_url, "pages") as url:
        publish_all(Store(url))
        yield url


@pytest.fixture(scope="session")
def client_for(stories_url: str) -> ClientFor:
    """Gives a client whose every request wears a badge: `reader`, `writer`, `stranger`, or none."""
    app = create_app(lambda: stories_url, Badges(), clock=lambda: NOW)
    return lambda badge: TestClient(
        app, headers={"x-badge": badge} if badge else {}, raise_server_exceptions=True
    )


@pytest.fixture
def reader(client_for: ClientFor) -> TestClient:
    """Somebody who may read every pipeline but `secret_pipeline`."""
    return client_for("reader")


@pytest.fixture
def writer(client_for: ClientFor) -> TestClient:
    """Somebody who may also change them."""
    return client_for("writer")
