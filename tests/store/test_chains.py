"""A loss over a chain of contracts: told at the hop where it happened, once, whatever is judged first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.store.checked import contract_of
from tests.store.examples import ORIGIN, incident, one_break, query, run_id, statement

from tieout.orchestration.incident_alerting import enqueue_incident_alerts
from tieout.store import Origin, Store

TEN, ELEVEN, TWELVE, ONE = (f"2026-11-20T{hour:02d}:00:00+00:00" for hour in (10, 11, 12, 13))
ROUTES = [{"to": "webhook", "connection": "hook", "at": "warning"}]
CHAIN: dict[str, Any] = {"enrich": None, "route": "enrich", "table": "route"}


def _publish(
    store: Store,
    number: int,
    pipeline: str,
    lost: Sequence[str] = (),
    *,
    after: Any = None,
    window: tuple[str, str] = (TEN, ELEVEN),
    **changes: Any,
) -> str:
    """Publish a run of a hop that lost these messages, as one incident, and return the incident's id."""
    terms = changes.pop("terms", {"alerts": ROUTES})
    reported = {"pipeline": {"pipeline": after} if isinstance(after, str) else after}
    contract = json.loads(contract_of("exactly_once", **terms).to_json())
    contract |= {"pipeline": pipeline} | ({} if after is None else {"after": reported["pipeline"]})
    name = f"{pipeline}-{window[0]}"
    severity = changes.pop("severity", "critical")
    found = [
        one_break(place, break_id=f"{name}-{one}", message_id=one, incident_id=name, severity=severity)
        for place, one in enumerate(lost)
    ]
    size = changes.pop("size", len(found))
    facts = {
        "pipeline": pipeline,
        "window": {"start": window[0], "end": window[1]},
        "incidents": [{**incident(name, size), "severity": severity}] if found else [],
        "breaks_total": size,
        **changes,
    }
    store.publish(statement(number, **facts), found, contract, ORIGIN)
    return name


def _origin(store: Store, number: int, pipeline: str, name: str) -> Origin:
    return store.origins(pipeline, [run_id(number)])[run_id(number), name]


def _alerts(url: str) -> list[tuple[str, str]]:
    return [
        (row["pipeline"], row["payload"]["subject"].split(": ", 1)[1].split(",")[0])
        for row in query(url, "SELECT pipeline, payload FROM tieout.alert ORDER BY alert_id")
    ]


@pytest.mark.parametrize("order", [(1, 2, 3), (1, 3, 2)])
def test_one_loss_at_the_first_of_three_hops_is_one_incident(
    store: Store, store_url: str, order: tuple[int, ...]
) -> None:
    """The later hops have the loss in their statements, and their alerts say nothing of it."""
    hops = dict(zip((1, 2, 3), CHAIN.items(), strict=True))
    names = {}
    for number in order:
        pipeline, after = hops[number]
        names[pipeline] = _publish(store, number, pipeline, ["m-1", "m-2"], after=after)
    enqueue_incident_alerts(store)
    enqueue_incident_alerts(store)

    assert _alerts(store_url) == [("enrich", "BROKEN: LOST")]
    for number, pipeline in ((2, "route"), (3, "table")):
        origin = _origin(store, number, pipeline, names[pipeline])
        assert (origin.is_consequence, origin.words) == (True, "lost before, at enrich")
        assert [(one.incident_id, one.messages) for one in origin.earlier] == [(names["enrich"], 2)]
    assert store.origins("enrich", [run_id(1)]) == {}


def test_a_hop_in_between_that_never_knew_of_it_hides_nothing(store: Store) -> None:
    """Where the second hop's producers are the first one's output, it is KEPT, and the third's loss is the first's."""
    _publish(store, 1, "enrich", ["m-1"])
    _publish(store, 2, "route", after="enrich")
    name = _publish(store, 3, "table", ["m-1"], after="route")

    origin = _origin(store, 3, "table", name)

    assert origin.words == "lost before, at enrich"
    assert origin.is_alerted_before


def test_what_was_lost_here_is_reported_beside_what_was_lost_before(store: Store, store_url: str) -> None:
    """An incident of both is told: one of its messages was lost nowhere else."""
    _publish(store, 1, "enrich", ["m-1", "m-2"])
    name = _publish(store, 2, "route", ["m-1", "m-2", "m-3"], after="enrich")
    enqueue_incident_alerts(store)

    origin = _origin(store, 2, "route", name)

    assert (origin.is_consequence, origin.doubt) == (False, None)
    assert origin.words == "2 of 3 were lost before, at enrich; the others here"
    assert _alerts(store_url) == [("enrich", "BROKEN: LOST"), ("route", "BROKEN: LOST")]


def test_a_loss_after_a_hop_that_lost_nothing_is_one_of_its_own(store: Store, store_url: str) -> None:
    """Known from the windows of the hop before, which cover the time."""
    _publish(store, 1, "enrich")
    name = _publish(store, 2, "route", ["m-1"], after="enrich")
    enqueue_incident_alerts(store)

    assert _origin(store, 2, "route", name).words == "lost here: enrich did not lose them"
    assert _alerts(store_url) == [("route", "BROKEN: LOST")]


_DOUBTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"window": (TWELVE, ONE)},
        {},
        "enrich has not judged all of 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z",
    ),
    (
        {"lost": ["x"]},
        {},
        "enrich lost others, and no id is known to be the same there and here; where ids change on the way, "
        "after.id says how",
    ),
    ({"terms": {"identity": "content"}}, {}, "enrich identifies messages by content"),
    ({"terms": {"id_scope": "session"}}, {}, "enrich has ids that are a session's own"),
    ({"size": 5}, {}, "not every id of what enrich lost is known"),
    ({}, {"terms": {"identity": "position"}}, "route identifies messages by position"),
    ({}, {"size": 5}, "not every id of them is known"),
    (
        {},
        {"terms": {"multiplicity": {"kind": "one_to_many", "count": 2}}},
        "route is one_to_many: of a message, a part may be lost",
    ),
    ({}, {"after": {"pipeline": "enrich", "id": "(.+)/route"}}, "after.id does not match each of their ids"),
]


@pytest.mark.parametrize(("before", "here", "doubt"), _DOUBTS)
def test_an_unknown_origin_is_reported_and_alerted(
    store: Store, store_url: str, before: dict[str, Any], here: dict[str, Any], doubt: str
) -> None:
    """Nothing is held back on a guess."""
    given = {"lost": ["m-1"], "terms": {}, **before}
    given["terms"] = {"alerts": ROUTES, **given["terms"]}
    _publish(store, 1, "enrich", given.pop("lost"), **given)
    later = {"after": "enrich", **here, "terms": {"alerts": ROUTES, **here.get("terms", {})}}
    name = _publish(store, 2, "route", ["m-1"], **later)
    enqueue_incident_alerts(store, "route")

    origin = _origin(store, 2, "route", name)

    assert origin.words == f"could not tell whether enrich lost them: {doubt}"
    assert _alerts(store_url) == [("route", "BROKEN: LOST")]


def test_ids_that_change_are_compared_where_the_contract_says_how(store: Store) -> None:
    """One that does not occur at the hop before was then lost here."""
    after = {"pipeline": "enrich", "id": "(.+)/[a-z]+"}
    _publish(store, 1, "enrich", ["m-1"])
    lost = _publish(store, 2, "route", ["m-1/route"], after=after)
    own = _publish(store, 3, "route", ["m-2/route"], after=after, window=(ELEVEN, TWELVE))
    _publish(store, 4, "enrich", window=(ELEVEN, TWELVE))

    assert _origin(store, 2, "route", lost).words == "lost before, at enrich"
    assert _origin(store, 3, "route", own).words == "lost here: enrich did not lose them"


def test_nothing_is_compared_beyond_a_hop_at_which_ids_change(store: Store) -> None:
    """The third hop knows only how the second calls its messages."""
    _publish(store, 1, "enrich", ["m-1"])
    _publish(store, 2, "route", after={"pipeline": "enrich", "id": "(.+)/route"})
    name = _publish(store, 3, "table", ["m-1/route"], after="route")

    assert _origin(store, 3, "table", name).words == (
        "could not tell whether route lost them: ids change at route, and what was lost before it is not compared"
    )


def test_windows_of_the_hop_before_may_be_longer_shorter_and_earlier(store: Store) -> None:
    """Within the look-back of the later contract."""
    _publish(store, 1, "enrich", ["m-1"], window=("2026-11-19T00:00:00+00:00", "2026-11-20T00:00:00+00:00"))
    _publish(store, 2, "enrich", ["m-2"], window=(TEN, "2026-11-20T10:30:00+00:00"))
    _publish(store, 3, "enrich", window=("2026-11-20T10:30:00+00:00", ELEVEN))
    name = _publish(store, 4, "route", ["m-1", "m-2"], after="enrich")
    short: dict[str, Any] = {"terms": {"alerts": ROUTES, "look_back": "1h"}}
    shorter = _publish(store, 5, "table", ["m-1", "m-2"], after="enrich", **short)

    origin = _origin(store, 4, "route", name)
    assert (origin.is_consequence, [one.messages for one in origin.earlier]) == (True, [1, 1])
    assert _origin(store, 5, "table", shorter).words == "1 of 2 were lost before, at enrich; the others here"


@pytest.mark.parametrize("quiet", [{"terms": {"alerts": []}}, {"severity": "warning"}])
def test_a_loss_without_an_alert_at_the_hop_before_is_alerted_here(
    store: Store, store_url: str, quiet: dict[str, Any]
) -> None:
    """Where it has no routes, or its guarantee does not mind the loss."""
    _publish(store, 1, "enrich", ["m-1"], **quiet)
    name = _publish(store, 2, "route", ["m-1"], after="enrich")
    enqueue_incident_alerts(store)

    assert _origin(store, 2, "route", name).is_consequence
    assert _alerts(store_url) == [("route", "BROKEN: LOST")]


def test_what_the_hop_before_repaired_is_reported_here_only_if_it_is_still_lost(
    store: Store, store_url: str
) -> None:
    """A replay passes hop by hop: the later hop is judged again before anything is said of it."""
    _publish(store, 1, "enrich", ["m-1"])
    name = _publish(store, 2, "route", ["m-1"], after="enrich")
    _publish(store, 3, "enrich")
    enqueue_incident_alerts(store, "route")
    assert _origin(store, 2, "route", name).is_consequence
    assert _alerts(store_url) == []

    _publish(store, 4, "route", ["m-1"], after="enrich")
    enqueue_incident_alerts(store, "route")

    assert _origin(store, 4, "route", name).words == "lost here: enrich did not lose them"
    assert _alerts(store_url) == [("route", "BROKEN: LOST")]


def test_what_is_held_back_and_resolved_is_never_alerted(store: Store, store_url: str) -> None:
    """Its end is told only where its beginning was."""
    _publish(store, 1, "enrich", ["m-1"])
    _publish(store, 2, "route", ["m-1"], after="enrich")
    enqueue_incident_alerts(store, "route")
    _publish(store, 3, "route", after="enrich")
    enqueue_incident_alerts(store, "route")

    assert _alerts(store_url) == []
    assert store.incident_news("route") == ()


def test_incidents_that_are_held_back_keep_no_other_from_being_alerted(store: Store) -> None:
    """However many they are."""
    for hour in range(5):
        window = (f"2026-11-20T{hour:02d}:00:00+00:00", f"2026-11-20T{hour + 1:02d}:00:00+00:00")
        lost = [f"m-{hour}-{number}" for number in range(9)]
        _publish(store, hour + 1, "enrich", lost, window=window)
        _publish(store, hour + 11, "route", lost, after="enrich", window=window)
    own = _publish(store, 30, "route", ["own"], after="enrich", window=(TWELVE, ONE))

    assert [one.id for one in store.incident_news("route", limit=2)] == [own]


def test_a_cycle_ends_where_it_closes(store: Store) -> None:
    """No contract file loads so; a store may still hold what older ones said."""
    _publish(store, 1, "route", ["m-1"], after="table")
    name = _publish(store, 2, "table", ["m-1"], after="route")

    assert _origin(store, 2, "table", name).words == "lost before, at route"
