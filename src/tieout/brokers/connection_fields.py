"""What Airflow's connection to a Kafka cluster holds, before it is put into the words of one client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tieout.connections import connection
from tieout.errors import SourceError

JAAS: Final = "sasl.jaas.config"
_PORT: Final = 9092
_TYPES: Final = ("tieout_kafka", "kafka", "generic")
"""The first is Tieout's own, with a form in Airflow; `kafka` comes with Airflow's Kafka provider, and Airflow makes
`generic` of every type whose provider is not installed."""
_NO_ALGORITHM: Final = "ssl.endpoint.identification.algorithm"
"""The one setting that is meant where it is empty."""


@dataclass(frozen=True)
class ConnectionFields:
    """A connection's fields; `at` says where it is named. Its text shows no password and no extra setting."""

    at: str
    host: str | None
    port: int | None
    user: str | None
    password: str | None = field(repr=False)
    extra: Mapping[str, str] = field(repr=False)

    @property
    def has_login(self) -> bool:
        """Whether the brokers are logged in to with SASL."""
        return self.extra.get("security.protocol", "").upper().startswith("SASL")

    def servers(self) -> str:
        """Return the brokers' addresses.

        Raises:
            SourceError: where none is named.
        """
        named = self.extra.get("bootstrap.servers") or self.extra.get("metadata.broker.list")
        if named:
            return named
        if self.host:
            return f"{self.host}:{self.port or _PORT}"
        raise SourceError(
            f"{self.at}: expected the brokers' addresses, host:port, in its extra's bootstrap.servers"
        )

    def credentials(self) -> tuple[str, str]:
        """Return user and password.

        Raises:
            SourceError: where one of them is missing.
        """
        if not self.user or not self.password:
            raise SourceError(
                f"{self.at}: expected a user and a password (sasl.username and sasl.password, or login)"
            )
        return self.user, self.password

    def content(self, key: str) -> str:
        """Return the text of the PEM file that the setting names.

        Raises:
            SourceError: where it cannot be read.
        """
        path = self.extra[key]
        try:
            return Path(path).read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a PEM file"
            raise SourceError(f"{self.at}: {key}: {path} cannot be read: {reason}") from None


def fields_of(name: str, at: str) -> ConnectionFields:
    """Return what the named connection holds.

    Raises:
        ConnectionNotFoundError: where it is not defined.
        SourceError: where it is no Kafka connection.
    """
    found = connection(name)
    if found.conn_type not in _TYPES:
        raise SourceError(
            f"{at}: expected a connection of type {', '.join(_TYPES)}, found type {found.conn_type or '(none)'}"
        )
    extra = {
        key: _text(value)
        for key, value in found.extra.items()
        if value is not None and (value != "" or key == _NO_ALGORITHM)
    }
    return ConnectionFields(
        at,
        found.host,
        found.port,
        extra.get("sasl.username") or found.login,
        extra.get("sasl.password") or found.password,
        extra,
    )


def _text(value: object) -> str:
    """Return a setting as properties have it.

    >>> _text(True), _text(9000)
    ('true', '9000')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
