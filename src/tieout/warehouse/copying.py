"""Copying rows into files in the text format of PostgreSQL's COPY, over one connection or several at once.

psycopg2 hands over each row by itself (https://www.psycopg.org/docs/cursor.html#cursor.copy_expert), which keeps one
core of the client busy, as writing them keeps one of the server. So a large table is copied in parts, each over its own
connection and by its own process; an exported snapshot lets all of them see the same rows
(https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION), as pg_dump does it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

from psycopg2.extensions import connection as PgConnection

from tieout import settings
from tieout.errors import TieoutError
from tieout.warehouse.sessions import session_on

_log: Final = logging.getLogger(__name__)
_MODULUS: Final = 1 << 256


@dataclass(frozen=True)
class Copied:
    """The files that hold the rows, one row per line, and the sum of the rows' SHA-256 modulo 2**256.

    `oversized` counts the rows that are only in the sum: Spark does not hold rows larger than `unpacking().line`.
    """

    files: tuple[Path, ...]
    digest: int
    oversized: int = 0


@dataclass(frozen=True)
class _Part:
    """What one process copies: what a statement yields in a snapshot, into a file."""

    connection: str
    place: str
    snapshot: str
    statement: str
    file: str


@dataclass
class _Rows:
    """Writes the server's rows into the file and adds up their digests; their order does not matter."""

    file: IO[bytes]
    most: int
    total: int = 0
    oversized: int = 0
    is_begun: bool = False

    def write(self, row: bytes) -> int:
        """Append one row, as psycopg2 hands it over; one that is larger than `most` is counted instead."""
        self.total += int.from_bytes(hashlib.sha256(row).digest(), "big")
        if len(row) > self.most:
            self.oversized += 1
            return len(row)
        if not self.is_begun and row.startswith(BOM_UTF8):
            # Hadoop takes one away at the beginning of a file: this one, and not what the first value begins with.
            self.file.write(BOM_UTF8)
        self.is_begun = True
        return self.file.write(row)


def copied(
    session: PgConnection, statements: Sequence[str], folder: Path, connection: str, place: str
) -> Copied:
    """Return the rows that COPY statements yield in the session's snapshot, each statement's in a file of its own.

    All but the first go over connections of their own. What one of these cannot do, as where the role may have no
    more of them, the session does itself: that takes longer, and is logged.

    Raises:
        psycopg2.Error: where a statement fails in the session.
    """
    files = tuple(folder / f"rows-{number}.copy" for number, _ in enumerate(statements))
    shared = _exported(session) if len(statements) > 1 else ""
    parts = [
        _Part(connection, place, shared, statement, str(file))
        for statement, file in zip(statements, files, strict=True)
    ]
    with ExitStack() as running:
        others = [(part, running.enter_context(_copying(part))) for part in parts[1:]]
        sums = [_copy(session, parts[0])]
        for part, process in others:
            answer = _answer(process, part)
            sums.append(_copy(session, part) if answer is None else answer)
    digest = sum(digest for digest, _ in sums) % _MODULUS
    return Copied(files, digest, sum(oversized for _, oversized in sums))


def main() -> int:
    """Copy the part that the argument describes, print its digest or what went wrong, and return the exit code.

    Ends at once where the input does: the process that asked for it has ended, however it did.
    """
    part = _Part(**json.loads(sys.argv[1]))
    Thread(target=_leave_with_the_input, daemon=True).start()
    try:
        with session_on(part.connection, part.place, "table", shared=part.snapshot) as session:
            digest, oversized = _copy(session, part)
    except (TieoutError, OSError) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    print(json.dumps({"digest": digest, "oversized": oversized}))
    return 0


def _exported(session: PgConnection) -> str:
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_export_snapshot()")
        row: tuple[str] = cursor.fetchone() or ("",)
        return row[0]


def _copy(session: PgConnection, part: _Part) -> tuple[int, int]:
    """Copy a part; return the sum of its rows, and how many of them are too large."""
    with Path(part.file).open("wb") as file, session.cursor() as cursor:
        rows = _Rows(file, settings.unpacking().line)
        cursor.copy_expert(part.statement, rows)
    return rows.total, rows.oversized


@contextmanager
def _copying(part: _Part) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that copies the part, and ends with the block. It finds the password where this one does."""
    with settings.defined({"PYTHONPATH": os.pathsep.join(sys.path)}):
        process = subprocess.Popen(  # noqa: S603 - this module, by the Python that runs it
            [sys.executable, "-P", "-m", "tieout.warehouse", json.dumps(asdict(part))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    with process:
        yield process


def _answer(process: subprocess.Popen[bytes], part: _Part) -> tuple[int, int] | None:
    """Return the sum of what the process copied, and how many rows are too large.

    None where it could not copy, which is logged.
    """
    answer = process.stdout.read() if process.stdout else b""
    result: dict[str, Any] = json.loads(answer or "{}")
    if "digest" in result:
        return int(result["digest"]), int(result["oversized"])
    reason = result.get("error", "its process ended early")
    _log.warning("%s: a part of the table is copied later, not beside the others: %s", part.place, reason)
    return None


def _leave_with_the_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)
