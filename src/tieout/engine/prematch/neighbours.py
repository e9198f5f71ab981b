"""Finds the positions of the remainder: those that are not clean (`unclean`), and their neighbours.

Positions are not sorted. A span of 32 offsets has one bit per position (`present`), once from the left and once
from the right. The next position after a bit is found by addition: the carry runs through the offsets that have no
position. Spans of 64 would overflow, which ANSI mode refuses.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.keys import PLACE
from tieout.engine.materialising import materialised

_BITS: Final = 5
_LAST: Final = (1 << _BITS) - 1
_DIRECTIONS: Final = ("", "_back")
EIGHT_BITS: Final = 3
"""A row of marks covers eight offsets, 2^3."""
_ALL: Final = (1 << (1 << _BITS)) - 1


def bits_at(offset: Column, condition: Column | None = None) -> dict[str, Column]:
    """Return an offset's bit in its span, from the left and from the right, by suffix; 0 unless the condition holds.

    A null offset has the last bit of a span of its own, which comes before all others.
    """
    place = F.coalesce(offset.bitwiseAND(_LAST), F.lit(_LAST)).cast("int")
    one, nothing = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    bits = {direction: _shifted(one, at) for direction, at in (("", place), ("_back", F.lit(_LAST) - place))}
    return (
        bits if condition is None else {w: F.when(condition, b).otherwise(nothing) for w, b in bits.items()}
    )


def bits_of_marks(is_unclean: Column) -> dict[str, Column]:
    """Return a row's bits, `present` and `unclean`, by column name: `remaining_positions` reads their OR."""
    conditions = {"present": None, "unclean": is_unclean}
    return {
        f"{name}{direction}": bit
        for name, condition in conditions.items()
        for direction, bit in bits_at(F.col("offset"), condition).items()
    }


def remaining_positions(marks: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return the unclean positions, their neighbours, and each partition's position 0, materialised.

    The `marks` are those of a `BucketScan`.

    | topic | partition | eight | present | unclean |   | topic | partition | offset | is_unclean | is_remaining |
    |-------|-----------|-------|---------|---------|   |-------|-----------|--------|------------|--------------|
    | a     | 0         | 0     | 0b1001  | 0       | → | a     | 0         | 0      | false      | false        |
    | a     | 0         | 1     | 1 << 8  | …       |   | a     | 0         | 3      | false      | true         |
    |       |           |       |         |         |   | a     | 0         | 8      | true       | true         |

    Positions are unclean if they are not clean in the `marks`, or `forced` and present. `is_remaining` is false for a
    position 0 that is returned only because it is the first.
    """
    spans = _with_near(_spans(marks, forced))
    bit_columns = ("unclean", "near", "near_back")
    is_some = F.greatest(*bit_columns) > 0
    place = F.explode(F.sequence(F.lit(0), F.lit(_LAST))).alias("place")
    of_each = spans.filter(is_some | (F.col("span") == 0)).select(
        *PLACE, "span", "present", *bit_columns, place
    )
    is_unclean = _has("unclean", F.col("place"))
    is_near = _has("near", F.col("place")) | _has("near_back", F.lit(_LAST) - F.col("place"))
    offset = F.shiftleft("span", _BITS).bitwiseOR(F.col("place"))
    positions = of_each.filter(_has("present", F.col("place"))).select(
        *PLACE,
        offset.alias("offset"),
        is_unclean.alias("is_unclean"),
        (is_unclean | is_near).alias("is_remaining"),
    )
    return materialised(positions.filter("is_remaining OR offset = 0"))


def _spans(marks: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return one row per span, with bits for the positions that exist (`present`) and for the `unclean` ones."""
    names = [f"{name}{direction}" for name in ("present", "unclean") for direction in _DIRECTIONS]
    known = marks.select(*PLACE, F.shiftright("eight", _BITS - EIGHT_BITS).alias("span"), *names)
    if forced is not None:
        bits = {f"unclean{direction}": bit for direction, bit in bits_at(F.col("offset")).items()}
        nothing = {f"present{direction}": F.lit(0).cast("bigint") for direction in _DIRECTIONS}
        columns = [value.alias(name) for name, value in (bits | nothing).items()]
        known = known.unionByName(
            forced.select(*PLACE, F.shiftright("offset", _BITS).alias("span"), *columns)
        )
    merged = known.groupBy(*PLACE, "span").agg(*[F.bit_or(name).alias(name) for name in names])
    existing_unclean = {
        f"unclean{direction}": F.col(f"unclean{direction}").bitwiseAND(F.col(f"present{direction}"))
        for direction in _DIRECTIONS
    }
    return merged.filter("present <> 0").withColumns(existing_unclean)


def _with_near(spans: DataFrame) -> DataFrame:
    """Return the spans with `near`, the positions after an unclean one, and `near_back`, those before one."""
    in_order = Window.partitionBy(*PLACE).orderBy("span")
    carried = {
        "": F.lag(_ends_unclean("")).over(in_order),
        "_back": F.lead(_ends_unclean("_back")).over(in_order),
    }
    return spans.withColumns(
        {f"near{direction}": _following(direction, carry) for direction, carry in carried.items()}
    )


def _following(direction: str, carry: Column) -> Column:
    """Return the bits that follow an unclean one; the first bit does if the span before ends with an unclean one."""
    present, unclean = F.col(f"present{direction}"), F.col(f"unclean{direction}")
    gaps = F.bitwise_not(present).bitwiseAND(F.lit(_ALL))
    carried = F.when(carry, F.lit(1)).otherwise(F.lit(0))
    return (F.shiftleft(unclean, 1) + gaps + carried).bitwiseAND(present)


def _ends_unclean(direction: str) -> Column:
    """Return whether the highest bit is unclean: then the unclean bits, as a number, are greater than the others."""
    unclean = F.col(f"unclean{direction}")
    return unclean > F.col(f"present{direction}").bitwiseXOR(unclean)


def _shifted(one: Column, place: Column) -> Column:
    """Return the number shifted by as many places as another column says."""
    return F.call_function("shiftleft", one, place)


def _has(bits: str, place: Column) -> Column:
    return F.bit_get(F.col(bits), place) == 1
