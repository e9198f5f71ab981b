"""Reads Airflow's state from its command line: Airflow is not imported, and every version prints the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_TIMEOUT_SECONDS: Final = 300.0
_DETAIL_PREFIXES: Final = ("[", "(Background", "LINE ", "^")
"""Prefixes of the lines with details below an error's message."""


@dataclass(frozen=True)
class CommandAnswer:
    """The output of one Airflow command: its records and its last line, which is the error if it failed."""

    records: tuple[Mapping[str, Any], ...]
    last_line: str
    is_answered: bool

    @property
    def lacks_tables(self) -> bool:
        """Whether Airflow's database lacks its tables, by the messages of SQLite, PostgreSQL and MySQL."""
        return any(
            phrase in self.last_line for phrase in ("no such table", "UndefinedTable", "doesn't exist")
        )

    @property
    def record(self) -> Mapping[str, Any]:
        """The first record, or an empty mapping."""
        return self.records[0] if self.records else {}


def airflow_answer(*arguments: str) -> CommandAnswer:
    """Return the output of `airflow ARGUMENTS`; JSON may follow log lines."""
    command = [sys.executable, "-m", "airflow", *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - Airflow, as it is installed beside this
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return CommandAnswer(
            (), f"airflow {' '.join(arguments)} gave no answer within {_TIMEOUT_SECONDS:.0f} s", False
        )
    records = next((parsed for line in done.stdout.splitlines() if (parsed := _records(line))), ())
    printed = done.stdout if done.returncode == 0 else done.stderr
    return CommandAnswer(records, _last_line(printed), done.returncode == 0)


def _last_line(printed: str) -> str:
    r"""Return the last line that is not a detail: below an error drivers add its place, SQLAlchemy the statement.

    >>> _last_line("Error: no such table: pool\n[SQL: SELECT slots\nFROM pool]\n(Background on this error)")
    'Error: no such table: pool'
    >>> _last_line('(UndefinedTable) relation "pool" does not exist\nLINE 2: FROM pool\n             ^\n[SQL: …]')
    '(UndefinedTable) relation "pool" does not exist'
    """
    reversed_lines = (line.strip() for line in reversed(printed.partition("\n[SQL:")[0].splitlines()))
    return next(
        (line for line in reversed_lines if line and not line.startswith(_DETAIL_PREFIXES)), "no output"
    )


def _records(line: str) -> tuple[Mapping[str, Any], ...]:
    if not line.startswith("[{"):
        return ()
    try:
        return tuple(json.loads(line))
    except ValueError:
        return ()
