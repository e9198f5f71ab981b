"""Connections, by name, as Airflow's environment variables `AIRFLOW_CONN_…` describe them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tieout.errors import ConnectionNotFoundError

_NESTED_SCHEME: Final = re.compile(r"(?P<type>[A-Za-z][A-Za-z0-9+._-]*)://[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class Connection:
    """One connection as Airflow describes it; its text never shows the password or the extra settings."""

    name: str
    conn_type: str = ""
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    schema: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


def connection_variable(name: str) -> str:
    """Return the environment variable that Airflow, too, looks for a connection in.

    >>> connection_variable("warehouse")
    'AIRFLOW_CONN_WAREHOUSE'
    """
    return f"AIRFLOW_CONN_{name.upper()}"


def define_connections(variables: Mapping[str, str]) -> None:
    """Let `connection` find these, by their environment variables, for as long as the process lives."""
    os.environ.update(variables)


def connection(name: str) -> Connection:
    """Return the named connection from its environment variable, which holds JSON or a URI as in Airflow.

    Raises:
        ConnectionNotFoundError: where the variable is not set, or holds neither of the two forms. The error
            never repeats what the variable holds.
    """
    variable = connection_variable(name)
    text = os.environ.get(variable, "").strip()
    if not text:
        raise ConnectionNotFoundError(
            f"connection {name}: the environment variable {variable} is not set; set it to a URI such as "
            "postgresql://user:password@host:5432/database, or to the JSON form of an Airflow connection"
        )
    try:
        return _from_json(name, text) if text.startswith("{") else _from_uri(name, text)
    except ValueError as error:
        raise ConnectionNotFoundError(f"connection {name}: {variable} cannot be read: {error}") from None


def _from_json(name: str, text: str) -> Connection:
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON, at character {error.pos + 1}: {error.msg}") from None
    texts = {key: _text(fields.get(key), key) for key in ("host", "login", "password", "schema")}
    return Connection(
        name,
        conn_type=_conn_type(_text(fields.get("conn_type"), "conn_type") or ""),
        port=_port(fields.get("port")),
        extra=_extra(fields.get("extra")),
        **texts,
    )


def _from_uri(name: str, text: str) -> Connection:
    """Return the connection in `type://login:password@host:port/schema?extra`.

    Airflow also allows a second scheme, which is then part of the host: `http://https://host` is an HTTP
    connection to `https://host`.
    """
    nested = _NESTED_SCHEME.match(text)
    parts = urlsplit(text[nested.end("type") + 3 :] if nested else text)
    if "://" not in text or not parts.scheme:
        raise ValueError("expected JSON, or a URI such as postgresql://user:password@host:5432/database")
    host = _host(parts)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Connection(
        name,
        conn_type=_conn_type(nested["type"] if nested else parts.scheme),
        host=f"{parts.scheme}://{host}" if nested and host else host,
        port=_uri_port(parts),
        login=_unquoted(parts.username),
        password=_unquoted(parts.password),
        schema=unquote(parts.path[1:]) or None,
        extra=_extra(query["__extra__"]) if "__extra__" in query else query,
    )


def _host(parts: SplitResult) -> str | None:
    """Return the host with the case it was written in, which matters where it is a socket's folder."""
    address = parts.netloc.rpartition("@")[2]
    host = address[1 : address.index("]")] if address.startswith("[") else address.partition(":")[0]
    return unquote(host) or None


def _uri_port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise ValueError("expected a port from 0 to 65535") from None


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)


def _conn_type(scheme: str) -> str:
    return "postgres" if scheme == "postgresql" else scheme.replace("-", "_")


def _text(value: object, key: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"expected {key} to be text")


def _port(value: object) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) > 65_535:
        raise ValueError("expected a port from 0 to 65535")
    return int(str(value))


def _extra(value: object) -> dict[str, Any]:
    """Return the extra settings, which are a mapping or the text of one."""
    if value is None or value == "":
        return {}
    try:
        extra = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        raise ValueError("expected extra to be a JSON object") from None
    if not isinstance(extra, dict):
        raise ValueError("expected extra to be a JSON object")  # noqa: TRY004 - one kind of error for one text
    return extra
