"""A store of a year of hourly windows and one run of very many breaks, in a PostgreSQL of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg2

from tieout.store import Store
from tieout.testing.postgres import running_postgres

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MILLION = "00000000-0000-0000-0000-0000000f4240"
FIRST = 8_761_000
"""The first offset that the large run judges, in every partition."""
LEAST_BREAKS = 24_000
SCRATCH = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "8GB", "maintenance_work_mem": "256MB"}
FILL = Path(__file__).with_suffix(".sql")
_INDEXES = """
    SELECT indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'tieout' AND tablename = 'break' AND indexname NOT LIKE '%pkey'
"""


@dataclass(frozen=True)
class Size:
    """The amount of data: pipelines, windows of each, and breaks of the one large run."""

    pipelines: int
    windows: int
    breaks: int


@contextmanager
def filled(size: Size) -> Iterator[str]:
    """Yield the URL of a PostgreSQL filled with that amount."""
    with tempfile.TemporaryDirectory(prefix="tieout-pages-") as folder:
        Path(folder).chmod(0o755)
        with running_postgres(Path(folder) / "data", SCRATCH) as url:
            Store(url).migrate()
            fill(url, size)
            yield url


def fill(url: str, size: Size) -> None:
    """Write everything into an empty store, and analyse its tables."""
    sql = FILL.read_text().format(
        now=NOW.isoformat(),
        million=MILLION,
        first=FIRST,
        pipelines=size.pipelines,
        windows=size.windows,
        breaks=size.breaks,
    )
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(_INDEXES)
        indexes = dict(cursor.fetchall())
        # A million rows are indexed at once several times faster than one by one.
        for name in indexes:
            cursor.execute(f"DROP INDEX tieout.{name}")
        cursor.execute("SET session_replication_role = replica; " + sql)
        for definition in indexes.values():
            cursor.execute(definition)
        cursor.execute("VACUUM ANALYZE")
