"""A connection's settings in the words of Kafka's own Java client, which reads topics inside Spark.

Sources: Apache Kafka documentation, "Security" (JAAS login modules, and PEM keystores since KIP-651).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieout.brokers.connection_fields import JAAS, ConnectionFields, fields_of
from tieout.errors import SourceError

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


def client_settings(name: str, place: str) -> dict[str, str]:
    """Return the settings of the Java client for the named connection; what is for other clients only is left out.

    Files of certificates and keys are read here, so that executors need no copy of them.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where it is no Kafka connection, names no broker, or asks for what the Java client cannot do;
            without a secret.
    """
    fields = fields_of(name, f"{place}.connection: {name}")
    if fields.extra.get("enable.ssl.certificate.verification") == "false":
        raise SourceError(
            f"{fields.at}: enable.ssl.certificate.verification: the Java client always verifies certificates; "
            "name the authority that signed the broker's with ssl.ca.location"
        )
    found = {"bootstrap.servers": fields.servers()}
    for key, value in fields.extra.items():
        if key in _FILES:
            found[_FILES[key]] = fields.content(key)
        elif (key in _COMMON or key.startswith(_PREFIXES)) and key not in _OF_LOGIN:
            found[_RENAMED.get(key, key)] = value
    return found | _stores(found) | _login(found, fields)


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


def _login(found: Mapping[str, str], fields: ConnectionFields) -> dict[str, str]:
    """Return the login with user and password, nothing where there is none or it is written out already."""
    if JAAS in found or not fields.has_login:
        return {}
    mechanism = found.get("sasl.mechanism", "").upper()
    if mechanism not in _LOGIN_MODULES:
        if not fields.user:
            return {}
        raise SourceError(
            f"{fields.at}: sasl.mechanism: expected one of {', '.join(_LOGIN_MODULES)} beside a user, "
            f"found {mechanism or 'none'}; for another, give the Java client's {JAAS}"
        )
    user, password = fields.credentials()
    words = " ".join(
        f"{key}={_quoted(value)}" for key, value in {"username": user, "password": password}.items()
    )
    return {JAAS: f"{_LOGIN_MODULES[mechanism]} required {words};"}


def _quoted(text: str) -> str:
    r"""Return the text as a value in a login's configuration.

    >>> print(_quoted('a"b'))
    "a\"b"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
