"""The neighbours of unclean positions are those that a walk along the offsets finds."""

from __future__ import annotations

from itertools import chain
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.engine.prematch.neighbours import EIGHT_BITS, bits_at, remaining_positions

Place = tuple[str | None, int]
Known = dict[Place, dict[int | None, bool]]
SCHEMA = "topic string, partition int, offset long, is_clean boolean"


def _found(
    spark: SparkSession, known: Known, forced: set[tuple[Place, int | None]] | None
) -> set[tuple[Any, ...]]:
    rows = [(*place, offset, clean) for place, marks in known.items() for offset, clean in marks.items()]
    forced_rows = None
    if forced is not None:
        forced_rows = spark.createDataFrame(
            [(*place, offset) for place, offset in forced], SCHEMA.rsplit(",", 1)[0]
        )
    found = [
        tuple(row)
        for row in remaining_positions(_marks(spark.createDataFrame(rows, SCHEMA)), forced_rows).collect()
    ]
    assert len(found) == len(set(found))
    return set(found)


def _marks(positions: DataFrame) -> DataFrame:
    bits = {f"present{direction}": bit for direction, bit in bits_at(F.col("offset")).items()}
    bits |= {
        f"unclean{direction}": bit for direction, bit in bits_at(F.col("offset"), ~F.col("is_clean")).items()
    }
    known = positions.repartition(3).withColumns(bits)
    return known.withColumn("eight", F.shiftright("offset", EIGHT_BITS))


def _walked(known: Known, forced: set[tuple[Place, int | None]]) -> set[tuple[Any, ...]]:
    """Return the same, position by position; a null offset comes first."""
    found = set()
    for place, marks in known.items():
        order = sorted(marks, key=lambda offset: (offset is not None, offset or 0))
        unclean = [not marks[offset] or (place, offset) in forced for offset in order]
        for number, offset in enumerate(order):
            is_remaining = any(unclean[max(number - 1, 0) : number + 2])
            if is_remaining or offset == 0:
                found.add((*place, offset, unclean[number], is_remaining))
    return found


def _drawn(rng: Random, times: int) -> Known:
    """Positions with gaps of all sizes up to several spans, at both ends of spans, some below 0 or without offset."""
    known: Known = {}
    places = [[(f"a{time}", 0), (f"a{time}", 1), (None, time)] for time in range(times)]
    for place in chain.from_iterable(places):
        offset, marks = rng.choice((-40, 0, 1, 31, 32, 2**40 - 3)), {}
        for _ in range(rng.randint(1, 60)):
            marks[offset] = rng.random() < 0.8
            offset += rng.choice((1, 1, 1, 2, 3, 31, 32, 33, 64, 200))
        known[place] = marks | ({None: False} if rng.random() < 0.3 else {})
    return known


def test_neighbours_of_unclean_positions_remain(spark: SparkSession) -> None:
    """Within a span, across spans, over gaps, in every partition for itself; and position 0 where there is one."""
    known = _drawn(Random(11), 12)  # noqa: S311 - repeatable, not secret
    assert _found(spark, known, None) == _walked(known, set())


def test_forced_positions_are_unclean_where_they_exist(spark: SparkSession) -> None:
    """A forced position that no row is at changes nothing, and is no neighbour."""
    rng = Random(12)  # noqa: S311 - repeatable, not secret
    known = _drawn(rng, 6)
    present = [(place, offset) for place, marks in known.items() for offset in marks]
    absent = {(("a0", 0), 5_000_000), (("b", 0), 3), (("a0", 1), 30), (("a1", 1), 30)} - set(present)
    forced = set(rng.sample(present, min(30, len(present)))) | absent
    assert _found(spark, known, forced) == _walked(known, forced)


def test_a_full_span_is_read_from_both_sides(spark: SparkSession) -> None:
    """Every bit of two spans is set, and only the last of the one and the first of the other are unclean."""
    known: Known = {
        ("a", unclean): {offset: offset != unclean for offset in range(64)} for unclean in (31, 32, 0, 63)
    }
    assert _found(spark, known, None) == _walked(known, set())
