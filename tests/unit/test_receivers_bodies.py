"""What PagerDuty and a mail server are sent, and that neither the routing key nor a server's words get out."""

from __future__ import annotations

import smtplib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.store.examples import alert

from tieout.errors import ConnectionNotFoundError
from tieout.orchestration import emailing
from tieout.orchestration.receivers import body_of, receiver_of


@dataclass
class Connection:
    """What is read of an Airflow connection."""

    conn_type: str | None = "http"
    host: str | None = None
    schema: str | None = None
    login: str | None = None
    password: str | None = None
    port: int | None = None
    extra_dejson: dict[str, Any] = field(default_factory=dict)


def _event(**changes: Any) -> dict[str, Any]:
    payload = {
        "subject": "orders: BROKEN" + "x" * 2000,
        "group": "loader",
        "owner": "payments",
        "page": "http://h/p",
    }
    found: Any = body_of(alert(to="pagerduty", payload=payload, **changes), "key")
    return dict(found)


def test_a_thread_is_one_pagerduty_incident() -> None:
    """The same dedup key opens, updates and resolves it; without a thread each alert is its own."""
    opened, updated, ended, other = (
        _event(key="a", thread="i1"),
        _event(key="b", thread="i1"),
        _event(key="c", thread="i1", is_closing=True),
        _event(key="d"),
    )

    assert {event["dedup_key"] for event in (opened, updated, ended)} == {opened["dedup_key"]}
    assert opened["dedup_key"] != other["dedup_key"]
    assert [event["event_action"] for event in (opened, ended)] == ["trigger", "resolve"]
    assert len(opened["payload"]["summary"]) == 1024
    reported = {
        name: opened["payload"][name] for name in ("source", "severity", "component", "group", "class")
    }
    assert reported == {
        "source": "orders", "severity": "critical", "component": "loader", "group": "payments", "class": "verdict",
    }  # fmt: skip
    assert opened["links"] == [{"href": "http://h/p", "text": "the run"}]


def test_pagerduty_is_where_the_connection_says_and_shows_no_key() -> None:
    """Its own address by default; the routing key is needed, and is in no text."""
    usual = receiver_of(alert(to="pagerduty"), Connection(password="R0UTING"))  # noqa: S106 - looked for
    local = receiver_of(alert(to="pagerduty"), Connection(host="127.0.0.1/x", schema="http", password="k"))  # noqa: S106 - none

    assert (usual.url, local.url) == ("https://events.pagerduty.com/v2/enqueue", "http://127.0.0.1/x")
    assert "R0UTING" not in repr(usual)
    with pytest.raises(ConnectionNotFoundError, match="the routing key as its password"):
        receiver_of(alert(to="pagerduty"), Connection())


class Hook:
    """Stands for Airflow's SMTP hook."""

    error: Exception | None = None
    sent: list[dict[str, Any]]

    def __init__(self, smtp_conn_id: str) -> None:
        self.name = smtp_conn_id

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def send_email_smtp(self, **given: Any) -> None:
        """Note the message, or fail."""
        if Hook.error:
            raise Hook.error
        Hook.sent.append({"connection": self.name, **given})


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> type[Hook]:
    """The hook, with nothing sent yet."""
    from airflow.providers.smtp.hooks import smtp  # noqa: PLC0415 - loading Airflow costs seconds

    monkeypatch.setattr(smtp, "SmtpHook", Hook)
    Hook.error, Hook.sent = None, []
    return Hook


MAIL = Connection(conn_type="smtp", extra_dejson={"to": ["a@x.org", "b@x.org"], "from_email": "t@x.org"})


def test_an_email_is_escaped_and_recognised_when_repeated(hook: type[Hook]) -> None:
    """Markup in an id is text; the idempotency key goes along as a header."""
    reported = alert(
        to="email",
        connection="mail",
        payload={"subject": "orders: BROKEN", "text": "<script>alert(1)</script>"},
    )

    assert emailing.send_email(reported, MAIL) is None

    (sent,) = hook.sent
    assert (sent["connection"], sent["to"], sent["subject"]) == ("mail", "a@x.org, b@x.org", "orders: BROKEN")
    assert "&lt;script&gt;" in sent["html_content"]
    assert "<script>" not in sent["html_content"]
    assert len(sent["custom_headers"]["X-Idempotency-Key"]) == 32


@pytest.mark.parametrize(
    ("error", "reason", "is_permanent"),
    [
        (smtplib.SMTPAuthenticationError(535, b"secret words"), "SMTP 535", True),
        (smtplib.SMTPResponseException(451, "later, secret"), "SMTP 451", False),
        (ConnectionRefusedError("secret host"), "cannot be sent: ConnectionRefusedError", False),
    ],
)
def test_a_mail_server_that_refuses_is_reported_without_its_words(
    hook: type[Hook], error: Exception, reason: str, is_permanent: bool
) -> None:
    """They may quote addresses and passwords; 5xx is final, the rest is tried again."""
    hook.error = error

    refusal = emailing.send_email(alert(to="email"), MAIL)

    assert refusal is not None
    assert (refusal.reason, refusal.is_permanent) == (reason, is_permanent)


@pytest.mark.parametrize(
    "extra", [{}, {"to": "a@x.org"}, {"from_email": "t@x.org"}, {"to": [], "from_email": "t"}]
)
def test_an_email_needs_from_and_to(extra: dict[str, Any]) -> None:
    """What is missing can be put right in the connection."""
    with pytest.raises(ConnectionNotFoundError, match="`to` and `from_email`"):
        emailing.send_email(alert(to="email"), Connection(conn_type="smtp", extra_dejson=extra))


TYPES = {
    "webhook": {"http", "https", "webhook"},
    "slack": {"slackwebhook"},
    "pagerduty": {"pagerduty_events", "pagerduty", "http", "https"},
    "email": {"smtp"},
}
OTHERS = ("postgres", "aws", "kafka", "spark", "ssh", "generic", "", None)


@pytest.mark.parametrize("to", TYPES)
def test_a_connection_made_for_something_else_is_refused(hook: type[Hook], to: str) -> None:
    """A database's password is never posted to whatever its host is; its text is in no error either."""
    strangers = {one for types in TYPES.values() for one in types} - TYPES[to] | set(OTHERS)
    extra = {"to": "a@x.org", "from_email": "t@x.org"}
    use: Callable[..., object] = emailing.send_email if to == "email" else receiver_of

    for kind in sorted(map(str, strangers)):
        found = Connection(
            conn_type=None if kind == "None" else kind,
            host="db.example",
            login="loader",
            password="geheim",  # noqa: S106 - of nothing
            extra_dejson=extra,
        )
        with pytest.raises(ConnectionNotFoundError, match="expected one of the type") as refused:
            use(alert(to=to, connection="warehouse"), found)
        assert "geheim" not in str(refused.value)
        assert "connection warehouse" in str(refused.value)
    assert hook.sent == []
