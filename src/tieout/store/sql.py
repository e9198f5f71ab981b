"""The SQL of the store, read from files: named statements and numbered migrations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from tieout.errors import StoreError

_OF_RUNS: Final = ("queries.sql", "life.sql")
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION_FILE: Final = re.compile(r"^(\d{4})_(\w+)\.sql$")


@dataclass(frozen=True)
class Migration:
    """One step of the schema; its digest shows whether the file was changed after it had been applied."""

    version: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """The SHA-256 of the SQL, as hex digits; line ends do not count."""
        return hashlib.sha256("\n".join(self.sql.splitlines()).encode()).hexdigest()


@cache
def queries(*files: str) -> Mapping[str, str]:
    """Return the statements of some of the package's SQL files by name: those of every run where none is named."""
    texts = (_package().joinpath(name).read_text(encoding="utf-8") for name in files or _OF_RUNS)
    return MappingProxyType(parsed("\n".join(texts)))


def parsed(text: str) -> dict[str, str]:
    r"""Return the statements in `text` by their names, without comment lines.

    Raises:
        StoreError: where a name is used twice or has no statement.

    >>> parsed("-- name: one\n-- The first.\nSELECT 1\n")
    {'one': 'SELECT 1'}
    """
    statements: dict[str, str] = {}
    parts = _NAME.split(text)[1:]
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("--")]
        if name in statements or not lines:
            found = "two" if lines else "none"
            raise StoreError(f"SQL: expected one statement named {name}, found {found}")
        statements[name] = "\n".join(lines)
    return statements


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the migrations that this version of the code knows, oldest first."""
    found = [file for file in _package().joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    return numbered({file.name: file.read_text(encoding="utf-8") for file in found})


def numbered(texts: Mapping[str, str]) -> tuple[Migration, ...]:
    """Return migrations from file names and contents, in the order of their numbers.

    Raises:
        StoreError: where a name is not like `0001_initial.sql`, or the numbers are not 1, 2, 3 and so on.
    """
    found = []
    for file_name in sorted(texts):
        match = _MIGRATION_FILE.match(file_name)
        if match is None:
            raise StoreError(f"migrations/{file_name}: expected a name like 0001_initial.sql")
        found.append(Migration(int(match[1]), match[2], texts[file_name]))
    versions = [migration.version for migration in found]
    if versions != list(range(1, len(found) + 1)):
        raise StoreError(f"migrations: expected the numbers 1, 2, 3 and so on, each once, found {versions}")
    return tuple(found)


def _package() -> Traversable:
    return files("tieout.store")
