"""Deletes expired runs and breaks in small batches, so that nobody waits for the deletion."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tieout.store.connecting import Cursor
from tieout.store.sql import queries

RUNS_PER_BATCH: Final = 100
"""Deleting a run deletes its breaks, at most some thousands."""

BREAKS_PER_DELETE: Final = 5_000


def delete_expired(
    cursor: Cursor, superseded_before: datetime | None, breaks_before: datetime | None
) -> tuple[int, int]:
    """Delete old runs that are not current, and breaks of old windows.

    Returns how many runs and breaks were deleted; None keeps all of a kind. The current run of a window is never
    deleted: its window would look as if it had not been judged.
    """
    deleted = []
    for query, before, limit in (
        ("delete_superseded_runs", superseded_before, RUNS_PER_BATCH),
        ("delete_expired_breaks", breaks_before, BREAKS_PER_DELETE),
    ):
        if before is not None:
            cursor.execute(queries()[query], {"before": before, "limit": limit})
        deleted.append(0 if before is None else cursor.rowcount)
    return deleted[0], deleted[1]
