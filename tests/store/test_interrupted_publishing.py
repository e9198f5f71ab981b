"""A publication that is killed, cut off or contended leaves the store as before it or as after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from tests.store.examples import (
    CONTRACT,
    ORIGIN,
    WINDOW,
    breaks,
    contents,
    one_break,
    query,
    statement,
)

from tieout.errors import PublishInProgressError, StoreError
from tieout.store import Store

_PUBLISHER = """
import sys
from tests.store.examples import CONTRACT, ORIGIN, breaks, statement
from tieout.store import Store
Store(sys.argv[1], application_name="publisher").publish(statement(2), breaks(), CONTRACT, ORIGIN)
"""

_KILLS_ITSELF_WHILE_READING_BREAKS = """
import os, signal, sys
from tests.store.examples import CONTRACT, ORIGIN, one_break, statement
from tieout.store import Store

def breaks():
    for number in range(1000):
        yield one_break(number, incident_id=f"i{number}")
    os.kill(os.getpid(), signal.SIGKILL)

Store(sys.argv[1]).publish(statement(2), breaks(), CONTRACT, ORIGIN)
"""

_KILLS_ITSELF_AFTERWARDS = _PUBLISHER + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"

_PAUSE = """
CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(120); RETURN coalesce(new, old); END $$;
CREATE TRIGGER pause BEFORE {event} ON tieout.{table} FOR EACH ROW EXECUTE FUNCTION public.pause()
"""

_SLEEPERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'publisher' AND wait_event = 'PgSleep'
"""


def _wait_for(url: str, sql: str, *, rows: bool = True, seconds: float = 30) -> list[dict[str, Any]]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = query(url, sql)
        if bool(found) == rows:
            return found
        time.sleep(0.05)
    raise AssertionError(f"after {seconds} s still {'no' if rows else 'some'} rows from: {sql}")


@contextmanager
def _stopped_publisher(url: str, table: str, event: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that stands still in the middle of publishing, at its first `event` on `table`."""
    query(url, _PAUSE.format(table=table, event=event))
    process = subprocess.Popen([sys.executable, "-c", _PUBLISHER, url], stderr=subprocess.PIPE)
    try:
        _wait_for(url, _SLEEPERS)
        yield process
    finally:
        process.kill()
        process.communicate()


def _unpause(url: str) -> None:
    query(url, "DROP FUNCTION public.pause() CASCADE")


@pytest.mark.parametrize(
    ("table", "event"),
    [
        ("run", "INSERT"),
        ("statement_partition", "INSERT"),
        ("statement_count", "INSERT"),
        ("break", "INSERT"),
        ("incident", "INSERT"),
        ("run", "UPDATE"),
    ],
)
def test_a_publisher_killed_at_any_statement_changes_nothing(
    store: Store, store_url: str, table: str, event: str
) -> None:
    """The earlier run stays the current one, and the window can be published again within seconds."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)
    before = contents(store_url)

    with _stopped_publisher(store_url, table, event) as process:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    _wait_for(store_url, _SLEEPERS, rows=False, seconds=15)

    assert contents(store_url) == before
    _unpause(store_url)
    assert store.publish(statement(2), breaks(), CONTRACT, ORIGIN).is_current


def test_a_publisher_killed_while_it_reads_the_breaks_changes_nothing(store: Store, store_url: str) -> None:
    """Pages of breaks that were sent already are gone with it."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)
    before = contents(store_url)

    finished = subprocess.run(
        [sys.executable, "-c", _KILLS_ITSELF_WHILE_READING_BREAKS, store_url], check=False, timeout=60
    )

    assert finished.returncode == -signal.SIGKILL
    assert contents(store_url) == before


def test_a_publisher_killed_after_publishing_has_published(store: Store, store_url: str) -> None:
    """What `publish` returned from is stored."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    finished = subprocess.run(
        [sys.executable, "-c", _KILLS_ITSELF_AFTERWARDS, store_url], check=False, timeout=60
    )

    current = store.current_run("orders", WINDOW.start, WINDOW.end)
    assert finished.returncode == -signal.SIGKILL
    assert current is not None
    assert current.statement == statement(2)
    assert len(store.breaks(current.run_id)) == 2


def test_a_connection_cut_in_the_middle_is_an_error_that_changes_nothing(
    store: Store, store_url: str
) -> None:
    """The publisher is told what happened, and publishing again succeeds."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)
    before = contents(store_url)

    def cut_off() -> Iterator[dict[str, Any]]:
        yield from (one_break(number, incident_id=f"i{number}") for number in range(500))
        query(
            store_url,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'tieout'",
        )
        yield one_break(500)

    with pytest.raises(StoreError, match=r"the connection was lost: .*; run it again"):
        store.publish(statement(2), cut_off(), CONTRACT, ORIGIN)

    assert contents(store_url) == before
    assert store.publish(statement(2), breaks(), CONTRACT, ORIGIN).is_current


@contextmanager
def _publishing(store: Store) -> Iterator[threading.Event]:
    """Give an event that lets a publication of run 1 end, which until then stands still among its breaks."""
    is_inside, may_end = threading.Event(), threading.Event()

    def waiting() -> Iterator[dict[str, Any]]:
        is_inside.set()
        may_end.wait(30)
        yield from breaks()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(store.publish, statement(1), waiting(), CONTRACT, ORIGIN)
        try:
            assert is_inside.wait(30)
            yield may_end
        finally:
            may_end.set()
        assert future.result().is_current


def test_two_runs_never_publish_one_window_at_once(store: Store, store_url: str) -> None:
    """The second waits as long as it was told to, stores nothing, and says who is in its way."""
    impatient = Store(store_url, publish_wait=timedelta(seconds=0.3))

    with _publishing(store):
        with pytest.raises(
            PublishInProgressError, match="pipeline orders, group loader, window 2026-11-20 10:00"
        ):
            impatient.publish(statement(2), breaks(), CONTRACT, ORIGIN)
        assert store.runs_of("orders") == ()

    assert [run.run_id for run in store.runs_of("orders")] == [statement(1)["run_id"]]


def test_a_patient_second_run_publishes_after_the_first(store: Store) -> None:
    """Both are stored, and the one that came second is current."""
    with _publishing(store) as may_end, ThreadPoolExecutor(1) as pool:
        second = pool.submit(store.publish, statement(2), breaks(), CONTRACT, ORIGIN)
        time.sleep(0.3)
        assert not second.done()
        may_end.set()
        assert second.result(30).is_current

    assert [run.is_current for run in store.runs_of("orders")] == [True, False]


def test_other_windows_are_published_meanwhile(store: Store, store_url: str) -> None:
    """A slow publication keeps nobody else waiting."""
    impatient = Store(store_url, publish_wait=timedelta(seconds=0.3))

    with _publishing(store):
        later = {"start": "2026-11-20T11:00:00Z", "end": "2026-11-20T12:00:00Z"}
        assert impatient.publish(statement(2, window=later), breaks(), CONTRACT, ORIGIN).is_current
        assert impatient.publish(statement(3, group="other"), breaks(), CONTRACT, ORIGIN).is_current


def test_readers_see_the_former_run_until_the_new_one_is_whole(store: Store) -> None:
    """In the middle of a publication nothing of it is visible."""
    with _publishing(store):
        assert store.current_run("orders", WINDOW.start, WINDOW.end) is None
        assert store.breaks(statement(1)["run_id"]) == ()

    assert store.current_run("orders", WINDOW.start, WINDOW.end) is not None
