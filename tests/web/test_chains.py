"""A chain on the pages: its hops, where a loss happened, and nothing of hops that the visitor may not read."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.store.checked import contract_of
from tests.store.examples import ORIGIN, incident, one_break, partition, run_id, statement, store_named
from tests.web.people import HIDDEN, Badges

from tieout.store import Store
from tieout.web import create_app

ROUTES = [{"to": "webhook", "connection": "hook"}]


def _publish(store: Store, number: int, pipeline: str, lost: list[str], after: str | None = None) -> None:
    contract = contract_of("exactly_once", alerts=ROUTES, **({"after": after} if after else {}))
    name = f"loss at {pipeline}"
    found = [one_break(place, message_id=one, incident_id=name) for place, one in enumerate(lost)]
    incidents = [{**incident(name, len(found)), "severity": "critical"}] if found else []
    counts = {**partition("orders", 0, messages=10, accepted=10, lost=len(found)), "offsets": None}
    published = statement(
        number, pipeline=pipeline, incidents=incidents, breaks_total=len(found), partitions=[counts]
    )
    plain: dict[str, Any] = {**contract.model_dump(mode="json", by_alias=True, exclude_none=True)}
    store.publish(published, found, {**plain, "pipeline": pipeline}, ORIGIN)


def _publish_spoilt(store: Store, number: int, pipeline: str, after: str | None = None) -> None:
    """Publish a run with one message, whose content came out as another one."""
    contract = contract_of("exactly_once", **({"after": after} if after else {}))
    rows = {
        "produced": [{"message_id": "m-7", "payload_hash": "M", "outcome": "acked"}],
        "delivered": [{"message_id": "m-7", "payload_hash": "X", "outcome": "ok"}],
    }
    broken = {"class": "CORRUPTED_VALUE", "flags": [], "incident_id": "spoilt", "evidence": rows}
    found = [one_break(7, **broken)]
    incidents = [{**incident("spoilt", 1), "class": "CORRUPTED_VALUE", "severity": "critical"}]
    counts = {**partition("orders", 0, messages=10, accepted=10, lost=0), "offsets": None}
    published = statement(number, pipeline=pipeline, incidents=incidents, breaks_total=1, partitions=[counts])
    plain: dict[str, Any] = {**contract.model_dump(mode="json", by_alias=True, exclude_none=True)}
    store.publish(published, found, {**plain, "pipeline": pipeline}, ORIGIN)


@pytest.fixture(scope="module")
def client(postgres_url: str) -> Iterator[TestClient]:
    """A reader's pages about a chain of three hops, one after a hidden hop, and one that is no chain's."""
    with store_named(postgres_url, "pages_chains") as url:
        store = Store(url)
        _publish(store, 1, "enrich", ["m-1"])
        _publish(store, 2, "route", ["m-1"], "enrich")
        _publish(store, 3, "table", ["m-1", "m-2"], "route")
        _publish(store, 4, HIDDEN, ["m-1"])
        _publish(store, 5, "after_hidden", ["m-1"], HIDDEN)
        _publish(store, 6, "alone", ["m-1"])
        _publish_spoilt(store, 7, "spoiling")
        _publish_spoilt(store, 8, "carrying", "spoiling")
        yield TestClient(create_app(lambda: url, Badges()), headers={"x-badge": "reader"})


def _text(client: TestClient, address: str, **query: str) -> str:
    answer = client.get(address, params=query)
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def _incident(client: TestClient, number: int, pipeline: str) -> str:
    return _text(client, f"/runs/{run_id(number)}/incident", id=f"loss at {pipeline}")


def test_a_window_shows_the_whole_chain(client: TestClient) -> None:
    """Each hop with its window, its verdict and what its statement has lost; the loss is marked as one from before."""
    text = _text(client, f"/runs/{run_id(2)}")

    assert re.search(
        r"1 enrich 2026-11-20 10:00 .* BROKEN 1 0 2 route , this one .* BROKEN 1 1 3 table .* BROKEN 2 1 ",
        text,
    )
    assert "LOST open; lost before, at enrich critical" in text
    assert "open; lost before" not in _text(client, f"/runs/{run_id(1)}")
    assert "passes these pipelines" not in _text(client, f"/runs/{run_id(6)}")


def test_a_window_counts_what_an_earlier_hop_corrupted(client: TestClient) -> None:
    """What only went on is counted at both hops, and at the later one as from before."""
    text = _text(client, f"/runs/{run_id(8)}")

    assert re.search(r"1 spoiling .* BROKEN 1 0 2 carrying , this one .* BROKEN 1 1 ", text)


def test_the_health_of_all_pipelines_tells_a_loss_at_its_hop(client: TestClient) -> None:
    """A later hop's line says after which hop it comes, and which of its open incidents that one has already."""
    text = _text(client, "/", period="day", until="2026-11-21T00:00:00Z")
    page = client.get("/", params={"period": "day", "until": "2026-11-21T00:00:00Z"}).text

    assert re.search(r"enrich (KEPT|BROKEN|UNKNOWN|[^a-z]+) ", text)
    assert "route after enrich; 1 open incident lost before, at enrich" in text
    assert "table after route" in text
    assert "table after route;" not in text
    assert f"after_hidden after {HIDDEN}" in text
    assert f"after {HIDDEN};" not in text
    assert f"/runs/{run_id(1)}/incident?id=loss+at+enrich" in page.replace("%20", "+")


@pytest.mark.parametrize("address", ["/pipelines/route", "/pipelines/route/incidents"])
def test_lists_of_incidents_mark_it(client: TestClient, address: str) -> None:
    """Wherever a loss is listed, it says where it happened."""
    assert "LOST open; lost before, at enrich" in _text(client, address)


def test_an_incident_says_where_its_messages_were_lost(client: TestClient) -> None:
    """All of them, or a part, with a link to the incident of the hop where it happened."""
    assert (
        "Where it was lost Lost before, at enrich. Alerts tell of it there, and not here. "
        "1 of its messages: the incident at enrich , 2026-11-20 10:00"
    ) in _incident(client, 2, "route")
    assert "Where it was lost 1 of 2 were lost before, at enrich; the others here." in _incident(
        client, 3, "table"
    )
    link = f"/runs/{run_id(1)}/incident?id=loss+at+enrich"
    page = client.get(f"/runs/{run_id(2)}/incident", params={"id": "loss at route"}).text
    assert link in page.replace("%20", "+")
    assert "Where it was lost" not in _incident(client, 1, "enrich")


def test_a_consequence_is_not_to_be_repaired_twice(client: TestClient) -> None:
    """Who may change the pipeline is offered a replay at the hop where the message was lost, and only there."""
    writer = TestClient(client.app, headers={"x-badge": "writer"})

    assert "Repair the incident at the hop where the messages were lost" in _incident(writer, 2, "route")
    assert "Plan a replay" not in _incident(writer, 2, "route")
    assert "Plan a replay" in _incident(writer, 1, "enrich")
    assert "Plan a replay" in _incident(writer, 3, "table")


def test_a_trace_goes_over_the_chain(client: TestClient) -> None:
    """From any hop, and each hop says which of its breaks show the message."""
    text = _text(client, "/pipelines/route/trace", by="message_id", value="m-2")

    assert re.search(
        r"1 enrich none is stored 2 route , this one none is stored 3 table LOST at: consumer, ", text
    )
    text = _text(client, "/pipelines/enrich/trace", by="message_id", value="m-1")
    assert re.search(
        r"2 route LOST at: consumer, 2026-11-20 10:00 [^;]*; lost before, at enrich 3 table", text
    )
    assert "Over the chain" not in _text(client, "/pipelines/alone/trace", by="message_id", value="m-1")
    assert "Over the chain" not in _text(client, "/pipelines/route/trace", by="position", value="orders/0/1")


def test_nothing_is_shown_of_a_hop_that_the_visitor_may_not_read(client: TestClient) -> None:
    """Its name stands in the contract that they may read; whether it lost a message does not."""
    reported = _incident(client, 5, "after_hidden")
    window = _text(client, f"/runs/{run_id(5)}")

    assert "Not shown: you may not read every earlier hop." in reported
    assert "lost before, at" not in reported + window
    assert f"1 {HIDDEN} you may not read it" in window
