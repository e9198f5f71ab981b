"""Finding secrets in a contract, where they must not be: contracts are committed, stored and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SECRET_NAME: Final = re.compile(
    r"password|passwd|passphrase|secret|credential|api[._-]?key|access[._-]?key|jaas|token$", re.IGNORECASE
)
_PASSWORD_IN_URL: Final = re.compile(r"[a-z][a-z0-9+.:-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_PASSWORD_IN_TEXT: Final = re.compile(r"\b(password|passwd|pwd|secret|token)\s*=\s*[^\s=]", re.IGNORECASE)
_REASON: Final = (
    "looks like a secret, and a contract holds none; name a connection instead (AIRFLOW_CONN_<NAME>)"
)
_SQL: Final = frozenset({"columns", "where", "query", "complete_until"})

Path = tuple[str | int, ...]


def is_secret(text: str) -> bool:
    """Return whether the text holds an address with a password, or names a password and gives it."""
    return bool(_PASSWORD_IN_URL.search(text) or _PASSWORD_IN_TEXT.search(text))


def secrets_in(plain: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the path of every value that looks like a secret, and the reason to print, which does not repeat it.

    SQL may name a column `token`; elsewhere a field of such a name is taken to hold one.
    """
    if isinstance(plain, dict):
        for key, value in plain.items():
            is_named_so = (
                not _SQL & set(path) and isinstance(value, str) and value and _SECRET_NAME.search(key)
            )
            if is_named_so:
                yield (*path, key), _REASON
            else:
                yield from secrets_in(value, (*path, key))
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from secrets_in(value, (*path, index))
    elif isinstance(plain, str) and (
        _PASSWORD_IN_URL.search(plain) or (not _SQL & set(path) and is_secret(plain))
    ):
        yield path, _REASON
