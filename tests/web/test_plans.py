"""With many windows and a run of very many breaks a page still reads little: what it shows, not what is stored.

`make pages` measures the same with a year of windows and a million breaks; docs/reference/pages.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import store_named
from tools.pages.asking import PAGES, application, work_of
from tools.pages.filling import LEAST_BREAKS, Size, fill

WINDOWS = 500
ROWS = 4_000
"""What one page may look at, of 24,000 breaks, 12,000 sums of partitions, 1,200 incidents of one run, 1,000 runs."""

LARGE_TABLES = {"break", "statement_partition"}


@pytest.fixture(scope="module")
def url(postgres_url: str) -> Iterator[str]:
    """The URL of a store with two pipelines and a run of 24,000 breaks."""
    with store_named(postgres_url, "pages_plans") as made:
        fill(made, Size(pipelines=2, windows=WINDOWS, breaks=LEAST_BREAKS))
        yield made


@pytest.mark.parametrize("page", PAGES)
def test_a_page_reads_what_it_shows(url: str, page: str) -> None:
    """No page reads a large table from end to end, and the rows that it looks at are bounded."""
    work = work_of(TestClient(application(url)), url, PAGES[page])

    assert 0 < work.rows <= ROWS
    assert not LARGE_TABLES & set(work.whole_tables)


def test_what_is_traced_here_is_there(url: str) -> None:
    """The measured traces find something, so that a fast page is not an empty one."""
    client = TestClient(application(url))

    for page in ("trace of an id", "trace of a key", "trace of a position"):
        assert "attempted" in client.get(PAGES[page]).text, page
    assert "attempted" not in client.get(PAGES["trace of what is not there"]).text


def test_a_drawing_that_leaves_incidents_out_says_so(url: str) -> None:
    """Of a run of more than a thousand incidents, only a thousand are drawn."""
    client = TestClient(application(url))

    assert "the gravest and largest 1,000 of the run" in client.get(PAGES["window of the large run"]).text
    assert "the gravest and largest" not in client.get(PAGES["window"]).text
