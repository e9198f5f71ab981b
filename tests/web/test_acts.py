"""People accept, annotate and silence from a page; nobody else can, and no other site for them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import run_id, store_named
from tests.web.people import Badges
from tests.web.stories import publish_all

from tieout.store import Store
from tieout.web import create_app

INCIDENT = f"/runs/{run_id(2)}/incident"
ID = {"id": "incident-1"}
OURS = {"sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def url(postgres_url: str) -> Iterator[str]:
    """The URL of a store of this module's own, since acts change it."""
    with store_named(postgres_url, "pages_acts") as made:
        publish_all(Store(made))
        yield made


@pytest.fixture
def store(url: str) -> Store:
    """The same as a store."""
    return Store(url)


@pytest.fixture
def client(url: str) -> TestClient:
    """Nobody yet: the badge is put on with each request. The clock is the machine's, as the database's is."""
    return TestClient(create_app(lambda: url, Badges()), follow_redirects=False)


@pytest.mark.parametrize("address", [f"{INCIDENT}/accept?id=incident-1", "/pipelines/orders/silence"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OURS, 401),
        ({"x-badge": "stranger", **OURS}, 403),
        ({"x-badge": "reader", **OURS}, 403),
        ({"x-badge": "writer"}, 403),
        ({"x-badge": "writer", "sec-fetch-site": "cross-site"}, 403),
        ({"x-badge": "writer", "origin": "http://elsewhere"}, 403),
    ],
)
def test_an_act_takes_rights_and_our_own_form(
    client: TestClient, store: Store, address: str, headers: dict[str, str], status: int
) -> None:
    """Without a login, the right to change runs, or an own form, nothing is done."""
    answer = client.post(address, data={"reason": "x", "days": "1"}, headers=headers)

    assert answer.status_code == status
    assert [entry.what for entry in store.break_history("incident-1") if entry.what != "statement"] == []
    assert store.silences("orders") == ()


def test_an_incident_is_accepted_and_taken_back(client: TestClient) -> None:
    """The page then says who, why and until when, as text, and offers the way back."""
    headers = {"x-badge": "writer", **OURS}

    accepted = client.post(
        f"{INCIDENT}/accept", params=ID, data={"reason": "<b>known</b>", "days": "30"}, headers=headers
    )
    shown = client.get(accepted.headers["location"], headers=headers).text
    client.post(f"{INCIDENT}/reopen", params=ID, data={"reason": "not known after all"}, headers=headers)
    client.post(f"{INCIDENT}/annotate", params=ID, data={"reason": "asked the team"}, headers=headers)
    after = _text(client.get(INCIDENT, params=ID, headers=headers).text)

    assert accepted.status_code == 303
    assert "<b>known</b>" not in shown
    assert "resolved: accepted, accepted until" in _text(shown)
    assert "Take the acceptance back" in shown
    assert re.search(r"accept writer <b>known</b> 2\d{3}-", after)
    assert "reopen writer not known after all" in after
    assert "annotate writer asked the team" in after
    assert "resolved: accepted, accepted until" not in after


def test_a_silence_is_shown_where_it_holds(client: TestClient) -> None:
    """A silent pipeline says so on its page."""
    headers = {"x-badge": "writer", **OURS}

    client.post("/pipelines/orders/silence", data={"reason": "moving house", "days": "2"}, headers=headers)

    assert "writer, “moving house”" in _text(client.get("/pipelines/orders", headers=headers).text)


@pytest.mark.parametrize(
    "data", [{"days": "1"}, {"reason": "", "days": "1"}, {"reason": "x", "days": "9999"}]
)
def test_an_act_without_a_reason_is_refused(client: TestClient, data: dict[str, str]) -> None:
    """Why, and for how long, is part of an act."""
    answer = client.post(f"{INCIDENT}/accept", params=ID, data=data, headers={"x-badge": "writer", **OURS})

    assert answer.status_code == 400


def test_forms_are_for_those_who_may_use_them(client: TestClient) -> None:
    """A reader's page has no form that would be refused."""
    assert "Accept" not in client.get(INCIDENT, params=ID, headers={"x-badge": "reader"}).text
    assert "Accept" in client.get(INCIDENT, params=ID, headers={"x-badge": "writer"}).text


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
