"""Finds groups of rows whose values do not rise with the offset, in one scan and without sorting all rows.

A task reads half a million rows at a time. For each group in them it reports spans: the first and last offset, their
values, and whether the values rise in between. Only these few spans are sorted, by all tasks together. Executors need
Python and pyarrow.
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
"""Rows that a task checks together: some 20 MB in its Python worker."""
ROWS_PER_SPAN: Final = 128
"""A span has at least this many rows on average."""
MAX_NAMED_GROUPS: Final = 1_000
"""Up to this many groups that may not rise are named; if there are more, all rows are in doubt."""

_SPAN: Final = (
    "number int, alike bigint, first bigint, last bigint, least bigint, greatest bigint, is_monotonic boolean"
)


@dataclass(frozen=True)
class Order:
    """An order to check: the whole number `value`, an expression, rises with the offset among rows equal in `alike`."""

    alike: tuple[str, ...]
    value: str

    def group(self) -> Column:
        """Return a row's group as a hash: two groups with the same hash can only look as if they did not rise."""
        return F.xxhash64(*self.alike)


def is_nonmonotonic(rows: DataFrame, orders: Sequence[Order]) -> Column | None:
    """Return whether a row is of a group whose values, as far as a scan shows, may not rise with the offset.

    None if there is no such group. Values rise if, of any two rows of a group, the one at the higher offset has no
    lower value. Rows without an offset or without a value have no place in an order.
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
    """Yield the spans of a task's rows, for each order and each `ROWS_PER_BATCH` rows.

    | number | alike | first | last | least | greatest | is_monotonic |
    |--------|-------|-------|------|-------|----------|--------------|
    | 0      | 81…   | 0     | 6553 | 17    | 13_122   | true         |

    `first` and `last` are offsets, `least` and `greatest` the values there.
    """
    for rows in _many_at_once(batches):
        offset, *columns = rows.columns
        for number, (alike, value) in enumerate(zip(columns[::2], columns[1::2], strict=True)):
            table = pa.table({"alike": alike, "offset": offset, "value": value}).drop_null()
            if len(table):
                yield _spans_of(number, table)


def _spans_of(number: int, rows: pa.Table) -> pa.RecordBatch:
    """Return the spans of one order, given at least one row."""
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
    """Return which steps from one offset to the next begin a new span: the longest ones, if they skip an offset.

    At most one step in `ROWS_PER_SPAN` does. A task reads its files in any order, and between the rows of two files may
    lie those of other tasks.
    """
    most = min(len(steps) - 1, len(steps) // ROWS_PER_SPAN)
    longest = pc.select_k_unstable(steps, most + 1, [("", "descending")])
    limit = steps.take(longest)[-1] if len(steps) else 0
    return pc.greater(steps, pc.max_element_wise(limit, 1))


def _many_at_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of the batches, about `ROWS_PER_BATCH` at a time."""
    buffered: list[pa.RecordBatch] = []
    for batch in batches:
        buffered.append(batch)
        if sum(map(len, buffered)) >= ROWS_PER_BATCH:
            yield pa.Table.from_batches(buffered)
            buffered = []
    if buffered:
        yield pa.Table.from_batches(buffered)
