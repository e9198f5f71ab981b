"""The settings of Kafka's Java client, made of what an Airflow connection holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tieout.brokers import client_settings, library_settings, without_secrets
from tieout.errors import ConnectionNotFoundError, SourceError

AT = "ledgers.log.source"


def settings_of(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | str) -> dict[str, str]:
    """Return what the connection comes to."""
    text = connection if isinstance(connection, str) else json.dumps({"conn_type": "kafka", **connection})
    monkeypatch.setenv("AIRFLOW_CONN_EVENTS", text)
    return client_settings("events", AT)


@pytest.mark.parametrize(
    ("connection", "servers"),
    [
        pytest.param({"extra": {"bootstrap.servers": "a:1,b:2"}}, "a:1,b:2", id="named as clients do"),
        pytest.param({"extra": {"metadata.broker.list": "a:1"}}, "a:1", id="named as librdkafka does"),
        pytest.param({"host": "a", "port": 1}, "a:1", id="host and port"),
        pytest.param("kafka://a", "a:9092", id="a URI, with Kafka's own port"),
        pytest.param(
            {"conn_type": "generic", "host": "a"}, "a:9092", id="as Airflow without the provider has it"
        ),
    ],
)
def test_the_brokers_addresses(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | str, servers: str
) -> None:
    """They stand in one of several places."""
    assert settings_of(monkeypatch, connection) == {"bootstrap.servers": servers}


def test_what_is_for_consumers_and_producers_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader decides from where it reads and as whom."""
    extra = {"bootstrap.servers": "a:1", "group.id": "g", "auto.offset.reset": "latest", "acks": "all"}
    assert settings_of(monkeypatch, {"extra": extra}) == {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")],
)
def test_a_login_is_written_as_the_java_client_has_it(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, module: str
) -> None:
    """User and password, with quotes and backslashes escaped."""
    extra = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanisms": mechanism}
    found = settings_of(monkeypatch, {"login": "me", "password": 'p"w\\', "extra": extra})
    login = f'org.apache.kafka.common.security.{module} required username="me" password="p\\"w\\\\";'
    assert found["sasl.jaas.config"] == login
    assert found["sasl.mechanism"] == mechanism
    assert "sasl.mechanisms" not in found


def test_a_login_of_the_java_client_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever module it names."""
    extra = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.jaas.config": "x required;"}
    found = settings_of(monkeypatch, {"login": "me", "password": "p", "extra": extra})
    assert found["sasl.jaas.config"] == "x required;"


def test_certificates_and_keys_are_read_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that executors need no files."""
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"PEM of {name}")
    extra = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert settings_of(monkeypatch, {"extra": extra}) == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "PEM of ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "PEM of cert",
        "ssl.keystore.key": "PEM of key",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("connection", "reason"),
    [
        pytest.param(
            "postgresql://a",
            "expected a connection of type tieout_kafka, kafka, generic, found type postgres",
            id="another",
        ),
        pytest.param({"extra": {}}, "expected the brokers' addresses, host:port", id="no address"),
        pytest.param(
            {"extra": {"bootstrap.servers": "a:1", "ssl.ca.location": "/nowhere/ca.pem"}},
            "ssl.ca.location: /nowhere/ca.pem cannot be read: No such file or directory",
            id="no certificate",
        ),
        pytest.param(
            {"extra": {"bootstrap.servers": "a:1", "enable.ssl.certificate.verification": False}},
            "always verifies certificates",
            id="no verification",
        ),
        pytest.param(
            {
                "login": "me",
                "password": "geheim",
                "extra": {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "X"},
            },
            "sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 beside a user, found X",
            id="another mechanism",
        ),
        pytest.param(
            {
                "login": "me",
                "extra": {
                    "bootstrap.servers": "a:1",
                    "security.protocol": "SASL_SSL",
                    "sasl.mechanism": "PLAIN",
                },
            },
            "expected a user and a password",
            id="no password",
        ),
    ],
)
def test_what_cannot_be_used_is_said(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | str, reason: str
) -> None:
    """With its place, and without a secret."""
    with pytest.raises(SourceError, match=AT) as caught:
        settings_of(monkeypatch, connection)
    assert reason in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "login",
    [
        pytest.param(
            {"sasl.mechanisms": "PLAIN", "sasl.username": "me", "sasl.password": 'p"w\\'}, id="its own"
        ),
        pytest.param(
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'PlainLoginModule required username="me" password="p\\"w\\\\";',
            },
            id="the Java client's",
        ),
    ],
)
def test_either_clients_words_are_librdkafkas_too(
    monkeypatch: pytest.MonkeyPatch, login: dict[str, str]
) -> None:
    """The same connection serves Spark and Airflow's tasks."""
    extra = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
        "group.id": "g",
        "request.timeout.ms": 1,
        **login,
    }
    settings_of(monkeypatch, {"extra": extra})
    found = library_settings("events", AT)
    assert found.pop("sasl.mechanisms", None) or found.pop("sasl.mechanism") == "PLAIN"
    assert found == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": "PEM",
        "ssl.endpoint.identification.algorithm": "none",
        "sasl.username": "me",
        "sasl.password": 'p"w\\',
    }


def test_a_java_key_store_is_not_read_by_librdkafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would find no authority, and say no more than that the certificate is not trusted."""
    extra = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": "/a.jks"}
    settings_of(monkeypatch, {"extra": extra})
    with pytest.raises(SourceError, match="certificates as PEM only"):
        library_settings("events", AT)


def test_a_connection_that_is_not_defined_is_named() -> None:
    """With the variable that would define it."""
    with pytest.raises(ConnectionNotFoundError, match="AIRFLOW_CONN_NOT_DEFINED"):
        client_settings("not_defined", AT)


def test_secrets_are_blotted_out() -> None:
    """What a broker or a client says may quote them."""
    settings = {"bootstrap.servers": "a:1", "ssl.keystore.key": "KEY", "ssl.key.password": ""}
    assert without_secrets("a:1 refuses KEY", settings) == "a:1 refuses ***"
