"""A set of positions has what was put into it, and nothing beside."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.prematch import position_sets
from tieout.engine.prematch.position_sets import as_set, outside, reach, within

SCHEMA = "topic string, partition int, offset long"
OFFSETS = (
    None, -2048, -1025, -1024, -65, -64, -1, 0, 1, 62, 63, 64, 65, 127, 128, 1023, 1024, 1087, 2**40, 2**40 + 63, 2**62,
)  # fmt: skip
EVERY = [
    (topic, partition, offset)
    for topic in ("a", "b", None)
    for partition in (0, 1, None)
    for offset in OFFSETS
]


def _reach_of(positions: DataFrame) -> Column:
    found = reach(positions)
    assert found is not None
    return found


def _rows(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA).repartition(3)


@pytest.mark.parametrize("few", [100_000, 0], ids=["sent to every executor", "shuffled"])
def test_a_row_is_either_within_a_set_or_outside(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Null and negative numbers too, twice as well as once, and in one partition without the others."""
    monkeypatch.setattr(position_sets, "FEW_ROWS", few)
    chosen = [row for place, row in enumerate(EVERY) if place % 3 == 1 or row[:2] == ("b", 0)]
    every = _rows(spark, EVERY + EVERY[:9])

    found = as_set(_rows(spark, chosen + chosen[:5]))

    inside = {tuple(row) for row in within(every, found).collect()}
    assert inside == set(chosen)
    assert within(every, found).count() + outside(every, found).count() == every.count()
    assert {tuple(row) for row in outside(every, found).collect()} == set(EVERY) - set(chosen)
    assert outside(every, None) is every


def test_any_number_can_be_in_a_set(spark: SparkSession) -> None:
    """A bucket is a number of its rows as well as a position is."""
    buckets = spark.createDataFrame([("a", 0, 3), ("a", 0, -1)], "topic string, partition int, bucket long")
    rows = _rows(spark, [("a", 0, offset) for offset in (-5, -1, 0, 5, 6, 7, 8)] + [("a", 1, 6)])

    found = within(rows, as_set(buckets, "bucket"), F.shiftright("offset", 1))

    assert sorted(row["offset"] for row in found.collect()) == [-1, 6, 7]


def test_a_set_of_nothing_has_nothing(spark: SparkSession) -> None:
    """Not even the rows without a position."""
    rows = _rows(spark, EVERY)

    found = as_set(rows.limit(0))

    assert within(rows, found).isEmpty()
    assert outside(rows, found).count() == len(EVERY)


def test_a_set_takes_a_row_for_a_thousand_positions(spark: SparkSession) -> None:
    """So it is small however many positions lie close together."""
    positions = spark.range(10_000).select(
        F.lit("a").alias("topic"), F.lit(0).alias("partition"), F.col("id").alias("offset")
    )
    assert as_set(positions).count() == 10


def test_a_set_reaches_to_what_is_in_it_and_not_much_further(spark: SparkSession) -> None:
    """Nulls and the greatest offsets too; neighbouring spans are one range."""
    every = _rows(spark, EVERY)
    greatest = 2**63 - 1
    farthest = _rows(spark, [("a", 0, greatest)])
    for numbers, width, beyond in (
        ([0, 1, 1_023], 1, {None, -1, 1_024, 2**40}),
        ([0, 1_024, 5_000], 128, {None, -1, 2**40, 2**62}),
        ([-1, None, 2**40], 1, {-2_048, 0, 2**62}),
        ([greatest >> 7], 128, {None, 0, 2**62}),
    ):
        found = as_set(spark.createDataFrame([("a", 0, number) for number in numbers], SCHEMA))

        condition = reach(found, width)

        assert condition is not None
        last = condition
        inside = {row["offset"] for row in every.unionByName(farthest).filter(condition).collect()}
        held = {
            offset
            for offset in (*OFFSETS, greatest)
            if (offset if offset is None else offset // width) in numbers
        }
        assert held <= inside
        assert inside & beyond == set()
    assert [row["offset"] for row in farthest.filter(last).collect()] == [greatest]


def test_a_set_that_lies_scattered_reaches_everywhere(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many ranges would cost each row more than they save."""
    rows = [("a", 0, 2_048 * place) for place in range(3)]
    found = as_set(_rows(spark, rows))
    for spans, ranges, is_reported in ((3, 3, True), (2, 3, False), (3, 2, False)):
        monkeypatch.setattr(position_sets, "_MOST_SPANS", spans)
        monkeypatch.setattr(position_sets, "_MOST_RANGES", ranges)
        assert (reach(found) is not None) is is_reported
    assert _rows(spark, EVERY).filter(_reach_of(as_set(_rows(spark, rows).limit(0)))).count() == 0
