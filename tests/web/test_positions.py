"""Positions on pages are as the log's system writes them; links and tables keep the numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import (
    CONTRACT,
    ORIGIN,
    incident,
    one_break,
    partition,
    run_id,
    statement,
    store_named,
)
from tests.web.people import Badges

from tieout.store import Store
from tieout.web import create_app

_AT, _LAST = (5 << 32) + (7 << 12) + 4, (15 << 32) + (3 << 12)
_SHOWN, _LAST_SHOWN = "5:7:4", "15:3:0"


@pytest.fixture(scope="module")
def client(postgres_url: str) -> Iterator[TestClient]:
    """A reader's pages about a topic of Pulsar."""
    with store_named(postgres_url, "pages_positions") as url:
        row = {"topic": "orders", "partition": 0, "offset": _AT}
        lost = one_break(1, offset=_AT, positions=[row], evidence={"log": [row]})
        published = statement(
            1,
            partitions=[{**partition("orders", 0), "offsets": None}],
            incidents=[{**incident("incident-1", 1), "first_position": _AT, "last_position": _LAST}],
            position_form="ledger:entry:batch",
        )
        pulsar = {"log": {"source": {"kind": "pulsar", "connection": "pulsar", "topic": "orders"}}}
        Store(url).publish(published, [lost], {**CONTRACT, "ledgers": pulsar}, ORIGIN)
        yield TestClient(create_app(lambda: url, Badges()), headers={"x-badge": "reader"})


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("/pipelines/orders", (_SHOWN, _LAST_SHOWN)),
        ("/pipelines/orders/incidents", (_SHOWN, _LAST_SHOWN)),
        (f"/runs/{run_id(1)}", (_SHOWN, _LAST_SHOWN)),
        (f"/runs/{run_id(1)}/incident?id=incident-1", (_SHOWN, _LAST_SHOWN)),
        (f"/runs/{run_id(1)}/breaks", (_SHOWN,)),
        (f"/pipelines/orders/trace?by=position&value=orders/0/{_SHOWN}", (f"at orders-0 offset {_SHOWN}",)),
        (f"/pipelines/orders/trace?by=position&value=orders/0/{_AT}", (f"at orders-0 offset {_SHOWN}",)),
    ],
)
def test_pages_write_positions_as_the_system_does(
    client: TestClient, page: str, shown: tuple[str, ...]
) -> None:
    """In lists, in headings and in the steps of a way; a position that was copied from one is found."""
    answer = client.get(page)

    assert answer.status_code == 200
    assert all(text in answer.text for text in shown)


def test_tables_keep_the_numbers(client: TestClient) -> None:
    """Programs compare them."""
    assert f",{_AT}," in client.get("/pipelines/orders/incidents.csv").text
