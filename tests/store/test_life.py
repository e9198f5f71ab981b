"""A break lives on across runs: opened, resolved by what came, reopened, accepted for a while; whatever the order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from tests.store.examples import (
    CONTRACT,
    ORIGIN,
    contents,
    incident,
    one_break,
    query,
    rows,
    run_id,
    statement,
)

from tieout.errors import StoreError, UsageError
from tieout.store import Life, Store

NINE, TEN, ELEVEN, TWELVE = (f"2026-11-20T{hour:02d}:00:00+00:00" for hour in (9, 10, 11, 12))
SOON = datetime.now(UTC) + timedelta(days=1)


def _publish(
    store: Store,
    number: int,
    found: Sequence[dict[str, Any]] = (),
    *,
    window: tuple[str, str] = (TEN, ELEVEN),
    contract: dict[str, Any] = CONTRACT,
    **changes: Any,
) -> None:
    """Publish the run `number` with these breaks, and their incidents."""
    sizes: dict[str, int] = {}
    for item in found:
        sizes[item["incident_id"]] = sizes.get(item["incident_id"], 0) + 1
    classes = {item["incident_id"]: item["class"] for item in found}
    incidents = [{**incident(name, size), "class": classes[name]} for name, size in sizes.items()]
    reported = {
        "window": {"start": window[0], "end": window[1]},
        "incidents": incidents,
        "breaks_total": len(found),
        **changes,
    }
    store.publish(statement(number, **reported), found, contract, ORIGIN)


def _rows(delivered: int) -> dict[str, Any]:
    """Return coverage with so many rows of the output."""
    coverage = statement()["coverage"]
    return {**coverage, "delivered": {**coverage["delivered"], "rows": delivered}}


def _life(store: Store, break_id: str = "break-1") -> Life:
    found = store.break_life(break_id)
    assert found is not None
    return found


def _break_state(store: Store, break_id: str = "break-1") -> tuple[str, str | None, str]:
    found = _life(store, break_id)
    return found.state, found.resolution, found.class_name


def _history(store: Store, break_id: str = "break-1") -> list[tuple[str, str | None, str | None, str | None]]:
    return [(e.what, e.state, e.resolution, e.class_name) for e in store.break_history(break_id)]


def test_a_break_is_open_from_the_statement_that_tells_it(store: Store) -> None:
    """It has its first and last statement, its window, and an age of no windows."""
    _publish(store, 1, [one_break(1), one_break(2)])

    first, second = store.open_breaks("orders")
    assert (first.id, first.state, first.class_name, first.incident_id) == (
        "break-1",
        "open",
        "LOST",
        "incident-1",
    )
    assert (first.first_run_id, first.run_id, first.age_in_windows) == (run_id(1), run_id(1), 0)
    assert (first.window, first.message_id, first.offset) == (first.first_window, "m-1", 1)
    assert second.id == "break-2"
    assert [(found.id, found.breaks) for found in store.open_incidents("orders")] == [("incident-1", 2)]


@pytest.mark.parametrize(
    ("later", "coverage", "contract", "resolution"),
    [
        ([one_break(1, **{"class": "LATE", "flags": [], "incident_id": "late"})], None, {}, "late"),
        (
            [
                one_break(
                    1,
                    **{"class": "LATE", "flags": [], "incident_id": "late"},
                    evidence={"produced": [{"attempted_at": "2026-11-20T12:00:01.500Z"}]},
                )
            ],
            None,
            {},
            "replayed",
        ),
        (
            [one_break(1, **{"class": "LATE", "flags": [], "incident_id": "late"})],
            None,
            {"annotations": [{"kind": "offset_reset", "at": "2026-11-20T12:00:01.500Z"}]},
            "replayed",
        ),
        (
            [one_break(1, **{"class": "LATE", "flags": [], "incident_id": "late"})],
            None,
            {"annotations": [{"kind": "offset_reset", "at": "2026-11-20T12:00:01.5Z", "group": "another"}]},
            "late",
        ),
        ([one_break(1, **{"class": "LOG_DUPLICATE", "flags": ["LATE"]}, severity="info")], None, {}, "late"),
        ([one_break(1, **{"class": "REDELIVERY", "flags": []}, severity="info")], None, {}, "explained"),
        ([], _rows(9), {}, "backfilled"),
        ([], _rows(8), {}, "explained"),
    ],
    ids=[
        "late",
        "sent again",
        "read again as announced",
        "another group's reset",
        "late twice in the log",
        "the guarantee does not mind",
        "rows that were missing",
        "gone for another reason",
    ],
)
def test_a_break_is_resolved_as_the_new_statement_shows(
    store: Store,
    later: list[dict[str, Any]],
    coverage: dict[str, Any] | None,
    contract: dict[str, Any],
    resolution: str,
) -> None:
    """The id stays; class and state have their history, and the incident is resolved with its breaks."""
    _publish(store, 1, [one_break(1)])

    _publish(store, 2, later, contract={**CONTRACT, **contract}, coverage=coverage or _rows(8))

    found = _life(store)
    assert (found.state, found.resolution) == ("resolved", resolution)
    assert found.resolved_at == datetime(2026, 11, 20, 12, 0, 2, tzinfo=UTC)
    assert store.open_breaks("orders") == store.open_incidents("orders") == ()
    assert _history(store) == [
        ("statement", "open", None, "LOST"),
        ("statement", "resolved", resolution, found.class_name),
    ]
    earlier = store.incident_life("incident-1")
    assert earlier is not None
    assert (earlier.state, earlier.resolution) == ("resolved", resolution)


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "LATE", "flags": ["PHANTOM_ABORTED"]},
        {"class": "LATE", "flags": ["POSSIBLE_DUPLICATE"]},
        {"class": "IN_FLIGHT", "flags": ["OVERDUE"], "severity": "info"},
        {"class": "UNVERIFIABLE", "flags": [], "severity": "info"},
        {"class": "LOG_DUPLICATE", "flags": ["MISROUTED"], "severity": "info"},
        {"class": "OUTPUT_DUPLICATE", "flags": ["LATE"]},
    ],
    ids=lambda changes: "+".join([changes["class"], *changes["flags"]]),
)
def test_what_still_has_something_against_it_stays_open(store: Store, changes: dict[str, Any]) -> None:
    """Late alone is settled; late and read from an aborted transaction is not, nor is what is pending."""
    _publish(store, 1, [one_break(1)])

    _publish(store, 2, [one_break(1, **changes)])

    assert _break_state(store) == ("open", None, changes["class"])
    assert _history(store)[-1] == ("statement", "open", None, changes["class"])


def test_a_break_that_comes_back_is_reopened(store: Store) -> None:
    """A correction that is itself corrected: the whole way is in the history, and the id is the same."""
    _publish(store, 1, [one_break(1)])
    _publish(store, 2, coverage=_rows(9))

    _publish(store, 3, [one_break(1)], coverage=_rows(9))

    assert _break_state(store) == ("reopened", None, "LOST")
    assert [entry[1] for entry in _history(store)] == ["open", "resolved", "reopened"]
    assert [found.id for found in store.open_breaks("orders")] == ["break-1"]
    assert (_life(store).reopenings, _life(store).first_run_id) == (1, run_id(1))


def test_publishing_twice_changes_nothing(store: Store, store_url: str) -> None:
    """Neither a state nor a line of history."""
    _publish(store, 1, [one_break(1)])
    _publish(store, 2, [one_break(1, **{"class": "LATE", "flags": []})])
    before = (rows(store_url, "life"), rows(store_url, "life_event"), contents(store_url))
    assert before[0]
    assert before[1]

    _publish(store, 2, [one_break(1, **{"class": "LATE", "flags": []})])
    _publish(store, 1, [one_break(1)])

    assert (rows(store_url, "life"), rows(store_url, "life_event"), contents(store_url)) == before


def test_a_statement_that_does_not_count_moves_nothing(store: Store) -> None:
    """Less evidence than before cannot resolve a break: it is stored, and no more."""
    _publish(store, 1, [one_break(1)])

    _publish(store, 2, coverage={"produced": statement()["coverage"]["produced"]})

    assert _break_state(store) == ("open", None, "LOST")


def test_another_statement_under_the_same_id_takes_back_its_breaks(store: Store) -> None:
    """What the run no longer says was no break."""
    _publish(store, 1, [one_break(1), one_break(2)])

    _publish(store, 1, [one_break(2)])

    assert _break_state(store) == ("resolved", "explained", "LOST")
    assert _break_state(store, "break-2") == ("open", None, "LOST")


def _split(store: Store, order: Sequence[int]) -> list[tuple[Any, ...]]:
    """Publish one window and its later judged halves in some order, as a pipeline of its own, and return the states."""
    own = "orders_" + "".join(map(str, order))
    place = _place_of(order)

    def broken(number: int, **changes: Any) -> dict[str, Any]:
        return one_break(number, **{"break_id": f"{own}-{number}", **changes})

    def publish(number: int, found: list[dict[str, Any]], window: tuple[str, str]) -> None:
        generated = f"2026-11-20T12:00:{number:02d}Z"
        _publish(store, place * 10 + number, found, window=window, pipeline=own, generated_at=generated)

    runs: dict[int, Any] = {
        1: lambda: publish(1, [broken(1), broken(2), broken(3)], (TEN, TWELVE)),
        2: lambda: publish(2, [broken(1)], (TEN, ELEVEN)),
        3: lambda: publish(3, [broken(2, **{"class": "LATE", "flags": []})], (ELEVEN, TWELVE)),
        4: lambda: publish(4, [broken(9)], (NINE, TEN)),
    }
    for number in order:
        runs[number]()
    return [
        (found.state, found.resolution, found.class_name, found.window, found.first_seen_at, found.seen_at)
        for found in (_life(store, f"{own}-{number}") for number in (1, 2, 3, 9))
    ]


def _place_of(order: Sequence[int]) -> int:
    """Return the place of an order of 1 to 4 among all of them, from 1."""
    return list(permutations((1, 2, 3, 4))).index(tuple(order)) + 1


def test_windows_may_come_in_any_order_and_be_split(store: Store) -> None:
    """The states are the same for each of the 24 orders; no half alone says that something is gone."""
    found = [_split(store, order) for order in permutations((1, 2, 3, 4))]

    assert len(found) == 24
    assert [each[:3] for each in found[0]] == [
        ("open", None, "LOST"),
        ("resolved", "late", "LATE"),
        ("resolved", "explained", "LOST"),
        ("open", None, "LOST"),
    ]
    assert all(each == found[0] for each in found)


def test_one_half_of_a_window_does_not_resolve_the_other(store: Store) -> None:
    """A break may belong to the half that nobody has judged again yet."""
    _publish(store, 1, [one_break(1)], window=(TEN, TWELVE))

    _publish(store, 2, window=(TEN, ELEVEN))

    assert _break_state(store) == ("open", None, "LOST")


def test_a_break_beyond_the_stored_sample_is_not_taken_for_gone(store: Store) -> None:
    """Of 30 breaks 20 are stored; a followed one is looked for among all, and stays open where it still is."""
    _publish(store, 1, [one_break(number) for number in range(20, 50)])
    assert len(store.open_breaks("orders")) == 20

    _publish(store, 2, [one_break(number) for number in range(45)])

    states = {f"break-{number}": _break_state(store, f"break-{number}")[0] for number in range(20, 40)}
    assert set(states.values()) == {"open"}
    assert _break_state(store, "break-0")[0] == "open"
    assert store.break_life("break-44") is None
    (whole,) = store.open_incidents("orders")
    assert whole.breaks == 45


def test_a_statement_with_more_breaks_than_it_shows_resolves_nothing_it_did_not_read(store: Store) -> None:
    """`breaks.jsonl` ends after 100,000: what lies beyond is not known to be gone."""
    _publish(store, 1, [one_break(1)])

    _publish(store, 2, [one_break(2)], breaks_total=100)

    assert _break_state(store) == ("open", None, "LOST")


def test_an_incident_that_shrinks_has_one_history(store: Store) -> None:
    """Its first message came, so its id changes; the new one goes on from it."""
    _publish(store, 1, [one_break(1), one_break(2)])

    late = one_break(1, **{"class": "LATE", "flags": [], "incident_id": "late"})
    _publish(store, 2, [late, one_break(2, incident_id="incident-2")])

    before, after = store.incident_life("incident-1"), store.incident_life("incident-2")
    assert before is not None
    assert after is not None
    assert (before.state, before.resolution) == ("resolved", "continued")
    assert (after.state, after.origin_id) == ("open", "incident-1")


def test_age_counts_the_windows_judged_since(store: Store) -> None:
    """Re-judging the same windows does not make a break older; its resolution stops the count."""
    _publish(store, 1, [one_break(1), one_break(2)])
    _publish(store, 2, window=(ELEVEN, TWELVE))
    _publish(store, 3, window=(TWELVE, "2026-11-20T13:00:00Z"))
    _publish(store, 4, window=(TWELVE, "2026-11-20T13:00:00Z"))
    assert [found.age_in_windows for found in store.open_breaks("orders")] == [2, 2]

    _publish(store, 5, [one_break(2)], generated_at="2026-11-20T14:00:00Z")
    _publish(store, 6, window=("2026-11-20T14:00:00Z", "2026-11-20T15:00:00Z"))

    assert [found.age_in_windows for found in store.open_breaks("orders")] == [3]
    assert _life(store).age_in_windows == 2


def test_pages_follow_each_other(store: Store) -> None:
    """The last id of a page leads to the next, also where that break was resolved meanwhile."""
    _publish(store, 1, [one_break(number) for number in range(7)])
    _publish(store, 2, [one_break(8)], window=(NINE, TEN))

    first = store.open_breaks("orders", limit=3)
    _publish(store, 3, [one_break(number) for number in range(7) if number != 1])
    second = store.open_breaks("orders", limit=3, after=first[-1].id)
    third = store.open_breaks("orders", limit=3, after=second[-1].id)

    assert [found.id for found in (*first, *second, *third)] == ["break-8", *(f"break-{n}" for n in range(7))]


def test_an_acceptance_resolves_and_its_end_reopens(store: Store, store_url: str) -> None:
    """Who, why and until when are kept; afterwards it is open again, as the history says."""
    _publish(store, 1, [one_break(1), one_break(2)])

    moved = store.accept(
        "orders", "loader", incident_id="incident-1", who="ann", reason="INC-7", expires_at=SOON
    )
    accepted = (_break_state(store), store.open_incidents("orders"))
    query(store_url, "UPDATE tieout.life SET accepted_until = now() - interval '1 s'")
    again = store.open_breaks("orders")

    assert moved == 3
    assert accepted == (("resolved", "accepted", "LOST"), ())
    assert [(found.id, found.state) for found in again] == [("break-1", "reopened"), ("break-2", "reopened")]
    assert [entry[:3] for entry in _history(store)] == [
        ("statement", "open", None),
        ("accept", None, None),
        ("statement", "resolved", "accepted"),
        ("statement", "reopened", None),
    ]
    (act,) = [entry for entry in store.break_history("break-1") if entry.what == "accept"]
    assert (act.who, act.reason, act.expires_at) == ("ann", "INC-7", SOON)


def test_an_acceptance_holds_for_later_statements_of_the_same_class_only(store: Store) -> None:
    """Judged again, the break stays accepted; become a duplicate, it is news. A verdict never changes."""
    _publish(store, 1, [one_break(1)])
    store.accept("orders", "loader", break_ids=["break-1"], who="ann", reason="known", expires_at=SOON)

    _publish(store, 2, [one_break(1)])
    same = _break_state(store)
    _publish(store, 3, [one_break(1, **{"class": "OUTPUT_DUPLICATE"})])

    run = store.run(run_id(2))
    assert run is not None
    assert run.verdict == "BROKEN"
    assert same == ("resolved", "accepted", "LOST")
    assert _break_state(store) == ("reopened", None, "OUTPUT_DUPLICATE")


def test_more_breaks_of_an_accepted_incident_are_accepted_too(store: Store) -> None:
    """The incident is what was accepted, not the sample that was stored of it."""
    _publish(store, 1, [one_break(1)])
    store.accept("orders", "loader", incident_id="incident-1", who="ann", reason="known", expires_at=SOON)

    _publish(store, 2, [one_break(1), one_break(2)])

    assert _break_state(store, "break-2") == ("resolved", "accepted", "LOST")


def test_an_acceptance_is_taken_back(store: Store) -> None:
    """It is open again at once; what the evidence resolved is not reopened by hand."""
    _publish(store, 1, [one_break(1), one_break(2)])
    store.accept("orders", "loader", break_ids=["break-1"], who="ann", reason="known", expires_at=SOON)

    assert store.reopen("orders", "loader", break_ids=["break-1"], who="bob", reason="not known") == 1
    assert _break_state(store) == ("reopened", None, "LOST")
    _publish(store, 2, [one_break(2)])
    with pytest.raises(StoreError, match="break-1 is explained; what the evidence resolved"):
        store.reopen("orders", "loader", break_ids=["break-1"], who="bob", reason="why")


def test_a_note_stands_in_the_history(store: Store) -> None:
    """Hostile text is kept visibly; the state stays."""
    _publish(store, 1, [one_break(1)])

    store.annotate("orders", "loader", incident_id="incident-1", who="ann", reason="see <b>\x00")

    (note,) = [entry for entry in store.break_history("break-1") if entry.what == "annotate"]
    assert (note.who, note.reason) == ("ann", "see <b>\\u0000")
    assert _break_state(store)[0] == "open"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"who": " "}, "who: expected some words"),
        ({"reason": ""}, "reason: expected some words"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expected a time in the future"),
        ({"expires_at": datetime(2099, 1, 1)}, "expected a time with a time zone"),  # noqa: DTZ001 - the mistake
        ({"break_ids": ["nobody"]}, "found it nowhere"),
        ({"break_ids": []}, "name either one incident or at least one break"),
        ({"incident_id": "incident-1"}, "name either one incident or at least one break"),
        ({"group": "another"}, "found it nowhere"),
    ],
)
def test_an_act_that_makes_no_sense_is_refused(store: Store, changes: dict[str, Any], complaint: str) -> None:
    """It says what is missing, and nothing is written."""
    _publish(store, 1, [one_break(1)])
    given: dict[str, Any] = {
        "group": "loader", "break_ids": ["break-1"], "who": "ann", "reason": "r", "expires_at": SOON, **changes,
    }  # fmt: skip

    with pytest.raises((UsageError, StoreError), match=complaint):
        store.accept("orders", given.pop("group"), **given)

    assert _break_state(store)[0] == "open"
    assert len(store.break_history("break-1")) == 1


def test_a_silence_holds_until_its_time_or_its_end(store: Store) -> None:
    """Of a pipeline, or of one of its incidents; the latest act counts."""
    _publish(store, 1, [one_break(1)])

    store.silence("orders", who="ann", reason="maintenance", until=SOON)
    store.silence("orders", who="ann", reason="known", until=SOON, incident_id="incident-1")
    both = [(found.pipeline, found.incident_id, found.reason) for found in store.silences("orders")]
    store.silence("orders", who="bob", reason="over", until=None)

    assert both == [("orders", None, "maintenance"), ("orders", "incident-1", "known")]
    assert [found.incident_id for found in store.silences()] == ["incident-1"]
    with pytest.raises(StoreError, match="no run of it is in the store"):
        store.silence("order", who="ann", reason="r", until=SOON)
    with pytest.raises(StoreError, match="no incident nobody"):
        store.silence("orders", who="ann", reason="r", until=SOON, incident_id="nobody")


def test_windows_with_open_messages_are_to_be_judged_again(store: Store) -> None:
    """In flight, lost, not to be told, PENDING or UNKNOWN: all before a time; duplicates will not come undone."""
    calm: dict[str, Any] = {"classes": {"DELIVERED": 10}, "partitions": [], "verdict": "KEPT"}
    _publish(store, 1, [one_break(1)], window=(NINE, TEN))
    _publish(store, 2, window=(TEN, ELEVEN), **calm)
    _publish(store, 3, window=(ELEVEN, TWELVE), **{**calm, "verdict": "PENDING"})
    _publish(store, 4, window=("2026-11-20T08:00:00Z", NINE), **{**calm, "classes": {"OUTPUT_DUPLICATE": 1}})

    found = store.windows_to_rejudge("orders", "loader", datetime(2026, 11, 20, 12, tzinfo=UTC))
    earlier = store.windows_to_rejudge("orders", "loader", datetime(2026, 11, 20, 11, tzinfo=UTC))
    recent = store.windows_to_rejudge(
        "orders",
        "loader",
        datetime(2026, 11, 20, 12, tzinfo=UTC),
        since=datetime(2026, 11, 20, 10, tzinfo=UTC),
    )

    assert [window.run_id for window in found] == [run_id(1), run_id(3)]
    assert [window.run_id for window in earlier] == [run_id(1)]
    assert [window.run_id for window in recent] == [run_id(3)]
    assert store.windows_to_rejudge("orders", "another", datetime(2027, 1, 1, tzinfo=UTC)) == ()
