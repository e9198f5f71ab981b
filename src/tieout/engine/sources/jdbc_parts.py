"""Divides a large table into parts that are read in parallel, over separate connections.

Parts are ranges of `ctid`, a row's location (https://www.postgresql.org/docs/14/release-14.html has the plan "TID Range
Scan"): no index is needed, each block is read once, and the ranges together cover every row.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Final

from psycopg2 import sql
from psycopg2.extensions import connection as PgConnection

LARGE_ROWS: Final = 1_000_000
"""The number of rows from which more connections pay: copying them takes a second, starting a process a tenth."""
MOST_PARTS: Final = 4
"""A limit for the load on other people's servers."""
_FIRST_VERSION: Final = 140_000
_ALL: Final = (sql.SQL("true"),)
_BLOCKS: Final = """
    WITH RECURSIVE tables (id) AS (
        SELECT %(root)s::regclass::oid
        UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = id
    )
    SELECT max(pg_relation_size(id)) / current_setting('block_size')::bigint
    FROM tables JOIN pg_class ON pg_class.oid = id LEFT JOIN pg_am ON pg_am.oid = relam
    HAVING bool_and(relkind = 'p' OR relkind IN ('r', 'm') AND amname = 'heap')
        AND has_column_privilege(%(root)s::regclass, -1::smallint, 'SELECT')
        AND has_function_privilege('pg_export_snapshot()', 'EXECUTE')
"""
"""The blocks of a table, or of its largest partition; none for views and foreign tables, which have no `ctid`."""


def parts(
    session: PgConnection, table: sql.Composable | None, rows: sql.Composed
) -> tuple[sql.Composable, ...]:
    """Return conditions on `source` of which each row of a table satisfies exactly one.

    A single condition that is always true is returned if the planner expects few rows of `rows`, a SELECT, if there is
    no table, or if it has no blocks of its own: a view, a foreign table.

    Raises:
        psycopg2.Error: if the server cannot plan the SELECT.
    """
    part_count = min(os.cpu_count() or 1, MOST_PARTS)
    if table is None or part_count == 1 or session.server_version < _FIRST_VERSION:
        return _ALL
    if _expected_rows(session, rows) < LARGE_ROWS:
        return _ALL
    blocks = _blocks(session, table)
    return _ALL if blocks is None else _ranges(blocks, part_count)


def _expected_rows(session: PgConnection, rows: sql.Composed) -> int:
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(rows))
        (plans,) = cursor.fetchone() or ([],)
        return max((int(plan["Plan"]["Plan Rows"]) for plan in plans), default=0)


def _blocks(session: PgConnection, table: sql.Composable) -> int | None:
    with session.cursor() as cursor:
        cursor.execute(_BLOCKS, {"root": table.as_string(session)})
        row: tuple[int] | None = cursor.fetchone()
        return row[0] if row else None


def _ranges(blocks: int, count: int) -> tuple[sql.Composable, ...]:
    """Return ranges of equal numbers of blocks; the last is open, for new blocks and longer partitions."""
    boundaries = [sql.Literal(f"({blocks * number // count},0)") for number in range(1, count)]
    first = sql.SQL("source.ctid < {}::tid").format(boundaries[0])
    last = sql.SQL("source.ctid >= {}::tid").format(boundaries[-1])
    between = [
        sql.SQL("source.ctid >= {}::tid AND source.ctid < {}::tid").format(lower, upper)
        for lower, upper in pairwise(boundaries)
    ]
    return (first, *between, last)
