"""What a scan shows to be in order is in order, and where rows lie in order it shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.prematch import nonmonotonic
from tieout.engine.prematch.nonmonotonic import Order, is_nonmonotonic

Row = tuple[str, int | None, int | None]
SCHEMA = "name string, offset long, value long"
ORDER = Order(("name",), "value")


def _in_doubt(rows: DataFrame, orders: Sequence[Order]) -> DataFrame:
    condition = is_nonmonotonic(rows, orders)
    return rows.limit(0) if condition is None else rows.filter(condition)


def _doubted(rows: DataFrame, *orders: Order) -> set[str]:
    return {row["name"] for row in _in_doubt(rows, orders or (ORDER,)).collect()}


def _rises(rows: list[Row]) -> bool:
    placed = [(offset, value) for _, offset, value in rows if offset is not None and value is not None]
    return all(lower[1] <= upper[1] for lower in placed for upper in placed if lower[0] < upper[0])


def test_every_group_that_does_not_rise_is_in_doubt(spark: SparkSession) -> None:
    """Groups of few rows in any order over several tasks, with nulls, equal offsets and equal values."""
    rng = Random(5)  # noqa: S311 - repeatable, not secret
    groups = {
        f"g{number}": [
            (f"g{number}", rng.choice([None, *range(6)]), rng.choice([None, *range(rng.choice((1, 2, 6)))]))
            for _ in range(rng.randrange(1, 6))
        ]
        for number in range(600)
    }
    every = [row for rows in groups.values() for row in rows]
    rng.shuffle(every)
    rows = spark.createDataFrame(every, SCHEMA).repartition(4)

    doubted = _doubted(rows)

    falling = {name for name, rows in groups.items() if not _rises(rows)}
    assert falling <= doubted
    assert 50 < len(falling) < 550
    alone = {name for name, rows in groups.items() if len(rows) == 1}
    assert alone & doubted == set()
    assert _in_doubt(rows, [ORDER]).filter(F.col("name").isin(*doubted)).count() == len(
        [row for row in every if row[0] in doubted]
    )


def test_rows_that_lie_in_order_are_in_no_doubt(spark: SparkSession) -> None:
    """However the rows of groups are cut into tasks; two values that changed places are their group's doubt.

    They do so where one part ends and the next begins, and within a part.
    """
    rows = [(name, offset, 7 * offset) for offset in range(2_000) for name in "abcd"]
    for name, offset in (("c", 499), ("d", 600)):
        lower, upper = (rows.index((name, at, 7 * at)) for at in (offset, offset + 1))
        rows[lower], rows[upper] = (name, offset, 7 * (offset + 1)), (name, offset + 1, 7 * offset)
    parts = [
        spark.createDataFrame(rows[start : start + 1_000], SCHEMA).coalesce(1)
        for start in range(0, 8_000, 1_000)
    ]
    first, *others = [parts[place] for place in (3, 0, 7, 1, 2, 6, 5, 4)]
    for part in others:
        first = first.unionByName(part)

    for tasks in (8, 2):
        assert _doubted(first.coalesce(tasks)) == {"c", "d"}
    assert _in_doubt(first.filter("name < 'c'"), [ORDER]).isEmpty()


def test_each_order_is_looked_at(spark: SparkSession) -> None:
    """A group may rise in one value and not in another, or among some rows and not among others."""
    rows = spark.createDataFrame(
        [("a", 0, 1, 5), ("a", 1, 2, 4), ("b", 0, 1, 1), ("b", 1, 0, 1), ("c", 0, 1, 1), ("c", 1, 1, 2)],
        f"{SCHEMA}, other long",
    )
    other = Order(("name", "value"), "other")

    assert _doubted(rows, ORDER, Order(("name",), "other")) == {"a", "b"}
    assert _doubted(rows, other) == set()
    assert _doubted(rows.filter("name = 'c'"), ORDER, other) == set()
    assert _doubted(rows.limit(0)) == set()


def test_many_groups_in_doubt_are_not_distinguished(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all rows are in doubt."""
    rows = spark.createDataFrame(
        [(name, offset, -offset) for name in "abc" for offset in (0, 1)] + [("d", 0, 0)], SCHEMA
    )
    for most, doubted in ((3, {*"abc"}), (2, {*"abcd"})):
        monkeypatch.setattr(nonmonotonic, "MAX_NAMED_GROUPS", most)
        assert _doubted(rows) == doubted


def test_spans_hold_what_lies_in_them() -> None:
    """Files in any order are told apart where offsets jump; of all spans one does not rise."""
    rng = Random(1)  # noqa: S311 - repeatable, not secret
    files = [range(700), range(2_000, 2_100), range(700, 1_500), range(5_000, 5_003), range(1_500, 2_000)]
    rows = [(offset, rng.randrange(3), offset // 5 + (offset == 1_000)) for file in files for offset in file]

    spans = [span for found in nonmonotonic._spans(_batches(rows)) for span in found.to_pylist()]

    held = 0
    for span in spans:
        inside = sorted(
            (offset, value)
            for offset, alike, value in rows
            if alike == span["alike"] and span["first"] <= offset <= span["last"]
        )
        held += len(inside)
        assert (inside[0][0], inside[-1][0]) == (span["first"], span["last"])
        if span["is_monotonic"]:
            assert all(lower[1] <= upper[1] for lower, upper in pairwise(inside))
            assert (inside[0][1], inside[-1][1]) == (span["least"], span["greatest"])
    assert held == len(rows)
    assert [span for span in spans if span["first"] < 5_000 <= span["last"]] == []
    assert len(spans) <= 3 + len(rows) // nonmonotonic.ROWS_PER_SPAN
    assert [span["is_monotonic"] for span in spans].count(False) == 1


def test_rows_are_looked_at_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out, and no more are held than asked for."""
    monkeypatch.setattr(nonmonotonic, "ROWS_PER_BATCH", 25)

    spans = [
        found.to_pylist()
        for found in nonmonotonic._spans(_batches([(offset, 0, offset) for offset in range(64)]))
    ]

    assert [(span["first"], span["last"]) for (span,) in spans] == [(0, 29), (30, 59), (60, 63)]


def _batches(rows: list[tuple[int, int, int]]) -> Iterator[pa.RecordBatch]:
    names = ("offset", "alike", "value")
    every = pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    return (every.slice(start, 10) for start in range(0, len(every), 10))
