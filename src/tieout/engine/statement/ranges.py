"""Windows that are ranges of offsets: whether the log covers them.

Docs: docs/reference/taxonomy.md, section 2, and docs/reference/interpretations.md, 78 to 80.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tieout.model import Window


def lacking_of_ranges(window: Window, rows: Iterable[Any]) -> list[str]:
    """Return sentences about what the log lacks of the window's ranges, given the bounds of its partitions.

    Rows have `topic`, `partition`, `log_start` and `log_end`.
    """
    bounds = {(row["topic"], row["partition"]): (row["log_start"], row["log_end"]) for row in rows}
    lacking = []
    for one in sorted(window.offsets):
        start, end = bounds.get((one.topic, one.partition), (None, None))
        if start is None or end is None:
            lacking.append(f"{one}: the log shows nothing of this partition")
        elif not start <= one.start <= one.end <= end:
            lacking.append(f"{one}: the log shows the offsets {start}-{end} of this partition")
    return lacking
