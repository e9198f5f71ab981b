"""Receivers of alerts: where a connection points to, and sending one alert there in bounded time.

The address of a Slack webhook is its password. No address, header or body is logged or put into an error:
only the connection's name and the kind of failure are.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import requests

from tieout.errors import ConnectionNotFoundError
from tieout.model import Alert

STEP_SECONDS: Final = 10.0
"""The limit for connecting, and for each wait for the answer."""

TOTAL_SECONDS: Final = 20.0
"""The limit for one whole attempt: a receiver that sends single bytes never exceeds the limit of a step."""

_RETRIED_STATUSES: Final = (408, 425, 429)
_SLACK_HOST: Final = "hooks.slack.com/services"
_SLACK_LIMIT: Final = 3_500
_PAGERDUTY_HOST: Final = "events.pagerduty.com/v2/enqueue"
_PAGERDUTY_SUMMARY: Final = 1_024
_THREAD_NAME: Final = "tieout-alert"
_HTTP_LOGGER: Final = logging.getLogger("urllib3.connectionpool")


class ConnectionLike(Protocol):
    """What is read of an Airflow connection."""

    conn_type: str | None
    host: str | None
    schema: str | None
    login: str | None
    password: str | None
    port: int | None

    @property
    def extra_dejson(self) -> dict[str, Any]:
        """The connection's extra fields."""


@dataclass(frozen=True)
class Receiver:
    """Where and how alerts are posted; its `repr` hides both."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)
    routing_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Refusal:
    """Why an alert was not taken; a permanent one would repeat every time."""

    reason: str
    is_permanent: bool
    is_quick: bool = False
    """Whether it came at once, so that a quick retry costs nothing."""


_TYPES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "webhook": ("http", "https", "webhook"),
        "slack": ("slackwebhook",),
        "pagerduty": ("pagerduty_events", "pagerduty", "http", "https"),
        "email": ("smtp",),
    }
)
"""The types of connections that hold what is meant for a receiver.

A contract names a connection by its name alone. Sent over one of another type, an alert would take that one's password,
a database's say, to wherever its fields happen to point.
"""


def require_type(alert: Alert, connection: ConnectionLike) -> None:
    """Refuse a connection that was made for something else than the alert's receiver.

    Raises:
        ConnectionNotFoundError: where its type is another.
    """
    expected = _TYPES[alert.to]
    if connection.conn_type not in expected:
        raise ConnectionNotFoundError(
            f"connection {alert.connection}: expected one of the type {' or '.join(expected)} for {alert.to}, found "
            f"the type {connection.conn_type or '(none)'}; docs/reference/alerts.md says what it holds"
        )


def receiver_of(alert: Alert, connection: ConnectionLike) -> Receiver:
    """Return the receiver that the alert's connection points to.

    Raises:
        ConnectionNotFoundError: where the connection does not say it, or is of a type made for something else.
    """
    require_type(alert, connection)
    receiver = _RECEIVERS.get(alert.to, _webhook)(connection)
    parts = urlsplit(receiver.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConnectionNotFoundError(
            f"connection {alert.connection}: expected an http or https address, found none; docs/reference/"
            f"alerts.md says what a connection for {alert.to} holds"
        )
    return receiver


def _webhook(connection: ConnectionLike) -> Receiver:
    """Return the receiver of an HTTP connection; its extra fields may hold `endpoint` and `headers`.

    In a connection written as a URI, what follows the host is the schema; where that is no scheme it is the
    path.
    """
    extra = connection.extra_dejson
    schema = connection.schema or ""
    is_scheme = schema in ("http", "https")
    default = connection.conn_type if connection.conn_type in ("http", "https") else "https"
    base = connection.host or ""
    if "://" not in base:
        base = f"{schema if is_scheme else default}://{base}"
    if connection.port:
        base = f"{base.rstrip('/')}:{connection.port}"
    path = str(extra.get("endpoint") or ("" if is_scheme else schema))
    headers = {str(name): str(value) for name, value in (extra.get("headers") or {}).items()}
    if connection.password and not connection.login:
        headers.setdefault("Authorization", f"Bearer {connection.password}")
    login = (connection.login, connection.password or "") if connection.login else None
    return Receiver(f"{base}/{path.lstrip('/')}" if path else base, headers, login)


def _slack(connection: ConnectionLike) -> Receiver:
    """Return the receiver of a Slack incoming webhook; its address or token is the connection's password."""
    token = (connection.password or "").strip()
    if "://" in token:
        return Receiver(token)
    base = connection.host or _SLACK_HOST
    if "://" not in base:
        base = f"{connection.schema or 'https'}://{base}"
    if connection.port:
        base = f"{base.rstrip('/')}:{connection.port}"
    return Receiver(f"{base.rstrip('/')}/{token.lstrip('/')}".rstrip("/"))


def _pagerduty(connection: ConnectionLike) -> Receiver:
    """Return the receiver of events as PagerDuty's Events API v2 takes them; the routing key is the password."""
    if not connection.password:
        raise ConnectionNotFoundError(
            "a pagerduty connection: expected the routing key as its password, found none"
        )
    base = connection.host or _PAGERDUTY_HOST
    if "://" not in base:
        base = f"{connection.schema or 'https'}://{base}"
    if connection.port:
        base = f"{base.rstrip('/')}:{connection.port}"
    return Receiver(base, routing_key=connection.password.strip())


_RECEIVERS: Final = {"slack": _slack, "pagerduty": _pagerduty}


def idempotency_key(alert: Alert) -> str:
    """Return the key by which a receiver recognizes a repeated alert."""
    return hashlib.sha256(alert.dedup_key.encode()).hexdigest()[:32]


def body_of(alert: Alert, routing_key: str | None = None) -> dict[str, object]:
    """Return the body to post: the payload with its key; for Slack one text without markup, for PagerDuty an event."""
    if alert.to == "pagerduty":
        return _event(alert, routing_key)
    if alert.to != "slack":
        return {**alert.payload, "idempotency_key": idempotency_key(alert)}
    lines = [alert.payload.get("subject"), alert.payload.get("text"), alert.payload.get("page")]
    text = "\n".join(str(line) for line in lines if line)[:_SLACK_LIMIT]
    for character, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escape)
    return {"text": text, "unfurl_links": False, "unfurl_media": False}


def _event(alert: Alert, routing_key: str | None) -> dict[str, object]:
    """Return an event of PagerDuty's Events API v2: alerts of one thread are one, and its end resolves it."""
    about = hashlib.sha256(f"{alert.pipeline}|{alert.thread}".encode()).hexdigest() if alert.thread else None
    event: dict[str, object] = {
        "routing_key": routing_key,
        "event_action": "resolve" if alert.is_closing else "trigger",
        "dedup_key": about or idempotency_key(alert),
        "payload": {
            "summary": str(alert.payload.get("subject"))[:_PAGERDUTY_SUMMARY],
            "source": alert.pipeline,
            "severity": alert.severity.value,
            "component": alert.payload.get("group"),
            "group": alert.payload.get("owner"),
            "class": alert.payload.get("class") or alert.kind,
            "custom_details": dict(alert.payload),
        },
    }
    page = alert.payload.get("page")
    return event | ({"links": [{"href": page, "text": "the run"}]} if page else {})


def send(alert: Alert, receiver: Receiver) -> Refusal | None:
    """Post the alert once and return why it was not taken, or None where it was; takes 20 s at most.

    The answer's text is not read: the status suffices. Redirects are not followed, so that secrets go to the named
    host only.
    """
    _HTTP_LOGGER.addFilter(_is_no_alert)
    return bounded_try(lambda: _posted(alert, receiver))


def bounded_try(attempt: Callable[[], Refusal | None]) -> Refusal | None:
    """Return the outcome of one attempt; one of more than 20 s is a refusal."""
    finished: list[Refusal | None] = []
    sender = threading.Thread(target=lambda: finished.append(attempt()), name=_THREAD_NAME, daemon=True)
    sender.start()
    sender.join(TOTAL_SECONDS)
    if not finished:
        return Refusal(f"no complete answer within {TOTAL_SECONDS:g} s", is_permanent=False)
    return finished[0]


def _is_no_alert(record: logging.LogRecord) -> bool:
    """Keep the HTTP library's debugging lines about alerts, which show the address, out of every log."""
    return record.threadName != _THREAD_NAME


def _posted(alert: Alert, receiver: Receiver) -> Refusal | None:
    headers = {
        **receiver.headers,
        "Content-Type": "application/json; charset=utf-8",
        "Idempotency-Key": idempotency_key(alert),
        "User-Agent": "tieout",
    }
    try:
        with requests.post(
            receiver.url,
            data=json.dumps(body_of(alert, receiver.routing_key)).encode(),
            headers=headers,
            auth=receiver.login,
            timeout=(STEP_SECONDS, STEP_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            return _refusal(answer.status_code)
    except requests.Timeout as error:
        what = "connection" if isinstance(error, requests.ConnectTimeout) else "answer"
        return Refusal(f"no {what} within {STEP_SECONDS:g} s", is_permanent=False)
    except (requests.RequestException, OSError, ValueError) as error:
        # The error's text quotes the address, so only its type is shown.
        return Refusal(f"cannot be reached: {type(error).__name__}", is_permanent=False, is_quick=True)


def _refusal(status: int) -> Refusal | None:
    """Return the meaning of an HTTP status: 2xx accepted, 5xx and a few others to be retried, others permanent.

    >>> _refusal(204), _refusal(503).is_permanent, _refusal(404).is_permanent, _refusal(429).is_permanent
    (None, False, True, False)
    """
    if 200 <= status < 300:
        return None
    is_permanent = status < 500 and status not in _RETRIED_STATUSES
    return Refusal(f"HTTP {status}", is_permanent=is_permanent, is_quick=status >= 500)
