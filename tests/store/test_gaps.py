"""Gaps are told once when they open and once when they close, however often an audit finds them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.store.examples import CONTRACT, ORIGIN, WINDOW, breaks, run_id, statement

from tieout.contracts import AlertRoute, Contract, load_contract
from tieout.model import Severity, Verdict, Window
from tieout.reporting.gap_alerts import Gap, WindowState, closed_alert, gap_alerts
from tieout.store import GapsTold, OpenGap, RunOrigin, Store

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    """A contract with two routes, of which one wants critical news only."""
    file = tmp_path / "orders.yml"
    file.write_text(
        "version: 1\npipeline: orders\nguarantee: exactly_once\ngroup: loader\nledgers:\n"
        "  produced: {source: {kind: files, format: jsonl, path: a}}\n"
        "  delivered: {source: {kind: files, format: jsonl, path: b}}\n"
    )
    routes = (
        AlertRoute(to="webhook", connection="on_call"),
        AlertRoute(to="slack", connection="pager", at=Severity.CRITICAL),
    )
    return load_contract(file).model_copy(update={"alerts": routes})


def gap(contract: Contract, first: int, until: int, *, is_stale: bool = False) -> OpenGap:
    """Return a gap from one hour after ten to another, with its alerts."""
    state = WindowState.STALE if is_stale else WindowState.MISSING
    window = Window(TEN + first * HOUR, TEN + until * HOUR)
    found = Gap(is_stale, window, {state: until - first}, {"Airflow has no run of it": until - first})
    return OpenGap(found.kind, window, gap_alerts(contract, found))


def stored(store: Store, *found: OpenGap, since: datetime = TEN) -> GapsTold:
    """Tell what an audit found."""
    return store.store_gap_alerts("orders", found, since, closed_alert)


def sent(store: Store) -> list[tuple[str, str, str]]:
    """Send what waits and return kind, receiver and subject of each."""
    claimed = store.claim_alerts(100, timedelta(minutes=5))
    for one in claimed:
        store.mark_sent(one)
    return [(one.alert.kind, one.alert.to, str(one.alert.payload["subject"])) for one in claimed]


def test_a_gap_is_reported_once_to_everybody_who_wants_it(store: Store, contract: Contract) -> None:
    """However often it is found and however it grows, and a stale one to those who want warnings."""
    assert stored(store, gap(contract, 0, 1)) == GapsTold(2, 0, 0)
    assert [(kind, to) for kind, to, _ in sent(store)] == [("window_gap", "webhook"), ("window_gap", "slack")]

    assert stored(store, gap(contract, 0, 5)) == GapsTold(0, 2, 0)
    assert stored(store, gap(contract, 3, 5)) == GapsTold(0, 2, 0)
    assert sent(store) == []
    assert stored(store, gap(contract, 0, 5), gap(contract, 7, 8, is_stale=True)) == GapsTold(1, 2, 0)


def test_what_still_waits_goes_out_as_it_is_now(store: Store, contract: Contract) -> None:
    """A receiver that was down all night hears of the whole night."""
    stored(store, gap(contract, 0, 1))
    stored(store, gap(contract, 0, 12))

    ((_, _, subject), _) = sent(store)

    assert subject == "orders: 12 missing windows, 2026-11-20 10:00 to 2026-11-20 22:00 UTC"


def test_a_closed_gap_is_reported_to_whom_it_was_reported_open(store: Store, contract: Contract) -> None:
    """Once, with the lowest severity, and with the whole span that it had."""
    stored(store, gap(contract, 0, 1))
    stored(store, gap(contract, 0, 3))
    sent(store)

    assert stored(store) == GapsTold(0, 0, 2)
    assert stored(store) == GapsTold(0, 0, 0)
    assert sent(store) == [
        (
            "window_gap_closed",
            to,
            "orders: closed, every window was judged, 2026-11-20 10:00 to 2026-11-20 13:00 UTC",
        )
        for to in ("webhook", "slack")
    ]


def test_a_gap_that_opens_again_is_reported_again(store: Store, contract: Contract) -> None:
    """It is other news than the one that was closed."""
    for _ in range(2):
        assert stored(store, gap(contract, 0, 1)) == GapsTold(2, 0, 0)
        assert stored(store) == GapsTold(0, 0, 2)

    assert len(sent(store)) == 8


def test_half_a_gap_closed_is_the_same_gap(store: Store, contract: Contract) -> None:
    """The middle was judged: neither half is news, and the gap closes with the last of them."""
    stored(store, gap(contract, 0, 5))

    assert stored(store, gap(contract, 0, 2), gap(contract, 3, 5)) == GapsTold(0, 4, 0)
    assert stored(store, gap(contract, 4, 5)) == GapsTold(0, 2, 0)
    assert stored(store) == GapsTold(0, 0, 2)


def test_a_gap_that_was_not_looked_at_is_not_closed(store: Store, contract: Contract) -> None:
    """The audit's reach moved on: nobody knows that its windows were judged."""
    stored(store, gap(contract, 0, 1))

    assert stored(store, since=TEN + 2 * HOUR) == GapsTold(0, 0, 0)


def published(store: Store, number: int, **changes: Any) -> None:
    """Publish a statement."""
    store.publish(statement(number, **changes), breaks(), CONTRACT, ORIGIN)


def test_the_judged_windows_are_the_current_ones(store: Store) -> None:
    """A later run with less evidence is not the one that counts, but it is noted."""
    published(store, 1)
    published(store, 2, coverage={"produced": {"covers": False}, "delivered": {"covers": False}})
    store.record_checks(run_id(1), [], Verdict.BROKEN, suite="s", suite_digest="d", gx_version="1")

    (one,) = store.judged_windows("orders", WINDOW.start)

    assert (one.run_id, one.window, one.group) == (run_id(1), WINDOW, "loader")
    assert (one.is_checked, one.has_later_run) == (True, True)
    assert store.judged_windows("orders", WINDOW.end) == ()
    assert store.judged_windows("others", WINDOW.start) == ()


def test_an_audit_begins_where_something_is_known(store: Store, contract: Contract) -> None:
    """With the first window that its timetable had judged, or that was told to be missing; none asked for by hand."""
    by_hand = {"start": "2020-01-01T00:00:00+00:00", "end": "2020-01-01T01:00:00+00:00"}
    store.publish(statement(9, window=by_hand), breaks(), CONTRACT, RunOrigin("orders", "manual__1", 1))
    assert store.audited_since("orders") is None

    published(store, 1)
    assert store.audited_since("orders") == WINDOW.start

    stored(store, gap(contract, -3, -2), since=TEN - 5 * HOUR)
    assert store.audited_since("orders") == TEN - 3 * HOUR


def test_a_pipeline_is_known_by_its_last_contract(store: Store) -> None:
    """Its file may be gone."""
    published(store, 1)

    assert store.last_contracts() == {"orders": (CONTRACT, WINDOW.end)}
    assert store.contract_versions("orders") == {"c0ffee": CONTRACT}
