"""Deleting what is kept no longer, so little at a time that nobody waits for it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tieout.store.connecting import Cursor
from tieout.store.sql import queries

RUNS_AT_ONCE: Final = 100
"""A run brings its breaks along, at most some thousands."""

BREAKS_AT_ONCE: Final = 5_000


def delete_expired(
    cursor: Cursor, superseded_before: datetime | None, breaks_before: datetime | None
) -> tuple[int, int]:
    """Delete runs that do not count and were published earlier, and breaks of windows that ended earlier.

    Returns how many runs and breaks were deleted; None keeps all of a kind. The current run of a window is never
    deleted, so that no window becomes one that was not judged.
    """
    deleted = []
    for query, before, limit in (
        ("delete_superseded_runs", superseded_before, RUNS_AT_ONCE),
        ("delete_expired_breaks", breaks_before, BREAKS_AT_ONCE),
    ):
        if before is not None:
            cursor.execute(queries()[query], {"before": before, "limit": limit})
        deleted.append(0 if before is None else cursor.rowcount)
    return deleted[0], deleted[1]
