"""Orders that a scan shows: of rows that rise with their offset, none has to be sorted to know it.

A task reads some hundred thousand rows at a time and tells of each group in them how far it reaches, and whether it
rises; what is sorted by all tasks together are these few. Needs Python and pyarrow beside the executors.
Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

ROWS_PER_BATCH: Final = 1 << 19
"""So many rows are looked at together: some 20 MB beside each task."""
ROWS_PER_SPAN: Final = 128
"""A span has so many rows on average, or more."""
MAX_NAMED_GROUPS: Final = 1_000
"""Up to so many groups that may not rise are named; where there are more, all rows are in doubt."""

_SPAN: Final = (
    "number int, alike bigint, first bigint, last bigint, least bigint, greatest bigint, is_monotonic boolean"
)


@dataclass(frozen=True)
class Order:
    """What may rise with the offset: the expression `value`, a whole number, among rows that are alike in columns."""

    alike: tuple[str, ...]
    value: str

    def group(self) -> Column:
        """Return a row's group as a hash: two groups of one hash can but look as if they did not rise."""
        return F.xxhash64(*self.alike)


def is_nonmonotonic(rows: DataFrame, orders: Sequence[Order]) -> Column | None:
    """Return whether a scan does not show that the values of a row's group rise with the offset.

    None if there is no such group: of any two rows of one group, the one at the higher offset has no lower value.
    Rows without an offset or without a value have no place in an order.
    """
    columns = [F.col("offset")]
    for number, order in enumerate(orders):
        columns += [
            order.group().alias(f"alike_{number}"),
            F.expr(f"bigint({order.value})").alias(f"value_{number}"),
        ]
    spans = rows.filter("offset IS NOT NULL").select(*columns).mapInArrow(_spans, _SPAN)
    upwards = Window.partitionBy("number", "alike").orderBy("first")
    is_above = (F.lag("last").over(upwards) < F.col("first")) & (
        F.lag("greatest").over(upwards) <= F.col("least")
    )
    groups = (
        spans.withColumn("is_above", F.coalesce(is_above, F.row_number().over(upwards) == 1))
        .filter("NOT (is_monotonic AND is_above)")
        .select("number", "alike")
        .distinct()
        .limit(MAX_NAMED_GROUPS + 1)
        .collect()
    )
    if not groups:
        return None
    if len(groups) > MAX_NAMED_GROUPS:
        return F.lit(True)
    of_orders = [
        order.group().isin([row["alike"] for row in groups if row["number"] == number])
        for number, order in enumerate(orders)
    ]
    return reduce(Column.__or__, of_orders)


def _spans(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the spans of a task's rows: of each order, from how many rows at once, one a group.

    | number | alike | first | last | least | greatest | is_monotonic |
    |--------|-------|-------|------|-------|----------|-----------|
    | 0      | 81…   | 0     | 6553 | 17    | 13_122   | true      |

    `first` and `last` are offsets, `least` and `greatest` the values in between.
    """
    for rows in _many_at_once(batches):
        offset, *columns = rows.columns
        for number, (alike, value) in enumerate(zip(columns[::2], columns[1::2], strict=True)):
            table = pa.table({"alike": alike, "offset": offset, "value": value}).drop_null()
            if len(table):
                yield _spans_of(number, table)


def _spans_of(number: int, rows: pa.Table) -> pa.RecordBatch:
    """Return the spans of one order, given some rows at least."""
    in_order = rows.sort_by([("alike", "ascending"), ("offset", "ascending")])
    alike, offset, value = (in_order[name].combine_chunks() for name in ("alike", "offset", "value"))
    is_same = pc.equal(alike[1:], alike[:-1])
    falls = pc.and_(is_same, pc.less(value[1:], value[:-1]))
    is_cut = pc.or_(pc.invert(is_same), _jumps(pc.if_else(is_same, pc.subtract(offset[1:], offset[:-1]), 0)))
    starts = pa.concat_arrays([pa.array([0]), pc.add(pc.indices_nonzero(is_cut).cast(pa.int64()), 1)])
    ends = pa.concat_arrays([pc.subtract(starts[1:], 1), pa.array([len(rows) - 1])])
    fallen = pa.concat_arrays([pa.array([0]), pc.cumulative_sum(falls.cast(pa.int64()))])
    spans = {
        "number": pa.array([number] * len(starts), pa.int32()),
        "alike": alike.take(starts),
        "first": offset.take(starts),
        "last": offset.take(ends),
        "least": value.take(starts),
        "greatest": value.take(ends),
        "is_monotonic": pc.equal(fallen.take(starts), fallen.take(ends)),
    }
    return pa.RecordBatch.from_pydict(spans)


def _jumps(steps: pa.Array) -> pa.Array:
    """Return which steps from one offset to the next begin a span: the longest, if they leave any offset out.

    They are at most one in `ROWS_PER_SPAN`. A task reads its files in any order, and between the rows of two files lie
    those of other tasks.
    """
    most = min(len(steps) - 1, len(steps) // ROWS_PER_SPAN)
    longest = pc.select_k_unstable(steps, most + 1, [("", "descending")])
    limit = steps.take(longest)[-1] if len(steps) else 0
    return pc.greater(steps, pc.max_element_wise(limit, 1))


def _many_at_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of the batches, some `ROWS_PER_BATCH` at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= ROWS_PER_BATCH:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
