"""What is left next to odd positions is what walking along the offsets would find."""

from __future__ import annotations

from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.prematch.neighbours import EIGHT_BITS, bits_at, left_of

Place = tuple[str | None, int]
Known = dict[Place, dict[int | None, bool]]
SCHEMA = "topic string, partition int, offset long, is_clean boolean"


def _found(
    spark: SparkSession, known: Known, forced: set[tuple[Place, int | None]] | None
) -> set[tuple[Any, ...]]:
    rows = [(*place, offset, clean) for place, marks in known.items() for offset, clean in marks.items()]
    told = None
    if forced is not None:
        told = spark.createDataFrame([(*place, offset) for place, offset in forced], SCHEMA.rsplit(",", 1)[0])
    found = [tuple(row) for row in left_of(_marks(spark.createDataFrame(rows, SCHEMA)), told).collect()]
    assert len(found) == len(set(found))
    return set(found)


def _marks(positions: DataFrame) -> DataFrame:
    bits = {f"standing{way}": bit for way, bit in bits_at(F.col("offset")).items()}
    bits |= {f"odd{way}": bit for way, bit in bits_at(F.col("offset"), ~F.col("is_clean")).items()}
    known = positions.repartition(3).withColumns(bits)
    return known.withColumn("eight", F.shiftright("offset", EIGHT_BITS))


def _walked(known: Known, forced: set[tuple[Place, int | None]]) -> set[tuple[Any, ...]]:
    """Return the same, position by position; a null offset comes first."""
    found = set()
    for place, marks in known.items():
        order = sorted(marks, key=lambda offset: (offset is not None, offset or 0))
        odd = [not marks[offset] or (place, offset) in forced for offset in order]
        for number, offset in enumerate(order):
            is_left = any(odd[max(number - 1, 0) : number + 2])
            if is_left or offset == 0:
                found.add((*place, offset, odd[number], is_left))
    return found


def _drawn(rng: Random) -> Known:
    """Positions with gaps of all sizes up to several spans, at both ends of spans, some below 0 or without offset."""
    known: Known = {}
    for place in (("a", 0), ("a", 1), (None, 0)):
        offset, marks = rng.choice((-40, 0, 1, 31, 32, 2**40 - 3)), {}
        for _ in range(rng.randint(1, 60)):
            marks[offset] = rng.random() < 0.8
            offset += rng.choice((1, 1, 1, 2, 3, 31, 32, 33, 64, 200))
        known[place] = marks | ({None: False} if rng.random() < 0.3 else {})
    return known


def test_what_stands_next_to_odd_positions_is_left(spark: SparkSession) -> None:
    """Within a span, across spans, over gaps, in every partition for itself; and position 0 where there is one."""
    rng = Random(11)  # noqa: S311 - repeatable, not secret
    for _ in range(12):
        known = _drawn(rng)
        assert _found(spark, known, None) == _walked(known, set())


def test_forced_positions_are_odd_where_they_stand(spark: SparkSession) -> None:
    """A forced position that no row is at changes nothing, and is no neighbour."""
    rng = Random(12)  # noqa: S311 - repeatable, not secret
    for _ in range(6):
        known = _drawn(rng)
        standing = [(place, offset) for place, marks in known.items() for offset in marks]
        absent = {(("a", 0), 5_000_000), (("b", 0), 3), (("a", 1), 30)} - set(standing)
        forced = set(rng.sample(standing, min(5, len(standing)))) | absent
        assert _found(spark, known, forced) == _walked(known, forced)


def test_a_full_span_is_told_from_both_sides(spark: SparkSession) -> None:
    """Every bit of two spans is set, and only the last of the one and the first of the other are odd."""
    for odd in (31, 32, 0, 63):
        known: Known = {("a", 0): {offset: offset != odd for offset in range(64)}}
        assert _found(spark, known, None) == _walked(known, set())
