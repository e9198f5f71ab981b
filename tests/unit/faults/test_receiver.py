"""The receiver of the fault matrix: what it refuses, takes and keeps waiting."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from threading import Thread

from tools.faults.receiver import REFUSALS, Receiver, serving

from tieout.testing.postgres import free_port


def post(port: int, key: str) -> int:
    """Send an alert and return the answer's status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/",
        data=json.dumps({"kind": "verdict", "text": "lost"}).encode(),
        headers={"Idempotency-Key": key},
        method="POST",
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_first_tries_of_each_alert_are_refused() -> None:
    """Each alert has tries of its own."""
    receiver, port = Receiver(), free_port()

    with serving(receiver, port):
        answers = [post(port, key) for key in ("a", "b") for _ in range(REFUSALS + 1)]

    assert answers == ([503] * REFUSALS + [200]) * 2
    assert receiver.keys() == {"a": 1, "b": 1}


def test_an_alert_taken_twice_is_counted_twice() -> None:
    """That is how a sender is found that does not know it has sent."""
    receiver, port = Receiver(), free_port()

    with serving(receiver, port):
        for _ in range(REFUSALS + 2):
            post(port, "a")

    assert receiver.keys() == {"a": 2}


def test_a_held_sender_waits_until_it_is_released() -> None:
    """The alert is taken meanwhile."""
    receiver, port, answers = Receiver(), free_port(), list[int]()
    receiver.tries["a"] = REFUSALS
    receiver.delay_next()

    with serving(receiver, port):
        sender = Thread(target=lambda: answers.append(post(port, "a")))
        sender.start()
        assert receiver.is_holding.wait(10)
        assert (answers, receiver.keys()) == ([], {"a": 1})
        receiver.release()
        sender.join(10)

    assert answers == [200]


def test_one_that_is_down_takes_nothing() -> None:
    """However often it is tried."""
    receiver = Receiver()
    receiver.is_down = True

    assert [receiver.status_of("a", {}) for _ in range(REFUSALS + 2)] == [503] * (REFUSALS + 2)
    assert not receiver.taken
