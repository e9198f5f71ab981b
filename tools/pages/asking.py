"""The measured pages, their user, and the database's work for each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

import psycopg2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tieout.store.connecting import Cursor
from tieout.store.reader import Reader
from tieout.web import create_app
from tools.pages.filling import FIRST, MILLION, NOW

TRIES = 3
_HOURS = "2026-11-20T23:00:00Z/2026-11-21T00:00:00Z"
_PIPELINE = "/pipelines/pipeline_00"

PAGES = {
    "health, a week": "/",
    "health, a year": "/?period=year",
    "pipeline, a week": _PIPELINE,
    "pipeline, a year": f"{_PIPELINE}?period=year",
    "windows": f"{_PIPELINE}/windows",
    "windows, BROKEN, oldest": f"{_PIPELINE}/windows?verdict=BROKEN&sort=oldest",
    "window": f"{_PIPELINE}/windows/{_HOURS}",
    "window of the large run": f"/runs/{MILLION}",
    "incidents, oldest": f"{_PIPELINE}/incidents",
    "incidents, largest": f"{_PIPELINE}/incidents?sort=largest",
    "incidents of one class": f"{_PIPELINE}/incidents?class=OUTPUT_DUPLICATE",
    "incident": f"/runs/{MILLION}/incident?id=incident-777",
    "breaks by position": f"/runs/{MILLION}/breaks",
    "breaks by class": f"/runs/{MILLION}/breaks?sort=class",
    "breaks, half way": f'/runs/{MILLION}/breaks?after=["payments",5,{FIRST + 10_000},""]',
    "breaks of one message": f"/runs/{MILLION}/breaks?message=message-14321",
    "trace of an id": f"{_PIPELINE}/trace?value=message-14321",
    "trace of a key": f"{_PIPELINE}/trace?by=key&value=key-321",
    "trace of a position": f"{_PIPELINE}/trace?by=position&value=payments/0/{FIRST + 14_400}",
    "trace of what is not there": f"{_PIPELINE}/trace?value=nothing",
}
"""Pages by name; the large run has every message and position used here."""

_TABLES = {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan"}


class Everyone:
    """Permits everything: pages are measured, not permissions."""

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


def application(url: str) -> FastAPI:
    """Return the web application of a store, at the time for which it was filled."""
    return create_app(lambda: url, Everyone(), clock=lambda: NOW)


@dataclass(frozen=True)
class Work:
    """The database's work for one page: rows scanned, full table scans, the time of its statements."""

    rows: int
    whole_tables: tuple[str, ...]
    milliseconds: float


def timed(client: TestClient, address: str) -> tuple[float, int]:
    """Return a page's median seconds, and its bytes.

    Raises:
        RuntimeError: if its status is not 200.
    """
    taken = []
    for _ in range(TRIES):
        began = time.perf_counter()
        answer = client.get(address)
        taken.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise RuntimeError(f"{address}: expected status 200, found {answer.status_code}")
    return statistics.median(taken), len(answer.content)


def work_of(client: TestClient, url: str, address: str) -> Work:
    """Return the database's work for a page: its statements are recorded, then explained with their values."""
    with _noted() as statements:
        client.get(address)
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        plans = []
        for statement in statements:
            cursor.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + statement)
            plans += [row for plan in cursor.fetchall() for row in plan[0]]
    nodes = [node for plan in plans for node in _nodes(plan["Plan"])]
    return Work(
        sum(_looked_at(node) for node in nodes),
        tuple(sorted({node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"})),
        sum(plan["Execution Time"] for plan in plans),
    )


@contextmanager
def _noted() -> Iterator[list[bytes]]:
    """Record the statements of the store's readers."""
    statements: list[bytes] = []

    class Noting:
        """A cursor that remembers each statement with its values."""

        def __init__(self, cursor: Any) -> None:
            self._cursor = cursor

        def execute(self, sql: str, values: Mapping[str, Any]) -> None:
            statements.append(self._cursor.mogrify(sql, values))
            self._cursor.execute(sql, values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._cursor, name)

    def noting_reader(cursor: Any) -> Reader:
        return Reader(cast("Cursor", Noting(cursor)))

    with patch("tieout.store.store.Reader", noting_reader):
        yield statements


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def _looked_at(node: Mapping[str, Any]) -> int:
    """Return the rows that a node read from a table or an index, including those that a filter removed."""
    if node["Node Type"] not in _TABLES:
        return 0
    dropped = sum(node.get(name, 0) for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck"))
    return round(float(node["Actual Rows"] + dropped) * int(node["Actual Loops"]))
