"""Reaching the Kafka of other people: a connection's settings in the words of Kafka's own Java client.

Airflow's Kafka connection holds the settings of librdkafka, which Airflow's provider hands them to. Most have the same
name in the Java client; secrets and certificates do not. Sources: librdkafka, CONFIGURATION.md; Apache Kafka
documentation, "Security" (JAAS login modules, and PEM keystores since KIP-651).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tieout.errors import SourceError
from tieout.settings import Connection, connection

_PORT: Final = 9092
_TYPES: Final = ("kafka", "generic")
"""Airflow makes `generic` of every type whose provider is not installed."""
_COMMON: Final = ("security.protocol", "client.id", "client.dns.lookup", "request.timeout.ms")
_PREFIXES: Final = ("sasl.", "ssl.")
_RENAMED: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_FILES: Final = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_OF_LOGIN: Final = ("sasl.username", "sasl.password")
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SECRETS: Final = ("sasl.jaas.config", "ssl.keystore.key", "ssl.key.password", "ssl.keystore.password")


def client_settings(name: str, place: str) -> dict[str, str]:
    """Return the settings of the Java client for the named connection; what is for other clients only is left out.

    Files of certificates and keys are read here, so that executors need no copy of them.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where it is no Kafka connection, names no broker, or asks for what the Java client cannot do;
            without a secret.
    """
    settings = connection(name)
    at = f"{place}.connection: {name}"
    if settings.conn_type not in _TYPES:
        raise SourceError(
            f"{at}: expected a connection of type {' or '.join(_TYPES)}, "
            f"found type {settings.conn_type or '(none)'}"
        )
    given = {key: _text(value) for key, value in settings.extra.items()}
    if given.get("enable.ssl.certificate.verification") == "false":
        raise SourceError(
            f"{at}: enable.ssl.certificate.verification: the Java client always verifies certificates; "
            "name the authority that signed the broker's with ssl.ca.location"
        )
    known = {key: value for key, value in given.items() if key in _COMMON or key.startswith(_PREFIXES)}
    found = {"bootstrap.servers": _servers(settings, given, at)}
    for key, value in known.items():
        if key in _FILES:
            found[_FILES[key]] = _content(value, f"{at}: {key}")
        elif key not in _OF_LOGIN:
            found[_RENAMED.get(key, key)] = value
    return found | _stores(found) | _login(settings, found, given, at)


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """Return what a client or a broker said with every secret of the settings blotted out."""
    for name in _SECRETS:
        if settings.get(name):
            text = text.replace(settings[name], "***")
    return text


def _servers(settings: Connection, given: Mapping[str, str], at: str) -> str:
    named = given.get("bootstrap.servers") or given.get("metadata.broker.list")
    if named:
        return named
    if settings.host:
        return f"{settings.host}:{settings.port or _PORT}"
    raise SourceError(f"{at}: expected the brokers' addresses, host:port, in its extra's bootstrap.servers")


def _stores(found: Mapping[str, str]) -> dict[str, str]:
    """Return which kind the stores of certificates are that the settings hold as text."""
    kinds = {}
    if "ssl.truststore.certificates" in found:
        kinds["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in found:
        kinds["ssl.keystore.type"] = "PEM"
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        kinds["ssl.endpoint.identification.algorithm"] = ""
    return kinds


def _login(
    settings: Connection, found: Mapping[str, str], given: Mapping[str, str], at: str
) -> dict[str, str]:
    """Return the login with user and password, nothing where there is none or it is written out already."""
    user = given.get("sasl.username") or settings.login
    password = given.get("sasl.password") or settings.password
    if "sasl.jaas.config" in found or not found.get("security.protocol", "").upper().startswith("SASL"):
        return {}
    mechanism = found.get("sasl.mechanism", "").upper()
    if mechanism not in _LOGIN_MODULES:
        if not user:
            return {}
        raise SourceError(
            f"{at}: sasl.mechanism: expected one of {', '.join(_LOGIN_MODULES)} beside a user, "
            f"found {mechanism or 'none'}; for another, give the Java client's sasl.jaas.config"
        )
    if not user or not password:
        raise SourceError(f"{at}: expected a user and a password (sasl.username and sasl.password, or login)")
    quoted = {"username": _quoted(user), "password": _quoted(password)}
    words = " ".join(f"{key}={value}" for key, value in quoted.items())
    return {"sasl.jaas.config": f"{_LOGIN_MODULES[mechanism]} required {words};"}


def _quoted(text: str) -> str:
    r"""Return the text as a value in a login's configuration.

    >>> print(_quoted('a"b'))
    "a\\"b"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(value: object) -> str:
    """Return a setting as properties have it.

    >>> _text(True), _text(9000)
    ('true', '9000')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _content(path: str, at: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a PEM file"
        raise SourceError(f"{at}: {path} cannot be read: {reason}") from None
