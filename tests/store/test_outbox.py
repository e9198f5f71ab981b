"""Alerts leave the outbox at least once, to one worker at a time, and not for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import chain

import pytest
from tests.store.examples import CONTRACT, ORIGIN, alert, breaks, contents, query, rows, run_id, statement

from tieout.errors import StoreError
from tieout.model import CheckResult, CheckStatus, Severity, Verdict
from tieout.store import ClaimedAlert, Store
from tieout.store.outbox import MAX_ATTEMPTS, backoff

_MINUTE = timedelta(minutes=1)


def _make_due(url: str) -> None:
    """Let the time pass that every alert still has to wait, backoff or lease."""
    query(
        url,
        "UPDATE tieout.alert SET next_attempt_at = now() - interval '1s', "
        "leased_until = CASE WHEN leased_until IS NOT NULL THEN now() - interval '1s' END",
    )


def _status(url: str) -> list[str]:
    return [row["status"] for row in rows(url, "alert")]


def test_an_alert_is_claimed_as_it_was_stored(store: Store) -> None:
    """Every field arrives at the sender, window or not, run or not."""
    about_window, about_upkeep = alert("a"), alert("b", window=None, run_id=None, severity=Severity.WARNING)
    assert store.enqueue([about_window, about_upkeep]) == 2

    claimed = store.claim_alerts(10, _MINUTE)

    assert [item.alert for item in claimed] == [about_window, about_upkeep]
    assert [item.attempt for item in claimed] == [1, 1]


def test_a_known_key_adds_nothing_even_after_sending(store: Store) -> None:
    """The same finding of a re-run sends no second alert."""
    store.enqueue([alert("a"), alert("a", payload={"other": 1})])
    (claimed,) = store.claim_alerts(10, _MINUTE)
    store.mark_sent(claimed)

    assert store.enqueue([alert("a")]) == 0
    assert (store.pending_alerts(), store.claim_alerts(10, _MINUTE)) == (0, ())


def test_an_alert_may_tell_of_a_run_that_was_never_stored(store: Store) -> None:
    """A failed run leaves nothing in the store but its alert."""
    store.enqueue([alert(run_id=run_id(404))])

    assert store.claim_alerts(1, _MINUTE)[0].alert.run_id == run_id(404)


def test_checks_and_their_alerts_are_stored_together(store: Store, store_url: str) -> None:
    """Results, verdict and alert appear at once; recording again replaces results, doubles no alert."""
    store.publish(statement(), breaks(), CONTRACT, ORIGIN)
    failed = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2\x00", "0")
    passed = CheckResult("adds_up", Severity.CRITICAL, CheckStatus.PASS, "0", "0")

    for results in ([passed, passed], [failed, passed]):
        store.record_checks(
            run_id(1),
            results,
            Verdict.BROKEN,
            suite="exactly_once",
            suite_digest="beef",
            gx_version="1.24.1",
            alerts=[alert()],
        )

    run = store.run(run_id(1))
    assert run is not None
    assert (run.final_verdict, run.checked_at is not None) == (Verdict.BROKEN, True)
    visible = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2\\u0000", "0")
    assert store.checks(run_id(1)) == (visible, passed)
    kept = {(row["suite"], row["suite_digest"], row["gx_version"]) for row in rows(store_url, "check_result")}
    assert kept == {("exactly_once", "beef", "1.24.1")}
    assert store.pending_alerts("orders") == 1


def test_checks_of_an_unknown_run_are_refused_with_their_alerts(store: Store, store_url: str) -> None:
    """No alert goes out about a result that is not stored."""
    with pytest.raises(StoreError, match="expected a published run, found none"):
        store.record_checks(
            run_id(9), [], Verdict.KEPT, suite="s", suite_digest="d", gx_version="1", alerts=[alert()]
        )

    assert not any(contents(store_url).values())


def test_workers_never_claim_the_same_alert(store: Store, store_url: str) -> None:
    """Four workers at once empty the outbox, and each alert is held by one of them."""
    store.enqueue(alert(str(number)) for number in range(200))

    def emptied(_: int) -> list[int]:
        worker, held = Store(store_url), list[int]()
        while claimed := worker.claim_alerts(7, _MINUTE):
            held += [item.alert_id for item in claimed]
        return held

    with ThreadPoolExecutor(4) as pool:
        held = list(pool.map(emptied, range(4)))

    assert sum(1 for ids in held if ids) > 1
    assert sorted(chain.from_iterable(held)) == sorted(row["alert_id"] for row in rows(store_url, "alert"))


_DIES_HOLDING = """
import os, signal, sys
from datetime import timedelta
from tieout.store import Store
print(len(Store(sys.argv[1]).claim_alerts(1, timedelta(seconds=1.5))), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_alert_of_a_killed_worker_is_sent_by_another(store: Store, store_url: str) -> None:
    """Until the lease runs out nobody takes it, then the next worker does."""
    store.enqueue([alert()])

    finished = subprocess.run(
        [sys.executable, "-c", _DIES_HOLDING, store_url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (finished.returncode, finished.stdout) == (-signal.SIGKILL, "1\n")
    assert store.claim_alerts(1, _MINUTE) == ()
    assert store.pending_alerts() == 1
    time.sleep(2)
    (claimed,) = store.claim_alerts(1, _MINUTE)
    assert claimed.attempt == 2


def test_a_failed_alert_waits_and_is_tried_again(store: Store, store_url: str) -> None:
    """The reason is kept, and the wait begins at half a minute."""
    store.enqueue([alert()])
    (claimed,) = store.claim_alerts(1, _MINUTE)

    assert not store.mark_failed(claimed, "HTTP 503\x00" + "x" * 10_000)

    (row,) = rows(store_url, "alert")
    assert (row["status"], row["attempts"], len(row["last_error"])) == ("pending", 1, 500)
    assert row["last_error"].startswith("HTTP 503\\u0000x")
    waits = query(store_url, "SELECT next_attempt_at - now() AS wait FROM tieout.alert")[0]["wait"]
    assert timedelta(seconds=20) < waits <= backoff(1)
    assert store.claim_alerts(1, _MINUTE) == ()
    _make_due(store_url)
    assert store.claim_alerts(1, _MINUTE)[0].attempt == 2


def _tried(store: Store, url: str, attempts: int) -> ClaimedAlert:
    """Return the last claim of an alert that failed as often as `attempts` says, but for the last time."""
    for _ in range(attempts - 1):
        store.mark_failed(store.claim_alerts(1, _MINUTE)[0], "no")
        _make_due(url)
    return store.claim_alerts(1, _MINUTE)[0]


def test_an_alert_is_given_up_after_ten_attempts(store: Store, store_url: str) -> None:
    """A receiver that is gone for good does not keep the outbox busy."""
    store.enqueue([alert()])
    last = _tried(store, store_url, MAX_ATTEMPTS)
    assert _status(store_url) == ["sending"]

    is_over = store.mark_failed(last, "still no")
    _make_due(store_url)

    assert is_over
    assert (last.attempt, _status(store_url), store.claim_alerts(1, _MINUTE)) == (10, ["dead"], ())


def test_a_permanent_failure_is_given_up_at_once(store: Store, store_url: str) -> None:
    """What the receiver refuses for good is not sent again."""
    store.enqueue([alert()])

    store.mark_failed(store.claim_alerts(1, _MINUTE)[0], "HTTP 404", is_permanent=True)

    assert (_status(store_url), store.pending_alerts()) == (["dead"], 0)


def test_an_alert_whose_senders_all_died_is_given_up(store: Store, store_url: str) -> None:
    """An alert that kills its senders does so ten times."""
    store.enqueue([alert()])
    _tried(store, store_url, MAX_ATTEMPTS)
    _make_due(store_url)

    claimed = store.claim_alerts(1, _MINUTE)

    (row,) = rows(store_url, "alert")
    assert (claimed, row["status"], row["last_error"]) == ((), "dead", "no; then the sender died")


def test_a_worker_that_outlived_its_lease_disturbs_no_other(store: Store, store_url: str) -> None:
    """Its failure does not count against the later claim; its success does, for the alert was sent."""
    store.enqueue([alert()])
    (slow,) = store.claim_alerts(1, _MINUTE)
    _make_due(store_url)
    store.claim_alerts(1, _MINUTE)

    store.mark_failed(slow, "too slow")
    assert _status(store_url) == ["sending"]
    store.mark_sent(slow)
    assert _status(store_url) == ["sent"]


def test_one_pipeline_alone_can_be_delivered(store: Store) -> None:
    """A pipeline's own task sends its own alerts."""
    store.enqueue([alert("a"), alert("b", pipeline="payments")])

    claimed = store.claim_alerts(10, _MINUTE, pipeline="payments")

    assert [item.alert.pipeline for item in claimed] == ["payments"]
    assert (store.pending_alerts("orders"), store.pending_alerts()) == (1, 2)


def test_an_alert_outlives_its_run(store: Store, store_url: str) -> None:
    """Deleting a run deletes what was found, and no alert that is still to be sent."""
    store.publish(statement(), breaks(), CONTRACT, ORIGIN)
    store.enqueue([alert()])

    query(store_url, "DELETE FROM tieout.run")

    left = {table: len(found) for table, found in contents(store_url).items() if found}
    assert left == {"alert": 1}
