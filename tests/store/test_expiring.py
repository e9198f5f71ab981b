"""What is kept no longer goes; a window's verdict never does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.store.examples import CONTRACT, ORIGIN, WINDOW, breaks, run_id, statement

from tieout.store import Store

SOON = WINDOW.end + timedelta(days=36_500)


def published(store: Store, number: int, **changes: Any) -> None:
    """Publish a statement."""
    store.publish(statement(number, **changes), breaks(), CONTRACT, ORIGIN)


def test_only_runs_that_do_not_count_are_deleted_with_what_hangs_on_them(store: Store) -> None:
    """The second replaced the first; both were published before the time named."""
    published(store, 1)
    published(store, 2)

    assert store.delete_expired(WINDOW.end - timedelta(days=36_500), None) == (0, 0)
    assert store.delete_expired(SOON, None) == (1, 0)
    assert store.delete_expired(SOON, None) == (0, 0)

    assert store.run(run_id(1)) is None
    assert store.breaks(run_id(1)) == ()
    assert [run.run_id for run in store.runs_of("orders")] == [run_id(2)]
    assert len(store.breaks(run_id(2))) == 2


def test_breaks_of_old_windows_are_deleted_and_their_statement_stays(store: Store) -> None:
    """The verdict, the counts and the incidents are still there, so the window was judged."""
    published(store, 1)

    assert store.delete_expired(None, WINDOW.end) == (0, 0)
    assert store.delete_expired(None, SOON) == (0, 2)

    assert store.breaks(run_id(1)) == ()
    assert len(store.incidents(run_id(1))) == 1
    assert len(store.judged_windows("orders", WINDOW.start)) == 1


def test_without_a_time_nothing_is_deleted(store: Store) -> None:
    """The default keeps everything."""
    published(store, 1)

    assert store.delete_expired(None, None) == (0, 0)
