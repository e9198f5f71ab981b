"""Copies rows into files in the text format of PostgreSQL's COPY, over one connection or several in parallel.

psycopg2 passes each row separately (https://www.psycopg.org/docs/cursor.html#cursor.copy_expert), which uses a core of
the client, and sending them a core of the server. So a large table is copied in parts, each over its own connection and
by its own process; an exported snapshot lets all of them see the same rows
(https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION), as in pg_dump.
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
    """The files with the rows, one row per line, and the sum of the rows' SHA-256 modulo 2**256.

    `oversized` counts rows that are only in the sum: Spark cannot read rows larger than `unpacking().line`.
    """

    files: tuple[Path, ...]
    digest: int
    oversized: int = 0


@dataclass(frozen=True)
class _Part:
    """The work of one process: copy the rows of a statement in a snapshot into a file."""

    connection: str
    place: str
    snapshot: str
    statement: str
    file: str


@dataclass
class _Rows:
    """Writes the server's rows to the file and sums their digests, independent of order."""

    file: IO[bytes]
    most: int
    total: int = 0
    oversized: int = 0
    is_begun: bool = False

    def write(self, row: bytes) -> int:
        """Append one row from psycopg2; a row larger than `most` is only counted."""
        self.total += int.from_bytes(hashlib.sha256(row).digest(), "big")
        if len(row) > self.most:
            self.oversized += 1
            return len(row)
        if not self.is_begun and row.startswith(BOM_UTF8):
            # Hadoop strips a byte order mark at the start of a file: it strips this one, not that of the first value.
            self.file.write(BOM_UTF8)
        self.is_begun = True
        return self.file.write(row)


def copied(
    session: PgConnection, statements: Sequence[str], folder: Path, connection: str, place: str
) -> Copied:
    """Copy the rows of COPY statements in the session's snapshot, each statement into its own file.

    All but the first use separate connections. If one of these fails, for instance at the role's connection limit, the
    session copies the part itself: that takes longer, and is logged.

    Raises:
        psycopg2.Error: if a statement fails in the session.
    """
    files = tuple(folder / f"rows-{number}.copy" for number, _ in enumerate(statements))
    shared = _exported(session) if len(statements) > 1 else ""
    parts = [
        _Part(connection, place, shared, statement, str(file))
        for statement, file in zip(statements, files, strict=True)
    ]
    with ExitStack() as running:
        workers = [(part, running.enter_context(_copying(part))) for part in parts[1:]]
        sums = [_copy(session, parts[0])]
        for part, process in workers:
            answer = _answer(process, part)
            sums.append(_copy(session, part) if answer is None else answer)
    digest = sum(digest for digest, _ in sums) % _MODULUS
    return Copied(files, digest, sum(oversized for _, oversized in sums))


def main() -> int:
    """Copy the part described by the argument, print its digest or the error, and return the exit code.

    Exits as soon as standard input is closed: then the parent process has ended.
    """
    part = _Part(**json.loads(sys.argv[1]))
    Thread(target=_exit_with_input, daemon=True).start()
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
    """Copy a part; return the sum of its rows' digests, and the number of oversized rows."""
    with Path(part.file).open("wb") as file, session.cursor() as cursor:
        rows = _Rows(file, settings.unpacking().line)
        cursor.copy_expert(part.statement, rows)
    return rows.total, rows.oversized


@contextmanager
def _copying(part: _Part) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that copies the part, and is ended after the block; it reads the password from the same place."""
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
    """Return the sum of the digests of the process's rows, and the number of oversized rows.

    None if it could not copy, which is logged.
    """
    answer = process.stdout.read() if process.stdout else b""
    result: dict[str, Any] = json.loads(answer or "{}")
    if "digest" in result:
        return int(result["digest"]), int(result["oversized"])
    reason = result.get("error", "its process ended early")
    _log.warning("%s: a part of the table is copied later, not beside the others: %s", part.place, reason)
    return None


def _exit_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)
