"""Finds secrets in a contract, which must have none: contracts are committed, stored and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SECRET_NAME: Final = re.compile(
    r"password|passwd|passphrase|secret|credential(?!s?[._-](?:source|provider))|(api|access|account|private)[._-]?key|jaas|user[._-]info"
    r"|keystore[._-]key$|token$|(^|[._-])(pass|pwd)$",
    re.IGNORECASE,
)
_PASSWORD_IN_URL: Final = re.compile(r"[a-z][0-9+.:-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
"""Matches from the scheme's last letter only: a match from every letter would take quadratic time."""

_SECRET_TEXT: Final = re.compile(
    rf"{_PASSWORD_IN_URL.pattern}|\b(password|passwd|pwd|secret|token)\s*=\s*[^\s=]", re.IGNORECASE
)
REASON: Final = (
    "looks like a secret, and a contract holds none; name a connection instead (AIRFLOW_CONN_<NAME>)"
)
_SQL: Final = frozenset({"columns", "where", "query", "complete_until"})

Path = tuple[str | int, ...]


def is_secret(text: str) -> bool:
    """Return whether the text holds a URL with a password, or an assignment such as `password=…`."""
    return _SECRET_TEXT.search(text) is not None


def is_secret_name(name: str) -> bool:
    """Return whether a setting of that name holds a secret, such as `sasl.jaas.config`.

    >>> is_secret_name("gcp.credentials.file"), is_secret_name("basic.auth.credentials.source")
    (True, False)
    """
    return _SECRET_NAME.search(name) is not None


def secrets_in(node: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the path of every value that looks like a secret, and a reason that does not repeat it.

    SQL may name a column `token`; elsewhere a field of such a name is treated as a secret.
    """
    if isinstance(node, dict):
        for key, value in node.items():
            if value and isinstance(value, str) and not _SQL & set(path) and _SECRET_NAME.search(key):
                yield (*path, key), REASON
            else:
                yield from secrets_in(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from secrets_in(value, (*path, index))
    elif isinstance(node, str) and (_PASSWORD_IN_URL if _SQL & set(path) else _SECRET_TEXT).search(node):
        yield path, REASON
