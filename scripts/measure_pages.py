"""Measures each page with a year of hourly windows of several pipelines and a run of a million breaks.

`python -m scripts.measure_pages` fills a PostgreSQL of its own by SQL, asks for each page three times, prints the
median and the size, and removes everything. The numbers in docs/how-to/read-the-pages.md come from it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import uvicorn
from fastapi.testclient import TestClient

from tieout.store import Store
from tieout.testing.postgres import running_postgres
from tieout.web import create_app

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MILLION = "00000000-0000-0000-0000-0000000f4240"
WINDOW = "2026-11-20T23:00:00Z/2026-11-21T00:00:00Z"
TRIES = 3
SCRATCH = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "8GB", "maintenance_work_mem": "256MB"}

PAGES = {
    "health, a week": "/",
    "health, a year": "/?period=year",
    "pipeline, a week": "/pipelines/pipeline_01",
    "pipeline, a year": "/pipelines/pipeline_01?period=year",
    "windows": "/pipelines/pipeline_01/windows",
    "windows, BROKEN, oldest": "/pipelines/pipeline_01/windows?verdict=BROKEN&sort=oldest",
    "window": f"/pipelines/pipeline_01/windows/{WINDOW}",
    "window of a million breaks": f"/runs/{MILLION}",
    "incidents, oldest": "/pipelines/pipeline_00/incidents",
    "incidents, largest": "/pipelines/pipeline_00/incidents?sort=largest",
    "incidents of one class": "/pipelines/pipeline_00/incidents?class=OUTPUT_DUPLICATE",
    "incident": f"/runs/{MILLION}/incident?id=incident-777",
    "breaks by position": f"/runs/{MILLION}/breaks",
    "breaks by class": f"/runs/{MILLION}/breaks?sort=class",
    "breaks, half way": f'/runs/{MILLION}/breaks?after=["payments",5,500000,""]',
    "breaks of one message": f"/runs/{MILLION}/breaks?message=message-654321",
    "a million breaks as CSV": f"/runs/{MILLION}/breaks.csv",
}

FILL = Path(__file__).with_suffix(".sql")


class Everyone:
    """Lets everyone do everything: what is measured is pages, not permissions."""

    @property
    def identify(self) -> Callable[..., Any]:
        """Gives the one user."""
        return lambda: "somebody"

    def readable(self, _user: Any, pipelines: Collection[str]) -> frozenset[str]:
        """All of them."""
        return frozenset(pipelines)

    def may_write(self, _user: Any, _pipeline: str) -> bool:
        """Yes."""
        return True

    def name(self, _user: Any) -> str:
        """Whoever."""
        return "somebody"

    def scheduled(self, _user: Any) -> frozenset[str]:
        """None that was never judged."""
        return frozenset()


def main() -> int:
    """Fill, measure and print; with `--serve`, answer browsers until interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipelines", type=int, default=10)
    parser.add_argument("--windows", type=int, default=8760)
    parser.add_argument("--breaks", type=int, default=1_000_000, help="of one run; 20,000 or more")
    parser.add_argument("--serve", type=int, metavar="PORT", help="keep serving on this port of 127.0.0.1")
    given = parser.parse_args()
    with filled(given.pipelines, given.windows, given.breaks) as url:
        app = create_app(lambda: url, Everyone(), clock=lambda: NOW)
        if given.serve:
            uvicorn.run(app, host="127.0.0.1", port=given.serve, log_level="warning")
            return 0
        client = TestClient(app)
        for name, address in PAGES.items():
            seconds, size = _measured(client, address)
            print(f"{name:28} {seconds * 1000:8.0f} ms {size / 1000:10,.0f} kB", flush=True)
    return 0


@contextmanager
def filled(pipelines: int, windows: int, breaks: int) -> Iterator[str]:
    """Give the URL of a PostgreSQL that holds so many windows, and a run of so many breaks."""
    with tempfile.TemporaryDirectory(prefix="tieout-pages-") as folder:
        Path(folder).chmod(0o755)
        with running_postgres(Path(folder) / "data", SCRATCH) as url:
            Store(url).migrate()
            began = time.monotonic()
            with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                cursor.execute(
                    "SET session_replication_role = replica; "
                    + FILL.read_text().format(
                        now=NOW.isoformat(),
                        million=MILLION,
                        pipelines=pipelines,
                        windows=windows,
                        breaks=breaks,
                    )
                )
                cursor.execute("VACUUM ANALYZE")
            print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
            yield url


def _measured(client: TestClient, address: str) -> tuple[float, int]:
    """Return the median of a page's seconds, and its bytes.

    Raises:
        RuntimeError: where it does not come.
    """
    taken = []
    for _ in range(TRIES):
        began = time.perf_counter()
        answer = client.get(address)
        taken.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise RuntimeError(f"{address}: expected status 200, found {answer.status_code}")
    return statistics.median(taken), len(answer.content)


if __name__ == "__main__":
    sys.exit(main())
