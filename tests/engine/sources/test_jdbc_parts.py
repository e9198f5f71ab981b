"""A large table over several connections: what they copy is together what one would have, whatever happens to them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import psycopg2
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, schema_of_its_own

from tieout.contracts import JdbcSource
from tieout.engine.sources import jdbc, jdbc_parts
from tieout.engine.sources.source import Reading, Request
from tieout.errors import SourceError
from tieout.model import Ledger
from tieout.warehouse import copied, snapshot

_PARTITIONED = """
    CREATE TABLE parts.orders (id bigint, n bigint) PARTITION BY RANGE (id);
    CREATE TABLE parts.first PARTITION OF parts.orders FOR VALUES FROM (0) TO (1000);
    CREATE TABLE parts.second PARTITION OF parts.orders FOR VALUES FROM (1000) TO (90000);
    CREATE TABLE parts.empty PARTITION OF parts.orders DEFAULT
"""
_INHERITED = """
    CREATE TABLE parts.orders (id bigint, n bigint);
    CREATE TABLE parts.other () INHERITS (parts.orders);
    INSERT INTO parts.other SELECT n, 0 FROM generate_series(50001, 60000) AS n
"""
_PLAIN = "CREATE TABLE parts.orders (id bigint, n bigint)"
_VIEWED = """
    CREATE TABLE parts.stored (id bigint, n bigint);
    CREATE VIEW parts.orders AS SELECT * FROM parts.stored
"""
Execute = Callable[[str], None]
ReadAs = Callable[..., None]


@pytest.fixture
def execute(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Execute]:
    """Runs statements in a schema of its own, on a machine with four cores."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", postgres_url)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with schema_of_its_own(postgres_url, "parts") as run:
        yield run


@pytest.fixture
def read_as(execute: Execute, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReadAs]:
    """Has the table read by a role of its own, with what it is granted and limited to."""

    def act(granted: str, limit: str = "") -> None:
        execute(
            f"DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 's3cret' {limit};"
            f"GRANT USAGE ON SCHEMA parts TO reader; GRANT {granted} ON parts.orders TO reader"
        )
        server = urlsplit(postgres_url)
        url = f"postgresql://reader:s3cret@{server.hostname}:{server.port}{server.path}"
        monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", url)

    yield act
    execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a thousand rows be worth several connections."""
    monkeypatch.setattr(jdbc_parts, "LARGE_ROWS", 1000)


def _fill(execute: Execute, rows: int, table: str = "orders") -> None:
    execute(f"INSERT INTO parts.{table} SELECT n, 0 FROM generate_series(1, {rows}) AS n")  # noqa: S608 - our own


def _read(spark: SparkSession, folder: Path) -> Reading:
    source = JdbcSource(connection="warehouse", table="parts.orders")
    return jdbc.read(source, Request(spark, Ledger.DELIVERED, folder, NOW))


def _parts(reading: Reading) -> int:
    assert reading.rows is not None
    return len(reading.rows.inputFiles())


def _counts(reading: Reading) -> tuple[int, int]:
    assert reading.rows is not None
    return reading.rows.count(), reading.rows.select("id").distinct().count()


@contextmanager
def _meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Act again and again, beside the block, and at least once before it."""
    begun, ended = Event(), Event()

    def run() -> None:
        while not ended.is_set():
            act()
            begun.set()

    thread = Thread(target=run)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _copying_processes() -> Iterator[int]:
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = found.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"tieout.warehouse" in words:
            yield int(found.parent.name)


def test_all_connections_see_one_snapshot(
    spark: SparkSession, tmp_path: Path, execute: Execute, postgres_url: str
) -> None:
    """Rows that move from the first part of a large table to its last while it is read are there once."""
    execute(_PLAIN)
    _fill(execute, 1_200_000)
    writer, blocks = psycopg2.connect(postgres_url), count()

    def move() -> None:
        with writer, writer.cursor() as cursor:
            cursor.execute(f"UPDATE parts.orders SET n = n + 1 WHERE ctid = '({next(blocks)},1)'")  # noqa: S608 - our own

    with _meanwhile(move):
        found = _read(spark, tmp_path)
    writer.close()

    assert (_parts(found), _counts(found)) == (4, (1_200_000, 1_200_000))


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize(("tables", "rows"), [(_PLAIN, 50_000), (_PARTITIONED, 50_000), (_INHERITED, 60_000)])
def test_parts_are_together_what_one_connection_reads(
    spark: SparkSession,
    tmp_path: Path,
    execute: Execute,
    monkeypatch: pytest.MonkeyPatch,
    tables: str,
    rows: int,
) -> None:
    """Partitions and tables that inherit are cut as well; the digest does not tell how many connections there were."""
    execute(tables)
    _fill(execute, 50_000)

    found = _read(spark, tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    whole = _read(spark, tmp_path)

    assert (_parts(found), _counts(found)) == (4, (rows, rows))
    assert (_parts(whole), _counts(whole)) == (1, (rows, rows))
    assert (found.digests, found.size) == (whole.digests, whole.size)


@pytest.mark.usefixtures("small_is_large")
def test_what_has_no_places_is_read_over_one_connection(
    spark: SparkSession, tmp_path: Path, execute: Execute, read_as: ReadAs
) -> None:
    """A view, and a table of whose columns the role may read some, are read as before."""
    execute(_VIEWED)
    _fill(execute, 5000, "stored")
    viewed = _read(spark, tmp_path)
    execute("DROP VIEW parts.orders; ALTER TABLE parts.stored RENAME TO orders")
    read_as("SELECT (id, n)")
    granted = _read(spark, tmp_path)

    for found in (viewed, granted):
        assert (_parts(found), _counts(found)) == (1, (5000, 5000))


@pytest.mark.usefixtures("small_is_large")
def test_one_connection_does_what_the_others_cannot(
    spark: SparkSession,
    tmp_path: Path,
    execute: Execute,
    postgres_url: str,
    read_as: ReadAs,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A role that may have one connection only costs time, and a line in the log that says why."""
    execute(_PLAIN)
    _fill(execute, 50_000)
    read_as("SELECT", "CONNECTION LIMIT 1")

    found = _read(spark, tmp_path)

    assert (_parts(found), _counts(found)) == (4, (50_000, 50_000))
    assert [record.getMessage() for record in caplog.records] == 3 * [
        "ledgers.delivered.source: a part of the table is copied later, not beside the others: "
        "ledgers.delivered.source.connection: warehouse: connection to server at "
        f'"127.0.0.1", port {urlsplit(postgres_url).port} failed: FATAL:  too many connections for role "reader"'
    ]


def test_killed_processes_cost_time_only(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """What a killed process had copied so far is not taken for its part."""
    execute(_PLAIN)
    _fill(execute, 1_200_000)
    killed = []

    def kill() -> None:
        for process in _copying_processes():
            time.sleep(0.2)
            os.kill(process, signal.SIGKILL)
            killed.append(process)
        time.sleep(0.01)

    with _meanwhile(kill):
        found = _read(spark, tmp_path)

    assert killed
    assert (_parts(found), _counts(found)) == (4, (1_200_000, 1_200_000))


def test_other_processes_end_where_reading_fails(tmp_path: Path, execute: Execute) -> None:
    """An error in one part does not wait for the others, and leaves none of them behind."""
    source = JdbcSource(connection="warehouse", query="SELECT 1")
    statements = [
        "COPY (SELECT 1 / (SELECT 0 FROM pg_sleep(2))) TO STDOUT",
        "COPY (SELECT pg_sleep(100)) TO STDOUT",
    ]
    begun_at = time.monotonic()

    with pytest.raises(SourceError, match="division by zero"), snapshot(source, "source") as session:
        copied(session, statements, tmp_path, "warehouse", "source")

    assert time.monotonic() - begun_at < 20
    assert list(_copying_processes()) == []
