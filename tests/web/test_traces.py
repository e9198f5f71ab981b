"""A message is found by its id, its key or a position, and its way is told without saying more than is stored."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from typing import Any

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
from tests.web.people import HIDDEN, Badges
from tests.web.stories import OFFSETS

from tieout.store import Store
from tieout.store.reader import TRACED_AT_MOST
from tieout.web import create_app

KEY = "customer-7"
KEY_HASH = hashlib.sha256(KEY.encode()).hexdigest()
LONG_ID = "order-" + "9" * 700
COVERAGE = {
    "produced": {"covers": True, "complete_until": "2026-11-20T11:15:00Z", "rows": 10},
    "log": {"covers": True, "complete_until": "2026-11-20T11:15:00Z", "rows": 10},
    "delivered": {"covers": True, "complete_until": "2026-11-20T11:20:00Z", "rows": 8},
    "read": {"covers": False, "complete_until": None, "gap": "it ends too early", "rows": 0},
}
LOST = one_break(
    1,
    offset=104,
    positions=[{"topic": "orders", "partition": 0, "offset": 104}],
    evidence={
        "produced": [
            {
                "message_id": "m-1",
                "key_hash": KEY_HASH,
                "attempted_at": "2026-11-20T10:00:00Z",
                "completed_at": "2026-11-20T10:00:02.500Z",
                "outcome": "acked",
                "topic": "orders",
                "partition": 0,
                "offset": 104,
            }
        ],
        "log": [
            {"topic": "orders", "partition": 0, "offset": 104, "record_timestamp": "2026-11-20T10:00:01Z"}
        ],
    },
)
COMMIT = one_break(
    2,
    **{"class": "COMMIT_REGRESSION"},
    message_id=None,
    offset=150,
    positions=[{"topic": "orders", "partition": 0, "offset": 150}],
    evidence={"committed": [{"topic": "orders", "partition": 0, "committed_offset": 149}]},
)
LONG = one_break(
    3, message_id=LONG_ID, offset=None, positions=None, evidence={"produced": [{"message_id": LONG_ID}]}
)


def _publish(store: Store, number: int, breaks: list[dict[str, Any]], pipeline: str, **changes: Any) -> None:
    published = statement(
        number,
        pipeline=pipeline,
        coverage=COVERAGE,
        partitions=[{**partition("orders", 0), "offsets": OFFSETS}],
        incidents=[{**incident("incident-1", 2), "first_position": 102, "last_position": 109}],
        **changes,
    )
    ledgers: dict[str, Any] = {ledger: {} for ledger in (*COVERAGE, "committed")}
    store.publish(published, breaks, {**CONTRACT, "pipeline": pipeline, "ledgers": ledgers}, ORIGIN)


@pytest.fixture(scope="module")
def client(postgres_url: str) -> Iterator[TestClient]:
    """A reader's pages about three pipelines, one of them hidden, and a run that no longer counts."""
    with store_named(postgres_url, "pages_traces") as url:
        store = Store(url)
        _publish(store, 1, [one_break(9, message_id="m-old")], "orders")
        _publish(store, 2, [LOST, COMMIT, LONG], "orders")
        _publish(store, 3, [one_break(1, message_id="m-elsewhere")], "payments")
        _publish(store, 4, [LOST], HIDDEN)
        many = [one_break(n, message_id="m-many", incident_id=f"i-{n}") for n in range(TRACED_AT_MOST + 5)]
        _publish(store, 5, many, "many")
        yield TestClient(create_app(lambda: url, Badges()), headers={"x-badge": "reader"})


def _traced(client: TestClient, value: str, by: str = "message_id", pipeline: str = "orders") -> str:
    answer = client.get(f"/pipelines/{pipeline}/trace", params={"by": by, "value": value})
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


@pytest.mark.parametrize(
    ("by", "value"),
    [
        ("message_id", "m-1"),
        ("key", KEY),
        ("key", KEY_HASH),
        ("position", "orders/0/104"),
        ("position", " orders/0/104 "),
    ],
)
def test_a_message_is_found(client: TestClient, by: str, value: str) -> None:
    """By its id, by its key as text or as hash, and by a position; with what is missing on its way."""
    reported = _traced(client, value, by)

    assert "1 break of the windows' current runs shows it" in reported
    assert "LOST: m-1 at orders-0 offset 104" in reported
    assert "attempted 1 2026-11-20T10:00:00Z +0.000 s" in reported
    assert "stored 2 2026-11-20T10:00:01Z +1.000 s orders-0 offset 104" in reported
    assert "acknowledged 3 2026-11-20T10:00:02.500Z +2.500 s" in reported
    assert "written missing none, and delivered covers the window" in reported
    assert "read not covered none, but read does not cover the window: it ends too early" in reported
    assert "committed not told no row is kept with this break" in reported


def test_absence_beside_a_break_of_a_commit_says_nothing(client: TestClient) -> None:
    """Its evidence is what lies at its positions, so a ledger without a row there is no proof of anything."""
    reported = _traced(client, "orders/0/150", "position")

    assert "COMMIT_REGRESSION at orders-0 offset 150" in reported
    assert "missing" not in reported
    assert "written not told no row is kept with this break" in reported


def test_a_long_id_is_found_as_it_is_stored(client: TestClient) -> None:
    """Ids are cut where they are stored, and are asked for whole."""
    assert "1 break of the windows' current runs shows it" in _traced(client, LONG_ID)


def test_a_position_without_a_break_leads_to_the_window_that_judged_it(client: TestClient) -> None:
    """The window, and the incidents in whose stretch it lies, without claiming that it is one of their breaks."""
    inside, outside = _traced(client, "orders/0/105", "position"), _traced(client, "orders/0/120", "position")

    for reported in (inside, outside):
        assert "No stored break of this pipeline shows it. That does not prove that it arrived" in reported
        assert "Windows that judged this offset" in reported
        assert "2026-11-20 10:00 to 11:00" in reported
    assert "Incidents in whose stretch it lies" in inside
    assert "No incident of theirs has this offset in its stretch" in outside
    assert "No window's current run judged this offset" in _traced(client, "orders/0/200", "position")
    assert "No window's current run judged this offset" in _traced(client, "orders/1/105", "position")


@pytest.mark.parametrize("value", ["m-old", "m-elsewhere", "m-none", "m-", "orders/0/104"])
def test_what_is_of_no_current_run_of_this_pipeline_is_not_found(client: TestClient, value: str) -> None:
    """Neither of a run that another took the place of, nor of another pipeline, nor by a part of an id."""
    assert "No stored break of this pipeline shows it" in _traced(client, value)


def test_what_many_breaks_show_is_cut(client: TestClient) -> None:
    """A key may be a million messages'; the page says that it does not show them all."""
    reported = _traced(client, "m-many", pipeline="many")

    assert (
        "1,000 or more breaks of the windows' current runs show it; 20 of the latest windows are below"
        in reported
    )


def test_the_command_can_be_pasted_into_a_shell(client: TestClient) -> None:
    """Whatever is asked for is one word of it, and the window is one that has to do with it."""
    hours = "--from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z"
    assert f"tieout trace CONTRACT.yml --id=m-1 {hours}" in _traced(client, "m-1")
    assert f"tieout trace CONTRACT.yml orders/0/105 {hours}" in _traced(client, "orders/0/105", "position")
    assert f"tieout trace CONTRACT.yml '--key=a'\"'\"'; reboot' {hours}" in _traced(
        client, "a'; reboot", "key"
    )


def test_a_wrong_position_is_said(client: TestClient) -> None:
    """The form of a position is told to whoever mistakes it."""
    answer = client.get("/pipelines/orders/trace", params={"by": "position", "value": "orders-0 17"})

    assert answer.status_code == 400
    assert "expected TOPIC/PARTITION/OFFSET such as orders/0/17, found orders-0 17" in answer.text


def test_the_form_comes_first(client: TestClient) -> None:
    """Without a question there is the form alone; every break of an incident leads to its trace."""
    assert "Trace a message" in client.get("/pipelines/orders/trace").text
    page = client.get(f"/runs/{run_id(2)}/incident", params={"id": "incident-1"}).text
    assert "/pipelines/orders/trace?by=message_id&amp;value=m-1" in page
