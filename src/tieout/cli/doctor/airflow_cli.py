"""Airflow as its own command line tells it: nothing of it is imported here, and every version prints the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_PATIENCE_SECONDS: Final = 300.0
_BENEATH: Final = ("[", "(Background", "LINE ", "^")
"""How lines begin that stand below an error's own."""


@dataclass(frozen=True)
class Told:
    """What one command of Airflow's printed: the records or the word that was asked for, or why there are none."""

    records: tuple[Mapping[str, Any], ...]
    last_line: str
    is_answered: bool

    @property
    def lacks_tables(self) -> bool:
        """Whether Airflow has a database without its tables. Docs: the words of SQLite, PostgreSQL and MySQL for it."""
        return any(words in self.last_line for words in ("no such table", "UndefinedTable", "doesn't exist"))

    @property
    def record(self) -> Mapping[str, Any]:
        """The first record, or none of its fields."""
        return self.records[0] if self.records else {}


def ask(*words: str) -> Told:
    """Return what `airflow WORDS` prints; its JSON may follow lines of its log."""
    command = [sys.executable, "-m", "airflow", *words]
    try:
        done = subprocess.run(  # noqa: S603 - Airflow, as it is installed beside this
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Told((), f"airflow {' '.join(words)} gave no answer within {_PATIENCE_SECONDS:.0f} s", False)
    records = next((found for line in done.stdout.splitlines() if (found := _records(line))), ())
    printed = done.stdout if done.returncode == 0 else done.stderr
    return Told(records, _last_line(printed), done.returncode == 0)


def _last_line(printed: str) -> str:
    r"""Return the last line that says something: below an error drivers add its place, SQLAlchemy the statement.

    >>> _last_line("Error: no such table: pool\n[SQL: SELECT slots\nFROM pool]\n(Background on this error)")
    'Error: no such table: pool'
    >>> _last_line('(UndefinedTable) relation "pool" does not exist\nLINE 2: FROM pool\n             ^\n[SQL: …]')
    '(UndefinedTable) relation "pool" does not exist'
    """
    lines = (line.strip() for line in reversed(printed.partition("\n[SQL:")[0].splitlines()))
    return next((line for line in lines if line and not line.startswith(_BENEATH)), "no output")


def _records(line: str) -> tuple[Mapping[str, Any], ...]:
    if not line.startswith("[{"):
        return ()
    try:
        return tuple(json.loads(line))
    except ValueError:
        return ()
