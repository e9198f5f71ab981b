"""Lists as CSV, streamed page by page, for spreadsheets and for programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from itertools import chain
from typing import Any, Final, TypeVar

from fastapi.responses import StreamingResponse

from tieout.store.paging import Key, Page

PIECE: Final = 2_000
"""Rows per read."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

_T = TypeVar("_T")


def csv_response(
    name: str, pieces: Callable[[Key | None], Page[_T]], row_of: Callable[[_T], Mapping[str, object]]
) -> StreamingResponse:
    """Return a whole list as a CSV file, streamed in pieces that are read one by one.

    Each piece is a snapshot of its own: a run that is published meanwhile may be in a later one.

    Args:
        name: The file's name, without its ending.
        pieces: Reads the piece after a key; the first one for None.
        row_of: Gives a row's columns.
    """
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    lines = _lines(pieces, row_of)
    # Read before the response starts: a list that cannot be read gives an error page, not a truncated file.
    first = next(lines)
    return StreamingResponse(chain([first], lines), media_type="text/csv; charset=utf-8", headers=headers)


def _lines(
    pieces: Callable[[Key | None], Page[_T]], row_of: Callable[[_T], Mapping[str, object]]
) -> Iterator[str]:
    after: Key | None = None
    is_first = True
    while is_first or after is not None:
        page = pieces(after)
        rows = [row_of(row) for row in page.rows]
        yield _written(
            [*([list(rows[0])] if is_first and rows else []), *(list(row.values()) for row in rows)]
        )
        after, is_first = page.next_key, False


def _written(rows: list[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([[cell(value) for value in row] for row in rows])
    return text.getvalue()


def cell(value: object) -> str:
    """Return a value as a cell: text that a spreadsheet would read as a formula gets a leading apostrophe.

    Source: OWASP, "CSV Injection".

    >>> cell("=1+1"), cell(-1), cell(None), cell(["a"])
    ("'=1+1", '-1', '', '["a"]')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return "'" + value if value.startswith(_FORMULA) else value
    return json.dumps(value, default=str) if isinstance(value, list | tuple | dict) else str(value)
