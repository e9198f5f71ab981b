"""Lists are read piece by piece without losing or doubling a row, and a reader sees one moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.store.examples import CONTRACT, ORIGIN, WINDOW, incident, one_break, query, run_id, statement

from tieout.errors import StoreError, UsageError
from tieout.model import CheckResult, CheckStatus, Severity, Verdict, Window
from tieout.store import Store
from tieout.store.paging import BREAK_SORTS, INCIDENT_SORTS, WINDOW_SORTS
from tieout.store.views import BreakFilter, Buckets, IncidentFilter, WindowFilter

HOUR = timedelta(hours=1)


def _publish(store: Store, number: int, hour: int, **changes: Any) -> None:
    start = WINDOW.start + hour * HOUR
    window = {"start": start.isoformat(), "end": (start + HOUR).isoformat()}
    breaks = [
        one_break(1, topic=None, partition=None, offset=None),
        *(one_break(place, **{"class": "LATE" if place % 2 else "LOST"}) for place in range(2, 7)),
    ]
    found = [incident("incident-1", 2), {**incident("incident-2", 2), "severity": "critical"}]
    store.publish(
        statement(number, window=window, **{"incidents": found, **changes}), breaks, CONTRACT, ORIGIN
    )


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with three windows of one pipeline, each with two incidents and six breaks."""
    for number, hour in ((1, 0), (2, 2), (3, 1)):
        _publish(store, number, hour)
    return store


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
def test_pieces_of_a_list_are_the_list(filled: Store, limit: int) -> None:
    """In every order, pieces of every size put together are what is read at once, nulls and equal counts included."""
    with filled.reading() as reader:
        lists: list[tuple[Callable[..., Any], int]] = [
            *(
                (lambda sort=sort, **k: reader.windows("orders", WindowFilter(), sort=sort, **k), 3)
                for sort in WINDOW_SORTS
            ),
            *(
                (lambda sort=sort, **k: reader.incidents("orders", IncidentFilter(), sort=sort, **k), 6)
                for sort in INCIDENT_SORTS
            ),
            *(
                (lambda sort=sort, **k: reader.breaks(run_id(1), BreakFilter(), sort=sort, **k), 6)
                for sort in BREAK_SORTS
            ),
        ]
        for read, expected in lists:
            whole = read(limit=100)
            pieces: list[Any] = []
            after = None
            while not pieces or after is not None:
                page = read(after=after, limit=limit)
                pieces += page.rows
                after = page.next_key

            assert len(whole.rows) == expected
            assert tuple(pieces) == whole.rows


def test_filters_leave_what_they_name(filled: Store) -> None:
    """Each filter alone, and what is of no run."""
    with filled.reading() as reader:
        late = reader.breaks(run_id(1), BreakFilter(class_name="LATE"))
        first = reader.windows("orders", WindowFilter(end=WINDOW.end))
        unknown = reader.windows("orders", WindowFilter(verdict=Verdict.UNKNOWN))
        elsewhere = reader.incidents("orders", IncidentFilter(topic="payments"))

    assert [row.break_id for row in late.rows] == ["break-3", "break-5"]
    assert [row.window for row in first.rows] == [WINDOW]
    assert (unknown.rows, elsewhere.rows) == ((), ())


def test_a_verdict_is_filtered_as_it_is_shown(store: Store) -> None:
    """KEPT by the judge and not checked counts as UNKNOWN, in the list as on the page."""
    _publish(store, 1, 0, verdict="KEPT")
    _publish(store, 2, 1, verdict="KEPT")
    check = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
    store.record_checks(run_id(2), [check], Verdict.KEPT, suite="s", suite_digest="d", gx_version="1")

    with store.reading() as reader:
        found = {
            verdict: [row.run_id for row in reader.windows("orders", WindowFilter(verdict=verdict)).rows]
            for verdict in Verdict
        }

    assert found == {
        Verdict.KEPT: [run_id(2)],
        Verdict.UNKNOWN: [run_id(1)],
        Verdict.BROKEN: [],
        Verdict.PENDING: [],
    }


def test_time_without_a_run_is_a_gap(filled: Store) -> None:
    """Three hours are judged; of the expected six the others are gaps, and all six where nothing was judged."""
    buckets = Buckets(WINDOW.start, HOUR, 6)
    expected = Window(buckets.start, buckets.end)

    with filled.reading() as reader:
        gaps = reader.gaps({"orders": expected, "unheard_of": expected}, buckets, HOUR)

    assert sorted(gap.bucket for gap in gaps if gap.pipeline == "orders") == [3, 4, 5]
    assert sorted(gap.bucket for gap in gaps if gap.pipeline == "unheard_of") == [0, 1, 2, 3, 4, 5]


def test_a_window_longer_than_a_bucket_is_in_each_that_it_touches(store: Store) -> None:
    """Also the one that began before the first bucket."""
    start, end = WINDOW.start - 2 * HOUR, WINDOW.start + 2 * HOUR
    store.publish(
        statement(window={"start": start.isoformat(), "end": end.isoformat()}), [], CONTRACT, ORIGIN
    )

    with store.reading() as reader:
        found = reader.health(["orders"], Buckets(WINDOW.start, HOUR, 6), 4 * HOUR)

    assert sorted(part.bucket for part in found) == [0, 1]
    assert {part.verdict for part in found} == {Verdict.BROKEN}


def test_a_renamed_group_counts_once(store: Store) -> None:
    """Of two groups' current runs of a window the later published one counts."""
    store.publish(statement(1), [], CONTRACT, ORIGIN)
    store.publish(statement(2, group="renamed"), [], CONTRACT, ORIGIN)
    check = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
    store.record_checks(run_id(2), [check], Verdict.KEPT, suite="s", suite_digest="d", gx_version="1")

    with store.reading() as reader:
        found = reader.health(["orders"], Buckets(WINDOW.start, HOUR, 1), HOUR)

    assert [(part.verdict, part.windows) for part in found] == [(Verdict.KEPT, 1)]


def test_a_reader_sees_one_moment_and_cannot_write(store: Store, store_url: str) -> None:
    """What is published while a page is made is on the next one."""
    with store.reading() as reader:
        before = reader.pipelines()
        store.publish(statement(), [], CONTRACT, ORIGIN)
        after = reader.pipelines()

    assert (before, after) == ((), ())
    with pytest.raises(StoreError, match="read-only"), store.reading() as reader:
        reader._cursor.execute("DELETE FROM tieout.run")
    assert len(query(store_url, "SELECT 1 FROM tieout.run")) == 1


@pytest.mark.parametrize(
    "after", [[], ["x"], [1, 2, 3], ["yesterday", run_id(1), "i"], [None, run_id(1), "i"]]
)
def test_a_key_of_something_else_is_refused(store: Store, after: list[Any]) -> None:
    """An address that was tampered with gets an error of its own, not the database's."""
    with store.reading() as reader, pytest.raises(UsageError, match="expected a key of window_start"):
        reader.incidents("orders", IncidentFilter(), after=after)
    with (
        store.reading() as reader,
        pytest.raises(UsageError, match="expected one of oldest, newest, largest"),
    ):
        reader.incidents("orders", IncidentFilter(), sort="severity; DROP TABLE")
