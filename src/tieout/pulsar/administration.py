"""Asks a Pulsar broker with GET requests only. A silent broker is given up after `TIMEOUT_SECONDS`.

Sources: Apache Pulsar documentation, Admin REST API; RFC 9110, sections 15.4 (redirection) and 15.5 (client errors).
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tieout.connections import Connection, connection
from tieout.errors import SourceError, SourceUnreachableError
from tieout.pulsar.answers import MISSING, OK, Answer, AnswerError

TIMEOUT_SECONDS: Final = 20.0
"""Seconds within which a broker answers in full."""
LARGEST: Final = 64 << 20
"""How many bytes an answer may have: an entry has 5 MB unless a broker was told otherwise."""
ROOT: Final = "/admin/v2/"
_TYPES: Final = ("http", "https", "generic")
"""Airflow makes `generic` of every type whose provider is not installed."""
_PORTS: Final = {"http": 8080, "https": 8443}
_REDIRECTS: Final = 3
_MOVED: Final = (301, 302, 303, 307, 308)
_LATER: Final = (408, 425, 429)
_PIECE: Final = 1 << 16
_SHOWN: Final = 200
_Place = tuple[str, int]
"""A host and a port."""
_DISCONNECTED: Final = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


@dataclass
class Administration:
    """The REST interface behind a connection; `at` says where a contract names that, for errors.

    Several threads may ask at once: each has connections of its own.
    """

    at: str
    scheme: str
    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    redirect_hosts: frozenset[str] = frozenset()
    context: ssl.SSLContext | None = field(default=None, repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS
    _open: dict[tuple[int, _Place], HTTPConnection] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, place: str) -> Administration:
        """Return the interface of the named connection; nothing is asked yet.

        Raises:
            ConnectionNotFoundError: where the connection is not defined.
            SourceError: where it is none to a web service, or its certificates cannot be read.
        """
        at = f"{place}.connection: {name}"
        found = connection(name)
        if found.conn_type not in _TYPES:
            raise SourceError(
                f"{at}: expected a connection of type {' or '.join(_TYPES)} to the web service of a broker or proxy, "
                f"port 8080 by default, found type {found.conn_type or '(none)'}"
            )
        scheme, host, port = _address(found, at)
        token = found.password or found.extra.get("token")
        return cls(
            at,
            scheme,
            host,
            port,
            None if token is None else _plain(str(token), at),
            frozenset(str(found.extra.get("redirect_hosts", "")).replace(",", " ").split()),
            _context(found, at) if scheme == "https" else None,
        )

    @property
    def address(self) -> str:
        """The web service's address."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def get(self, path: str) -> Answer:
        """Return the broker's answer, whose status is 200 or 404.

        Raises:
            AnswerError: for an answer that is no HTTP, or larger than any entry.
            SourceUnreachableError: where there is none in time, and for what may pass.
            SourceError: where the broker refuses, or sends the question to a host that the connection does not name.
        """
        place, target = (self.host, self.port), ROOT + path
        for _ in range(_REDIRECTS + 1):
            answer = self._answer_of_host(place, target)
            if answer.status in (OK, MISSING):
                return answer
            if answer.status not in _MOVED:
                raise self._refused(answer)
            place, target = self._moved_to(answer)
        raise SourceError(
            f"{self.at}: {self.address}: expected an answer, found {_REDIRECTS + 1} redirections"
        )

    def entries(self, _path: str, counts: Sequence[tuple[int, int]], /) -> Iterator[tuple[int, int, range]]:
        """Yield each ledger with all of its entries: a broker does not tell which of them it has."""
        return ((ledger, count, range(count)) for ledger, count in counts)

    def beyond(self, _path: str, _counts: Sequence[tuple[int, int]], /) -> Iterator[tuple[int, int]]:
        """Yield nothing: beyond the last confirmed entry a broker never answers."""
        return iter(())

    def close(self) -> None:
        """Close all connections."""
        for one in self._open.values():
            one.close()
        self._open.clear()

    def _answer_of_host(self, place: _Place, target: str) -> Answer:
        """Return the host's answer; a connection that the host closed is opened again once."""
        until = time.monotonic() + self.timeout_seconds
        was_open = _own(place) in self._open
        try:
            with suppress(*_DISCONNECTED):
                return self._answer(place, target, until)
            if was_open:
                return self._answer(place, target, until)
        except TimeoutError:
            pass
        except ssl.SSLCertVerificationError as error:
            raise SourceError(
                f"{self.at}: {self.address}: its certificate is refused: {error.verify_message}"
            ) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SourceUnreachableError(f"{self.at}: {self.address} does not answer: {reason}") from None
        except HTTPException as error:
            raise AnswerError(
                f"expected an answer of a Pulsar broker, found {type(error).__name__}"
            ) from None
        raise SourceUnreachableError(
            f"{self.at}: {self.address} does not answer: nothing whole within {self.timeout_seconds:g} seconds"
        )

    def _answer(self, place: _Place, target: str, until: float) -> Answer:
        try:
            one = self._open.get(_own(place)) or self._opened(place)
            one.request("GET", target, headers=self._headers())
            answer = one.getresponse()
            body = _body(answer, one, until)
        except (OSError, HTTPException):
            with suppress(KeyError):
                self._open.pop(_own(place)).close()
            raise
        return Answer(answer.status, answer.getheaders(), body)

    def _opened(self, place: _Place) -> HTTPConnection:
        if self.scheme == "https":
            one: HTTPConnection = HTTPSConnection(*place, timeout=self.timeout_seconds, context=self.context)
        else:
            one = HTTPConnection(*place, timeout=self.timeout_seconds)
        self._open[_own(place)] = one
        return one

    def _headers(self) -> dict[str, str]:
        login = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {"Accept": "*/*", "Accept-Encoding": "identity", **login}

    def _refused(self, answer: Answer) -> SourceError:
        text = self._without_token(f"{answer.status} {_reason(answer.body)}".strip())
        if answer.status in _LATER or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return SourceUnreachableError(f"{self.at}: {self.address} does not answer now: {text}")
        login = "; the connection's password is the token" if answer.status in (401, 403) else ""
        return SourceError(f"{self.at}: {self.address} refuses: {text}{login}")

    def _moved_to(self, answer: Answer) -> tuple[_Place, str]:
        """Return the host and the path that an answer leads to.

        Raises:
            SourceError: where it leads out of what the connection names, or from TLS to plain text.
        """
        location = next((value for name, value in answer.headers if name.lower() == "location"), "")
        place = urlsplit(location)
        host = place.hostname or self.host
        if place.scheme not in ("", self.scheme) or not place.path.startswith(ROOT):
            raise SourceError(
                f"{self.at}: {self.address} redirects to {_shown(place)}: expected {self.scheme}://…{ROOT}…"
            )
        if host != self.host and host not in self.redirect_hosts:
            raise SourceError(
                f"{self.at}: {self.address} redirects to {host}, which serves the topic: name a proxy in the "
                "connection, or the cluster's brokers in its extra's redirect_hosts"
            )
        port = (place.port or _PORTS[self.scheme]) if place.hostname else self.port
        return (host, port), place.path + (f"?{place.query}" if place.query else "")

    def _without_token(self, text: str) -> str:
        return text.replace(self.token, "***") if self.token else text


def _own(place: _Place) -> tuple[int, _Place]:
    """Return what this thread's connection to a place is found by."""
    return threading.get_ident(), place


def _body(answer: HTTPResponse, one: HTTPConnection, until: float) -> bytes:
    """Return the whole body.

    Raises:
        TimeoutError: where it is not there in time, however steadily it drips.
        HTTPException: where it ends early, or is too large.
    """
    pieces: list[bytes] = []
    size = 0
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if one.sock is not None:
            one.sock.settimeout(left)
        piece = answer.read1(_PIECE)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise HTTPException(f"more than {LARGEST >> 20} MB")
    if answer.length:
        raise HTTPException("cut off")
    answer.close()
    return b"".join(pieces)


def _address(found: Connection, at: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a connection.

    Raises:
        SourceError: where it names no host.
    """
    named = found.host or ""
    whole = urlsplit(named if "://" in named else f"//{named}")
    scheme = whole.scheme or (found.schema if found.schema in _PORTS else None)
    scheme = scheme or ("https" if found.conn_type == "https" else "http")
    if not whole.hostname or scheme not in _PORTS:
        raise SourceError(
            f"{at}: expected the host of a broker's web service, such as http://broker:8080, found none"
        )
    return scheme, whole.hostname, found.port or whole.port or _PORTS[scheme]


def _context(found: Connection, at: str) -> ssl.SSLContext:
    """Return how servers are verified: by `tls_ca`, else as the system does; with `tls_cert` and `tls_key` as login.

    Raises:
        SourceError: where a file cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=found.extra.get("tls_ca"))
        if "tls_cert" in found.extra:
            context.load_cert_chain(found.extra["tls_cert"], found.extra.get("tls_key"))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else "no certificate or key in PEM"
        raise SourceError(f"{at}: tls_ca, tls_cert, tls_key: cannot be read: {reason}") from None
    return context


def _plain(token: str, at: str) -> str:
    """Return a token that a header can hold.

    Raises:
        SourceError: for another; without the token.
    """
    if not token.isascii() or not token.isprintable():
        raise SourceError(f"{at}: expected a token of printable ASCII in the password, found another")
    return token


def _reason(body: bytes) -> str:
    """Return the reason that a broker gives in JSON, nothing where it gives none."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    reason = found.get("reason") if isinstance(found, dict) else None
    return " ".join(reason.split())[:_SHOWN] if isinstance(reason, str) else ""


def _shown(place: SplitResult) -> str:
    return f"{place.scheme or 'no scheme'}://{place.hostname or 'no host'}"
