"""One incident is one thread of alerts: the latest news of it waits, its end is told to whom its beginning was."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.checked import contract_of
from tests.store.examples import ORIGIN, alert, incident, one_break, query, rows, statement

from tieout.model import Alert
from tieout.orchestration.incident_alerting import enqueue_incident_alerts
from tieout.store import Store

_MINUTE = timedelta(minutes=1)
ROUTES = [{"to": "webhook", "connection": "hook", "at": "warning"}]


def _threaded(key: str, **changes: Any) -> Alert:
    return alert(key, thread="incident-1", **changes)


def _send(store: Store) -> list[str]:
    """Send everything that is due and return the subjects."""
    claimed = store.claim_alerts(100, _MINUTE)
    for one in claimed:
        store.mark_sent(one)
    return [str(one.alert.payload["subject"]) for one in claimed]


def _statuses(url: str) -> dict[str, str]:
    return {row["dedup_key"]: row["status"] for row in rows(url, "alert")}


def test_later_news_takes_the_place_of_what_waits(store: Store, store_url: str) -> None:
    """Only within the same thread, route and connection."""
    store.enqueue([_threaded("a"), _threaded("b", to="slack"), alert("c"), alert("d", thread="incident-2")])

    store.enqueue([_threaded("e")])

    waiting = dict.fromkeys("bcde", "pending")
    assert _statuses(store_url) == {"a": "superseded", **waiting}


def test_the_end_is_reported_only_where_the_beginning_was(store: Store, store_url: str) -> None:
    """Not to a receiver that never heard of it, nor is the beginning told any more."""
    store.enqueue([_threaded("open"), _threaded("open slack", to="slack")])
    (hook, _) = store.claim_alerts(2, _MINUTE)
    store.mark_sent(hook)
    query(
        store_url,
        "UPDATE tieout.alert SET status = 'pending', attempts = 0, leased_until = NULL WHERE route_to = 'slack'",
    )

    store.enqueue([_threaded("end", is_closing=True), _threaded("end slack", to="slack", is_closing=True)])

    assert _statuses(store_url) == {"open": "sent", "open slack": "superseded", "end": "pending"}


def _publish(store: Store, number: int, found: list[dict[str, Any]], contract: Any) -> None:
    sizes = {item["incident_id"]: 0 for item in found}
    for item in found:
        sizes[item["incident_id"]] += 1
    incidents = [{**incident(name, size), "severity": "critical"} for name, size in sizes.items()]
    published = statement(number, incidents=incidents, breaks_total=len(found))
    store.publish(published, found, json.loads(contract.to_json()), ORIGIN)


@pytest.fixture
def contract() -> Any:
    """A contract whose alerts go over one webhook."""
    return contract_of("exactly_once", alerts=ROUTES)


def test_an_incident_is_reported_once_updated_and_ended(store: Store, contract: Any) -> None:
    """The same again is no news; growing twofold, ending and coming back are."""
    _publish(store, 1, [one_break(1)], contract)
    assert enqueue_incident_alerts(store) == 1
    assert _send(store) == [
        "orders: BROKEN: LOST, 1 broken in orders-0, 2026-11-20 10:00 to 2026-11-20 11:00 UTC"
    ]

    _publish(store, 2, [one_break(1)], contract)
    assert (enqueue_incident_alerts(store), _send(store)) == (0, [])

    _publish(store, 3, [one_break(1), one_break(2)], contract)
    enqueue_incident_alerts(store)
    assert [subject.split(",")[1] for subject in _send(store)] == [" 2 broken in orders-0"]

    _publish(store, 4, [], contract)
    enqueue_incident_alerts(store)
    assert [subject.split(",")[0] for subject in _send(store)] == ["orders: resolved: LOST"]

    _publish(store, 5, [one_break(1), one_break(2)], contract)
    enqueue_incident_alerts(store)
    assert [subject.split(",")[0] for subject in _send(store)] == ["orders: BROKEN again: LOST"]
    assert (enqueue_incident_alerts(store), _send(store)) == (0, [])


def test_accepting_ends_the_alert_and_the_end_of_it_tells_it_again(
    store: Store, store_url: str, contract: Any
) -> None:
    """A person's act is told like the evidence's: until when it holds, and that it no longer does."""
    _publish(store, 1, [one_break(1)], contract)
    enqueue_incident_alerts(store, "orders")
    _send(store)

    soon = datetime.now(UTC) + timedelta(days=1)
    store.accept("orders", "loader", incident_id="incident-1", who="ann", reason="INC-7", expires_at=soon)
    enqueue_incident_alerts(store)
    (accepted,) = store.claim_alerts(9, _MINUTE)
    query(store_url, "UPDATE tieout.life SET accepted_until = now() - interval '1 s'")
    enqueue_incident_alerts(store)

    assert "it was accepted until" in str(accepted.alert.payload["text"])
    assert accepted.alert.is_closing
    assert [subject.split(",")[0] for subject in _send(store)] == ["orders: BROKEN again: LOST"]


def test_an_incident_that_shrinks_stays_in_its_thread(store: Store, contract: Any) -> None:
    """Its first message came: its id changes, and the receiver still sees one thing."""
    _publish(store, 1, [one_break(number) for number in range(8)], contract)
    enqueue_incident_alerts(store)
    (first,) = store.claim_alerts(9, _MINUTE)
    store.mark_sent(first)

    late = one_break(0, **{"class": "LATE", "flags": [], "severity": "warning", "incident_id": "late"})
    rest = [one_break(number, incident_id="incident-2") for number in range(1, 8)]
    sizes = [
        {**incident("late", 1), "class": "LATE", "severity": "warning"},
        {**incident("incident-2", 7), "severity": "critical"},
    ]
    published = statement(2, incidents=sizes, breaks_total=8)
    store.publish(published, [late, *rest], json.loads(contract.to_json()), ORIGIN)
    enqueue_incident_alerts(store)
    (second,) = store.claim_alerts(9, _MINUTE)

    assert (first.alert.thread, second.alert.thread, second.alert.is_closing) == (
        "incident-1",
        "incident-1",
        False,
    )
    assert second.alert.payload["incident_id"] == "incident-2"


def test_silenced_alerts_wait(store: Store, store_url: str, contract: Any) -> None:
    """Nothing is sent until the silence ends; then what is still true is."""
    _publish(store, 1, [one_break(1)], contract)
    soon = datetime.now(UTC) + timedelta(days=1)
    store.silence("orders", who="ann", reason="known", until=soon, incident_id="incident-1")
    enqueue_incident_alerts(store)
    store.enqueue([alert("another")])

    while_silent = _send(store)
    waiting = store.pending_alerts()
    store.silence("orders", who="ann", reason="over", until=None, incident_id="incident-1")

    assert (while_silent, waiting) == (["orders: BROKEN"], 1)
    assert len(_send(store)) == 1

    store.silence("orders", who="ann", reason="all of it", until=soon)
    store.enqueue([alert("a third")])
    assert _send(store) == []
    query(store_url, "UPDATE tieout.act SET expires_at = now() - interval '1 s' WHERE expires_at IS NOT NULL")
    assert _send(store) == ["orders: BROKEN"]


def test_a_run_whose_contract_cannot_be_read_stays_news(store: Store) -> None:
    """Nobody is told, nothing fails, and nothing is forgotten."""
    store.publish(statement(1), [one_break(1), one_break(2)], {"pipeline": "orders"}, ORIGIN)

    assert enqueue_incident_alerts(store) == 0
    assert len(store.incident_news("orders")) == 1
