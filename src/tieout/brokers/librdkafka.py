"""A connection's settings in the words of librdkafka, which Airflow's tasks reach a cluster with.

Source: librdkafka, CONFIGURATION.md.
"""

from __future__ import annotations

import re
from typing import Final

from tieout.brokers.connection_fields import JAAS, ConnectionFields, fields_of
from tieout.errors import SourceError

_COMMON: Final = (
    "security.protocol",
    "client.id",
    "client.dns.lookup",
    "enable.ssl.certificate.verification",
)
_PREFIXES: Final = ("sasl.", "ssl.")
_RENAMED: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAVA_ONLY: Final = (JAAS, "ssl.truststore.type", "ssl.keystore.type")
_JAVA_STORES: Final = ("ssl.truststore.location", "ssl.truststore.password")
_IN_JAAS: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def library_settings(name: str, place: str) -> dict[str, str]:
    """Return the settings of librdkafka for the named connection; what is for other clients only is left out.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where it is no Kafka connection, names no broker, or holds what librdkafka cannot read; without
            a secret.
    """
    fields = fields_of(name, f"{place}.connection: {name}")
    found = {"bootstrap.servers": fields.servers()}
    for key, value in fields.extra.items():
        if key in _JAVA_STORES:
            raise SourceError(
                f"{fields.at}: {key}: Airflow's tasks read certificates as PEM only: name the authority's with "
                "ssl.ca.location"
            )
        if (key in _COMMON or key.startswith(_PREFIXES)) and key not in _JAVA_ONLY:
            found[_RENAMED.get(key, key)] = value
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found | _login(fields)


def _login(fields: ConnectionFields) -> dict[str, str]:
    """Return user and password, nothing where there are none; they may be in the Java client's form."""
    if not fields.has_login:
        return {}
    quoted = {
        key: re.sub(r"\\(.)", r"\1", text) for key, text in _IN_JAAS.findall(fields.extra.get(JAAS, ""))
    }
    user, password = quoted.get("username", fields.user), quoted.get("password", fields.password)
    named = {"sasl.username": user, "sasl.password": password}
    return {key: value for key, value in named.items() if value}
