"""Windows that are ranges of offsets: which messages they have, and whether the log shows them whole.

A message belongs to the range that its position lies in, with all its attempts and effects; what has no position
belongs by its time. Docs: docs/reference/taxonomy.md, section 2, and docs/reference/interpretations.md, 78 to 80.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.records import bounds_of
from tieout.engine.scope import Scope
from tieout.model import Ledger, Window

_COUNTED: Final = {
    "attempts_in": "attempts",
    "acked_in": "acked",
    "failed_in": "failed",
    "unknown_in": "unknown",
    "effect_rows_in": "effect_rows",
    "first_rows_in": "first_rows",
}
"""Counts of a message's rows in the window, and in all."""


def with_range_counts(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the placed messages with `is_in_ranges`, null without a position, and the window's counts by it.

    The position is the message's first, else its effects' lowest. All rows of such a message count where it does.
    """
    if not scope.window.offsets:
        return messages
    seen = F.array_min("effect_positions")
    is_inside = F.when(
        F.col("first_offset").isNotNull(),
        scope.in_ranges(F.col("topic"), F.col("partition"), F.col("first_offset")),
    ).when(seen.isNotNull(), scope.in_ranges(seen["topic"], seen["partition"], seen["offset"]))
    known = messages.withColumn("is_in_ranges", is_inside)
    is_placed, is_here = F.col("is_in_ranges").isNotNull(), F.col("is_in_ranges")
    counts = {
        name: F.when(is_placed, F.when(is_here, F.col(total)).otherwise(0)).otherwise(F.col(name))
        for name, total in _COUNTED.items()
        if name in messages.columns
    }
    is_owned = F.when(is_placed, is_here & (F.col("attempts") > 0)).otherwise(F.col("is_owned"))
    return known.withColumns(counts | {"is_owned": is_owned})


def with_range_coverage(scope: Scope) -> Scope:
    """Return the scope with what the log lacks of the window's ranges in its coverage; mostly the scope itself."""
    if not scope.window.offsets or Ledger.LOG not in scope.evidence:
        return scope
    bounds = _of_ranges(scope, bounds_of(scope)).select(*PLACE, "log_start", "log_end").collect()
    return scope.with_lacking(Ledger.LOG, lacking_of_ranges(scope.window, bounds))


def lacking_of_ranges(window: Window, rows: Iterable[Any]) -> list[str]:
    """Return in words what the log lacks of the window's ranges, given the bounds of the partitions that it shows.

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


def ranges_frame(scope: Scope, like: DataFrame) -> DataFrame:
    """Return the window's ranges as rows of `topic`, `partition`, `from` and `to`."""
    return like.sparkSession.range(1).select(F.inline(scope.ranges()))


def _of_ranges(scope: Scope, bounds: DataFrame) -> DataFrame:
    """Return the bounds of the partitions that the window names."""
    named = ranges_frame(scope, bounds).select(*[F.col(name).alias(f"n_{name}") for name in PLACE]).distinct()
    return bounds.join(F.broadcast(named), same(PLACE, "n_"), how="left_semi")
