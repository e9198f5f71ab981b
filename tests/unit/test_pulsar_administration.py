"""A broker's REST interface: what it answers, how it is logged in to, and what is said where it does not answer."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.pulsar import ANSWERS, ORDERS, STATISTICS, Behaviour, served

from tieout.errors import SourceError, SourceUnreachableError
from tieout.pulsar import Administration, AnswerError, SavedAnswers
from tieout.pulsar.administration import TIMEOUT_SECONDS

TOKEN = "eyJhbGciOiJIUzI1NiJ9.secret"  # noqa: S105 - nobody's
_SHORT = 0.3


@pytest.fixture
def administration(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes the interface of a connection."""
    opened: list[Administration] = []

    def make(uri: str, **fields: Any) -> Administration:
        scheme, _, place = uri.partition("://")
        host, port = place.split(":")
        known = {"conn_type": scheme, "host": host, "port": int(port), **fields}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", json.dumps(known))
        found = Administration.of("pulsar", "ledgers.log.source")
        opened.append(found)
        return found

    yield make
    for one in opened:
        one.close()


def _answering(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Behaviour:
    def behave(handler: BaseHTTPRequestHandler, _: str) -> bool:
        handler.send_response(status)
        for header in headers:
            handler.send_header(*header)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return behave


def test_one_connection_serves_many_questions(administration: Any) -> None:
    """Answers are whole, heads included, and what is not there is told."""
    ports: set[int] = set()

    def note(handler: BaseHTTPRequestHandler, _: str) -> bool:
        ports.add(handler.client_address[1])
        return False

    with served(note) as (address, _):
        broker = administration(address)
        for path in (STATISTICS, f"{ORDERS}/ledger/5/entry/7", f"{ORDERS}/ledger/5/entry/0"):
            found, kept = broker.get(path), SavedAnswers(ANSWERS, "").get(path)
            assert (found.status, found.body) == (200, kept.body)
            assert {("X-Pulsar-Message-ID", "5:7")} & {*found.headers} == {("X-Pulsar-Message-ID", "5:7")} & {
                *kept.headers
            }
        assert broker.get(f"{ORDERS}/ledger/5/entry/99").status == 404

    assert len(ports) == 1


def test_a_connection_that_the_broker_closed_is_opened_again(administration: Any) -> None:
    """Brokers close what is idle."""

    def close(handler: BaseHTTPRequestHandler, _: str) -> bool:
        handler.close_connection = True
        return False

    with served(close) as (address, requested):
        broker = administration(address)
        assert [broker.get(STATISTICS).status for _ in range(3)] == [200] * 3

    assert len(requested) == 3


@pytest.mark.parametrize("fields", [{"password": TOKEN}, {"extra": {"token": TOKEN}}])
def test_the_token_is_sent_and_never_shown(administration: Any, fields: dict[str, Any]) -> None:
    """Not even where the broker says it back."""
    heads: list[str | None] = []

    def refuse(handler: BaseHTTPRequestHandler, path: str) -> bool:
        heads.append(handler.headers["Authorization"])
        body = json.dumps({"reason": f"token {TOKEN} is not allowed"}).encode()
        return _answering(403, body)(handler, path)

    with served(refuse) as (address, _):
        broker = administration(address, **fields)
        with pytest.raises(SourceError, match=r"refuses: 403 token \*\*\* is not allowed") as refused:
            broker.get(STATISTICS)

    assert heads == [f"Bearer {TOKEN}"]
    assert not isinstance(refused.value, SourceUnreachableError)
    assert TOKEN not in repr(broker) + str(refused.value)


def test_a_certificate_is_verified_by_the_authority_that_the_connection_names(
    administration: Any, tmp_path: Path
) -> None:
    """Without it nothing is asked, and no token is sent."""
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    with served(tls=context) as (address, requested):
        with pytest.raises(SourceError, match="its certificate is refused: self-signed certificate"):
            administration(address, password=TOKEN).get(STATISTICS)
        assert not requested
        trusting = administration(address, password=TOKEN, extra={"tls_ca": str(certificate)})
        assert trusting.get(STATISTICS).status == 200


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for this machine that nobody else signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files[1].write_bytes(key.private_bytes(*pem))
    return files


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_what_may_pass_is_asked_again_later(administration: Any, status: int) -> None:
    """A broker that loads, or is asked too much."""
    reported = pytest.raises(SourceUnreachableError, match=f"does not answer now: {status}")
    with served(_answering(status, b"<html>")) as (address, _), reported:
        administration(address).get(STATISTICS)


def _silence(_: BaseHTTPRequestHandler, __: str) -> bool:
    time.sleep(4 * _SHORT)
    return True


def _dripping(handler: BaseHTTPRequestHandler, _: str) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _number in range(20):
        try:
            handler.wfile.write(b"x")
            handler.wfile.flush()
        except OSError:
            break
        time.sleep(_SHORT / 4)
    return True


@pytest.mark.parametrize("behaviour", [_silence, _dripping], ids=["silent", "dripping"])
def test_a_broker_that_stops_answering_is_waited_for_only_so_long(
    administration: Any, behaviour: Behaviour
) -> None:
    """Be it before its answer, or within."""
    with served(behaviour) as (address, _):
        broker = administration(address)
        broker.timeout_seconds = _SHORT
        began = time.monotonic()
        with pytest.raises(SourceUnreachableError, match=r"nothing whole within 0\.3 seconds"):
            broker.get(STATISTICS)
        assert time.monotonic() - began < TIMEOUT_SECONDS


def test_where_nobody_listens_nothing_answers(administration: Any) -> None:
    """The address is named."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"

        with pytest.raises(SourceUnreachableError, match=f"{address} does not answer: Connection refused"):
            administration(address).get(STATISTICS)


def _garbage(handler: BaseHTTPRequestHandler, _: str) -> bool:
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True
    return True


def _cut(handler: BaseHTTPRequestHandler, _: str) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True
    return True


@pytest.mark.parametrize("behaviour", [_garbage, _cut], ids=["garbage", "cut off"])
def test_what_is_no_answer_is_named(administration: Any, behaviour: Behaviour) -> None:
    """Another protocol, or an answer without its end."""
    with (
        served(behaviour) as (address, _),
        pytest.raises(AnswerError, match="expected an answer of a Pulsar"),
    ):
        administration(address).get(STATISTICS)


def test_a_redirection_is_followed_to_hosts_of_the_connection_only(administration: Any) -> None:
    """The broker that serves a topic may be another; nobody else is told the token."""
    with served() as (owner, requested):
        port = owner.rpartition(":")[2]
        moved = _answering(307, b"", ("Location", f"http://localhost:{port}/admin/v2/{STATISTICS}"))
        with served(moved) as (address, _):
            with pytest.raises(SourceError, match="redirects to localhost, which serves the topic"):
                administration(address, password=TOKEN).get(STATISTICS)
            assert not requested

            allowed = administration(address, extra={"redirect_hosts": "other, localhost"})
            assert allowed.get(STATISTICS).status == 200
            assert requested == [STATISTICS]


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/admin/v2/x", "/login", "https://127.0.0.1/admin/v2/x", ""]
)
def test_a_redirection_elsewhere_is_an_error(administration: Any, location: str) -> None:
    """To another service, or a page to log in at."""
    reported = pytest.raises(SourceError, match="redirects to")
    with served(_answering(302, b"", ("Location", location))) as (address, _), reported:
        administration(address).get(STATISTICS)


def test_redirections_in_a_circle_end(administration: Any) -> None:
    """After a few."""
    circle = _answering(307, b"", ("Location", f"/admin/v2/{STATISTICS}"))
    with served(circle) as (address, requested), pytest.raises(SourceError, match="found 4 redirections"):
        administration(address).get(STATISTICS)
    assert len(requested) == 4


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"conn_type": "postgres"}, "expected a connection of type http or https or generic"),
        ({"host": ""}, "expected the host of a broker's web service"),
        ({"host": "pulsar://broker"}, "expected the host of a broker's web service"),
        ({"password": "a\nb"}, "expected a token of printable ASCII"),
        (
            {"schema": "https", "extra": {"tls_ca": "/nowhere.pem"}},
            "tls_ca, tls_cert, tls_key: cannot be read",
        ),
    ],
)
def test_a_connection_to_something_else_is_refused(
    administration: Any, fields: dict[str, Any], said: str
) -> None:
    """Before anybody is asked."""
    with pytest.raises(SourceError, match=said):
        administration("http://127.0.0.1:8080", **fields)


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"conn_type": "http", "host": "broker"}, "http://broker:8080"),
        ({"conn_type": "https", "host": "broker"}, "https://broker:8443"),
        ({"conn_type": "http", "host": "https://broker"}, "https://broker:8443"),
        ({"conn_type": "http", "host": "broker", "schema": "https", "port": 9}, "https://broker:9"),
    ],
)
def test_an_address_is_as_airflow_has_it(
    fields: dict[str, Any], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Pulsar's ports where none is named."""
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR", json.dumps(fields))

    assert Administration.of("pulsar", "x").address == address


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected an answer with its head"),
        (b'{"partitions":0}', "expected an answer with its head"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", "expected a body of 5 bytes, found 2"),
        (b"HTTP/1.1 307 Moved\r\n\r\n", "expected an answer of status 200, found '307'"),
    ],
)
def test_a_copy_that_holds_no_whole_answer_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    """Its status and its length are known."""
    (tmp_path / "partitions").write_bytes(content)

    with pytest.raises(AnswerError, match=said):
        SavedAnswers(tmp_path, "").get("partitions")
    assert SavedAnswers(tmp_path, "").get("../partitions").status == 404


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """One within it is."""
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    (tmp_path / "elsewhere").write_bytes(whole)
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "first").write_bytes(whole)
    (folder / "second").symlink_to("first")
    (folder / "third").symlink_to(tmp_path / "elsewhere")

    assert SavedAnswers(folder, "").get("second").body == b"{}"
    with pytest.raises(AnswerError, match="found a link out of it"):
        SavedAnswers(folder, "").get("third")
