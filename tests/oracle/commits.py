"""What one row of `committed` covers: from where it says that it begins, else from the beginning (section 8, 7)."""

from __future__ import annotations

from tests.oracle.history import Position, Row


def is_range(row: Row) -> bool:
    """Return whether the commit says where it begins."""
    return row.get("first_offset") is not None


def covers(row: Row, at: Position, end: int | None = None) -> bool:
    """Return whether the commit covers the position; `end` is where it ends, if that is not what it says itself."""
    end = row.get("committed_offset") if end is None else end
    if (row.get("topic"), row.get("partition")) != at[:2] or end is None:
        return False
    return not (is_range(row) and at[2] < row["first_offset"]) and at[2] < end


def is_individual(row: Row) -> bool:
    """Return whether the commit is an acknowledgement of its own, which says nothing of what lies below it."""
    return bool(row.get("is_individual"))
