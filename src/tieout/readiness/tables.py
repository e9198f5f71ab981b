"""Evidence in tables: does the server answer, and how far does the time reach that the coverage is the maximum of?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from psycopg2 import sql

from tieout.contracts import CoverageSpec, JdbcSource, LedgerSpec
from tieout.contracts.times import format_time
from tieout.errors import SourceUnreachableError, TieoutError
from tieout.warehouse import relation, snapshot

_MAXIMUM: Final = re.compile(r"\s*max\(\s*(?P<column>\w+)\s*\)\s*", re.IGNORECASE)
_NAME: Final = re.compile(r"\w+")
_STATEMENT_TIMEOUT: Final = "10s"


def table_lag(spec: LedgerSpec, coverage: CoverageSpec, place: str, needed: datetime) -> Iterator[str]:
    """Yield why the table cannot reach as far as needed.

    Its latest time is asked for where `complete_until` is `max(column)` of a column that the source has by that or
    another plain name. It is taken over all rows, so it is no earlier than what the engine will find.
    """
    if not isinstance(spec.source, JdbcSource):
        return
    try:
        latest = _latest(spec.source, _column(spec, coverage), place)
    except SourceUnreachableError as error:
        yield str(error)
        return
    except TieoutError:
        return
    if latest is not None and latest < needed:
        yield f"its latest row is of {format_time(latest)}, but {format_time(needed)} is needed"


def _column(spec: LedgerSpec, coverage: CoverageSpec) -> str | None:
    """Return the source's column that completeness is the maximum of, or None where it is not that simple."""
    found = _MAXIMUM.fullmatch(coverage.complete_until or "")
    if found is None:
        return None
    expression = spec.columns.get(found["column"], found["column"]).strip()
    return expression if _NAME.fullmatch(expression) else None


def _latest(source: JdbcSource, column: str | None, place: str) -> datetime | None:
    """Return the latest time in the column, None where there is no column, no row, or no time in it."""
    with snapshot(source, place) as session, session.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (_STATEMENT_TIMEOUT,))
        if column is None:
            return None
        name = sql.Identifier(column)
        cursor.execute(sql.SQL("SELECT max({}) FROM {} AS source").format(name, relation(source)))
        row = cursor.fetchone()
    found = row[0] if row else None
    if not isinstance(found, datetime):
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
