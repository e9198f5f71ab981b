"""A large table in parts that can be read at once, over connections of their own.

Where a row lies, its `ctid`, is asked for in ranges (https://www.postgresql.org/docs/14/release-14.html has the plan
"TID Range Scan"): no index is needed, each block is read once, and ranges that leave nothing out cover every row.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Final

from psycopg2 import sql
from psycopg2.extensions import connection as PgConnection

LARGE_ROWS: Final = 1_000_000
"""How many rows are worth more connections: copying so many over one takes a second, a process starts in a tenth."""
MOST_PARTS: Final = 4
"""Other people's servers have more to do than to be read."""
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
"""The blocks of a table, or of its largest partition; nothing where one has no places, as views and foreign tables."""


def parts(
    session: PgConnection, table: sql.Composable | None, rows: sql.Composed
) -> tuple[sql.Composable, ...]:
    """Return conditions on `source` of which each row of a table meets exactly one.

    It is one that all rows meet, where the planner does not expect `rows`, a SELECT, to yield very many, where there is
    no table, or where it is not stored in blocks of its own: a view, a foreign table.

    Raises:
        psycopg2.Error: where the server cannot plan the SELECT.
    """
    wanted = min(os.cpu_count() or 1, MOST_PARTS)
    if table is None or wanted == 1 or session.server_version < _FIRST_VERSION:
        return _ALL
    if _expected_rows(session, rows) < LARGE_ROWS:
        return _ALL
    blocks = _blocks(session, table)
    return _ALL if blocks is None else _ranges(blocks, wanted)


def _expected_rows(session: PgConnection, rows: sql.Composed) -> int:
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(rows))
        (plans,) = cursor.fetchone() or ([],)
        return max((int(plan["Plan"]["Plan Rows"]) for plan in plans), default=0)


def _blocks(session: PgConnection, table: sql.Composable) -> int | None:
    with session.cursor() as cursor:
        cursor.execute(_BLOCKS, {"root": table.as_string(session)})
        found: tuple[int] | None = cursor.fetchone()
        return found[0] if found else None


def _ranges(blocks: int, count: int) -> tuple[sql.Composable, ...]:
    """Return ranges of as many blocks each; the last has what was added meanwhile, and longer partitions, as well."""
    bounds = [sql.Literal(f"({blocks * number // count},0)") for number in range(1, count)]
    first = sql.SQL("source.ctid < {}::tid").format(bounds[0])
    last = sql.SQL("source.ctid >= {}::tid").format(bounds[-1])
    between = [
        sql.SQL("source.ctid >= {}::tid AND source.ctid < {}::tid").format(lower, upper)
        for lower, upper in pairwise(bounds)
    ]
    return (first, *between, last)
