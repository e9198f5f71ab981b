"""Alerts reach a real HTTP server over Airflow's connections, whatever that server does to them."""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.store.examples import alert, command, database_url, query

from tieout.errors import ConnectionNotFoundError
from tieout.model import Alert
from tieout.orchestration import alerting, receivers
from tieout.orchestration.alerting import DeliveryReport, airflow_connection, deliver
from tieout.orchestration.receivers import idempotency_key, receiver_of
from tieout.store import Store

_DATABASE = "alert_delivery"
_SECRET = "T0SECRET/B0SECRET"  # noqa: S105 - looked for in logs


@dataclass
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Receiver:
    """A server that answers as the test says, one entry of `answers` a request; the last one stays."""

    port: int
    answers: list[str] = field(default_factory=lambda: ["200"])
    requests: list[Received] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> str:
        """Return what to do with the request that just came."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Server(ThreadingHTTPServer):
    """An HTTP server that knows the receiver it plays."""

    receiver: Receiver


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Note the request, and answer as the receiver wants, or not at all."""
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.requests.append(Received(self.path, dict(self.headers), json.loads(body)))
        answer = receiver.next_answer()
        if answer == "hang":
            receiver.is_over.wait(60)
        elif answer == "drip":
            self._drip(receiver.is_over)
        elif answer != "hang up":
            self._answer(int(answer))
        self.close_connection = True

    def _drip(self, is_over: threading.Event) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000:
            if is_over.wait(0.2):
                return
            self.wfile.write(bytes([byte]))

    def _answer(self, status: int) -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"http://127.0.0.1:{self.server.receiver.port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Keep the test's output free of access logs."""


@contextmanager
def _running() -> Iterator[Receiver]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.receiver
    finally:
        server.receiver.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A running receiver, which Airflow's connection `hook` points to."""
    with _running() as started:
        _connect(
            monkeypatch, host="127.0.0.1", port=started.port, schema="http", extra={"endpoint": "alerts"}
        )
        yield started


def _connect(monkeypatch: pytest.MonkeyPatch, name: str = "hook", **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "http", **fields}))


@pytest.fixture
def store_url(postgres_url: str) -> Iterator[str]:
    """The URL of a migrated database without alerts."""
    command(postgres_url, f"CREATE DATABASE {_DATABASE} TEMPLATE template0")
    url = database_url(postgres_url, _DATABASE)
    Store(url).migrate()
    yield url
    command(postgres_url, f"DROP DATABASE {_DATABASE} WITH (FORCE)")


@pytest.fixture
def store(store_url: str) -> Store:
    """A store with one alert that waits for the connection `hook`."""
    store = Store(store_url)
    store.enqueue([_alert()])
    return store


@pytest.fixture(autouse=True, scope="module")
def _airflow_is_loaded() -> None:
    """Let Airflow set up its logging before a test listens to logs: its first connection does that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_FIRST", "{}")
        airflow_connection("first")


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to wait for a receiver is 10 s and 20 s for real, and a tenth of it here."""
    assert (receivers.STEP_SECONDS, receivers.TOTAL_SECONDS, alerting.PAUSES) == (10.0, 20.0, (1.0, 3.0))
    monkeypatch.setattr(receivers, "STEP_SECONDS", 1.0)
    monkeypatch.setattr(receivers, "TOTAL_SECONDS", 2.0)
    monkeypatch.setattr(alerting, "PAUSES", (0.1, 0.1))


def _alert(key: str = "orders|1", **changes: Any) -> Alert:
    return alert(key, connection="hook", **changes)


def _stored(url: str) -> dict[str, Any]:
    (row,) = query(url, "SELECT status, attempts, last_error FROM tieout.alert")
    return row


def _make_due(url: str) -> None:
    query(
        url,
        "UPDATE tieout.alert SET next_attempt_at = now() - interval '1s', "
        "leased_until = CASE WHEN leased_until IS NOT NULL THEN now() - interval '1s' END",
    )


def test_an_alert_arrives_once(store: Store, store_url: str, receiver: Receiver) -> None:
    """The payload is posted as JSON with the idempotency key, and nothing is left to send."""
    report = deliver(store)

    (request,) = receiver.requests
    assert report == DeliveryReport(sent=1, failed=0, given_up=0, waiting=0)
    assert request.path == "/alerts"
    assert request.body == {**_alert().payload, "idempotency_key": idempotency_key(_alert())}
    assert request.headers["Idempotency-Key"] == idempotency_key(_alert())
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert _stored(store_url)["status"] == "sent"
    assert deliver(store).sent == 0


def test_a_slack_webhook_gets_one_text_without_markup(
    store_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What people read is posted to the secret address; `<!channel>` in an id calls nobody."""
    _connect(
        monkeypatch,
        conn_type="slackwebhook",
        host=f"http://127.0.0.1:{receiver.port}/services",
        password=_SECRET,
    )
    store = Store(store_url)
    payload = {"subject": "orders: BROKEN", "text": "lost <!channel> & more", "page": "http://h/p?a=1"}
    store.enqueue([_alert(to="slack", payload=payload)])

    assert deliver(store).sent == 1

    (request,) = receiver.requests
    assert request.path == f"/services/{_SECRET}"
    assert request.body["text"] == "orders: BROKEN\nlost &lt;!channel&gt; &amp; more\nhttp://h/p?a=1"


@pytest.mark.parametrize("answer", ["500", "503", "hang up"])
def test_a_receiver_that_fails_for_a_moment_is_tried_again_at_once(
    store: Store, receiver: Receiver, answer: str
) -> None:
    """A restart of the receiver does not delay the alert, and both tries carry the same key."""
    receiver.answers = [answer, "200"]

    assert deliver(store).sent == 1

    assert len(receiver.requests) == 2
    assert len({request.headers["Idempotency-Key"] for request in receiver.requests}) == 1


def test_a_receiver_that_is_down_gets_the_alert_later(
    store: Store, store_url: str, receiver: Receiver
) -> None:
    """After three tries the alert waits in the outbox, with the reason, and the next delivery sends it."""
    receiver.answers = ["503"]

    first = deliver(store)

    assert first == DeliveryReport(sent=0, failed=1, given_up=0, waiting=1)
    assert len(receiver.requests) == 3
    assert _stored(store_url) == {"status": "pending", "attempts": 1, "last_error": "HTTP 503"}
    assert deliver(store) == DeliveryReport(sent=0, failed=0, given_up=0, waiting=1)
    receiver.answers = ["200"]
    _make_due(store_url)
    assert deliver(store).sent == 1


def test_a_port_on_which_nobody_listens_is_a_failure(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection is told by its kind, and the alert waits."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    _connect(monkeypatch, host="127.0.0.1", port=port, schema="http")

    assert deliver(store).failed == 1
    assert _stored(store_url)["last_error"] == "cannot be reached: ConnectionError"


@pytest.mark.parametrize(
    ("answer", "reason"), [("hang", "no answer within 1 s"), ("drip", "no complete answer within 2 s")]
)
def test_a_receiver_that_stays_silent_does_not_hang_the_delivery(
    store: Store, store_url: str, receiver: Receiver, answer: str, reason: str
) -> None:
    """Neither silence nor a byte now and then keeps the sender longer than its time."""
    receiver.answers = [answer]
    began = time.monotonic()

    report = deliver(store)

    assert time.monotonic() - began < 6
    assert (report.failed, len(receiver.requests)) == (1, 1)
    assert _stored(store_url)["last_error"] == reason


@pytest.mark.parametrize(
    ("answer", "status"),
    [("400", "dead"), ("404", "dead"), ("302", "dead"), ("408", "pending"), ("429", "pending")],
)
def test_what_the_receiver_will_never_take_is_given_up(
    store: Store, store_url: str, receiver: Receiver, answer: str, status: str
) -> None:
    """A wrong address is not tried ten times; a busy receiver is. Redirects are not followed."""
    receiver.answers = [answer]

    report = deliver(store)

    assert _stored(store_url) == {"status": status, "attempts": 1, "last_error": f"HTTP {answer}"}
    assert (report.given_up, report.waiting) == ((1, 0) if status == "dead" else (0, 1))
    assert [request.path for request in receiver.requests] == ["/alerts"]


@pytest.mark.parametrize("fields", [None, {"host": ""}, {"host": "ftp://x"}])
def test_a_missing_or_empty_connection_can_still_be_put_right(
    store: Store,
    store_url: str,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any] | None,
) -> None:
    """The alert waits and names the connection; once that is defined the alert is sent."""
    good = os.environ["AIRFLOW_CONN_HOOK"]
    if fields is None:
        monkeypatch.delenv("AIRFLOW_CONN_HOOK")
    else:
        _connect(monkeypatch, **fields)

    assert deliver(store).failed == 1

    assert _stored(store_url)["last_error"].startswith("connection hook: expected an")
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", good)
    _make_due(store_url)
    assert deliver(store).sent == 1


def test_an_unreadable_connection_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Airflow says about a broken connection may hold its password, so it is not passed on."""
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", '{"password": "' + _SECRET)

    with pytest.raises(
        ConnectionNotFoundError, match="define it in Airflow or as AIRFLOW_CONN_HOOK"
    ) as caught:
        airflow_connection("hook")

    assert _SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("answer", ["200", "503", "hang", "hang up", "404", "nobody listens"])
def test_no_log_shows_the_address(
    store_url: str,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: str,
) -> None:
    """Even with every library at its most talkative, the webhook's secret stays out of logs and store."""
    caplog.set_level(logging.DEBUG)
    port = 1 if answer == "nobody listens" else receiver.port
    _connect(monkeypatch, conn_type="slackwebhook", password=f"http://127.0.0.1:{port}/services/{_SECRET}")
    receiver.answers = [answer]
    store = Store(store_url)
    store.enqueue([_alert(to="slack")])

    deliver(store)

    assert {request.path for request in receiver.requests} <= {f"/services/{_SECRET}"}
    assert bool(receiver.requests) == (port == receiver.port)
    assert "over connection hook" in caplog.text
    assert "SECRET" not in caplog.text
    assert "SECRET" not in str(_stored(store_url))


_SENDS = """
import sys
from tieout.orchestration.alerting import deliver
from tieout.store import Store
deliver(Store(sys.argv[1]))
"""


def test_an_alert_whose_sender_was_killed_is_sent_again_with_the_same_key(
    store: Store, store_url: str, receiver: Receiver
) -> None:
    """The receiver took it and the sender died before it knew: at least once, and told apart by the key."""
    receiver.answers = ["hang", "200"]
    process = subprocess.Popen([sys.executable, "-c", _SENDS, store_url])
    try:
        deadline = time.monotonic() + 60
        while not receiver.requests and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    assert deliver(store).sent == 0
    _make_due(store_url)
    assert deliver(store).sent == 1

    first, second = receiver.requests
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.body == second.body


def test_one_bad_receiver_does_not_keep_the_others_waiting(
    store: Store, store_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alert is tried for itself."""
    _connect(monkeypatch, "broken", host="127.0.0.1", port=1, schema="http")
    store.enqueue([alert("b", connection="broken"), _alert("c")])

    report = deliver(store)

    assert (report.sent, report.failed) == (2, 1)


def test_a_delivery_ends_when_its_time_is_up(store: Store, receiver: Receiver) -> None:
    """What was not tried is left as it is, and waits for the next delivery."""
    store.enqueue([_alert(str(number)) for number in range(20)])
    receiver.answers = ["hang"]

    report = deliver(store, time_limit=timedelta(seconds=0.5))

    assert (report.failed, report.waiting) == (1, 21)


def test_one_pipeline_sends_its_own(store: Store, receiver: Receiver) -> None:
    """A pipeline's task leaves the alerts of others to theirs."""
    store.enqueue([_alert("b", pipeline="payments", payload={"subject": "payments"})])

    assert deliver(store, "payments").sent == 1

    assert [request.body["subject"] for request in receiver.requests] == ["payments"]
    assert store.pending_alerts() == 1


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ("http://h.example:8080/hook", "http://h.example:8080/hook"),
        ("https://h.example/a%2Fb", "https://h.example/a/b"),
        ('{"conn_type": "http", "host": "h.example"}', "http://h.example"),
        ('{"conn_type": "http", "host": "h.example", "schema": "https"}', "https://h.example"),
        ('{"conn_type": "http", "host": "https://h.example/x"}', "https://h.example/x"),
        ('{"conn_type": "webhook", "host": "h.example", "extra": {"endpoint": "/x"}}', "https://h.example/x"),
    ],
)
def test_a_connection_says_where_to_send(monkeypatch: pytest.MonkeyPatch, connection: str, url: str) -> None:
    """Connections written as URI or JSON mean what they look like."""
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", connection)

    assert receiver_of(_alert(), airflow_connection("hook")).url == url


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"password": "https://hooks.slack.com/services/T/B/x"}, "https://hooks.slack.com/services/T/B/x"),
        ({"password": "T/B/x"}, "https://hooks.slack.com/services/T/B/x"),
        ({"password": "/T/B/x", "host": "https://proxy.example/slack/"}, "https://proxy.example/slack/T/B/x"),
    ],
)
def test_a_slack_connection_is_read_as_airflow_reads_it(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], url: str
) -> None:
    """The password is the address or the token, as in Airflow's Slack provider."""
    from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook  # noqa: PLC0415 - slow to import

    _connect(monkeypatch, conn_type="slackwebhook", **fields)

    ours = receiver_of(_alert(to="slack"), airflow_connection("hook"))

    assert ours.url == url == SlackWebhookHook(slack_webhook_conn_id="hook").client.url
    assert "hooks" not in repr(ours)


@pytest.mark.parametrize(
    ("fields", "authorization"),
    [
        ({"login": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"password": "token"}, "Bearer token"),
        ({"extra": {"headers": {"Authorization": "Custom x"}}}, "Custom x"),
        ({}, None),
    ],
)
def test_a_webhook_logs_in_as_its_connection_says(
    store: Store,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    authorization: str | None,
) -> None:
    """User and password, a bearer token, or a header of one's own."""
    _connect(monkeypatch, host="127.0.0.1", port=receiver.port, schema="http", **fields)

    assert deliver(store).sent == 1

    assert receiver.requests[0].headers.get("Authorization") == authorization
