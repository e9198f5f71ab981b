"""Finds the positions that are left to the rules: those that are not clean (`odd`), and their neighbours.

Positions are not sorted for it. A span of 32 offsets has one bit per position (`standing`), once from the left and once
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
_WAYS: Final = ("", "_back")
EIGHT_BITS: Final = 3
"""A row of marks covers eight offsets, 2^3."""
_ALL: Final = (1 << (1 << _BITS)) - 1


def bits_at(offset: Column, condition: Column | None = None) -> dict[str, Column]:
    """Return an offset's bit in its span, from the left and from the right, by suffix; 0 unless the condition holds.

    A null offset has the last bit of a span of its own, which comes before all others.
    """
    place = F.coalesce(offset.bitwiseAND(_LAST), F.lit(_LAST)).cast("int")
    one, nothing = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    bits = {way: _shifted(one, at) for way, at in (("", place), ("_back", F.lit(_LAST) - place))}
    return (
        bits if condition is None else {w: F.when(condition, b).otherwise(nothing) for w, b in bits.items()}
    )


def bits_of_marks(is_unclean: Column) -> dict[str, Column]:
    """Return the bits of a row for `left_of`, to be combined by OR: that its `offset` is there, and if it is odd."""
    conditions = {"standing": None, "odd": is_unclean}
    return {
        f"{name}{way}": bit
        for name, condition in conditions.items()
        for way, bit in bits_at(F.col("offset"), condition).items()
    }


def left_of(marks: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return the odd positions, those next to them, and each partition's position 0, materialised.

    The `marks` are those of a `BucketScan`.

    | topic | partition | eight | standing | odd |   | topic | partition | offset | is_unclean | is_left |
    |-------|-----------|-------|----------|-----|   |-------|-----------|--------|--------|---------|
    | a     | 0         | 0     | 0b1001   | 0   | → | a     | 0         | 0      | false  | false   |
    | a     | 0         | 1     | 1 << 8   | …   |   | a     | 0         | 3      | false  | true    |
    |       |           |       |          |     |   | a     | 0         | 8      | true   | true    |

    Odd are the positions that are not clean, and the `forced` ones that are there. `is_left` is false for a position 0
    that is returned only because it is the first.
    """
    spans = _with_near(_spans(marks, forced))
    bit_columns = ("odd", "near", "near_back")
    is_some = F.greatest(*bit_columns) > 0
    place = F.explode(F.sequence(F.lit(0), F.lit(_LAST))).alias("place")
    of_each = spans.filter(is_some | (F.col("span") == 0)).select(
        *PLACE, "span", "standing", *bit_columns, place
    )
    is_unclean = _has("odd", F.col("place"))
    is_near = _has("near", F.col("place")) | _has("near_back", F.lit(_LAST) - F.col("place"))
    offset = F.shiftleft("span", _BITS).bitwiseOR(F.col("place"))
    positions = of_each.filter(_has("standing", F.col("place"))).select(
        *PLACE,
        offset.alias("offset"),
        is_unclean.alias("is_unclean"),
        (is_unclean | is_near).alias("is_left"),
    )
    return materialised(positions.filter("is_left OR offset = 0"))


def _spans(marks: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return one row per span, with bits for the positions that are there (`standing`) and for the `odd` ones."""
    names = [f"{name}{way}" for name in ("standing", "odd") for way in _WAYS]
    known = marks.select(*PLACE, F.shiftright("eight", _BITS - EIGHT_BITS).alias("span"), *names)
    if forced is not None:
        bits = {f"odd{way}": bit for way, bit in bits_at(F.col("offset")).items()}
        nothing = {f"standing{way}": F.lit(0).cast("bigint") for way in _WAYS}
        columns = [value.alias(name) for name, value in (bits | nothing).items()]
        known = known.unionByName(
            forced.select(*PLACE, F.shiftright("offset", _BITS).alias("span"), *columns)
        )
    merged = known.groupBy(*PLACE, "span").agg(*[F.bit_or(name).alias(name) for name in names])
    existing_odd = {f"odd{way}": F.col(f"odd{way}").bitwiseAND(F.col(f"standing{way}")) for way in _WAYS}
    return merged.filter("standing <> 0").withColumns(existing_odd)


def _with_near(spans: DataFrame) -> DataFrame:
    """Return the spans with `near`, the positions that follow an odd one, and `near_back`, the same from the right."""
    in_order = Window.partitionBy(*PLACE).orderBy("span")
    carried = {
        "": F.lag(_ends_odd("")).over(in_order),
        "_back": F.lead(_ends_odd("_back")).over(in_order),
    }
    return spans.withColumns({f"near{way}": _following(way, carry) for way, carry in carried.items()})


def _following(way: str, carry: Column) -> Column:
    """Return the bits that follow an odd one; the first bit does if the span before ends with an odd one."""
    standing, odd = F.col(f"standing{way}"), F.col(f"odd{way}")
    gaps = F.bitwise_not(standing).bitwiseAND(F.lit(_ALL))
    carried = F.when(carry, F.lit(1)).otherwise(F.lit(0))
    return (F.shiftleft(odd, 1) + gaps + carried).bitwiseAND(standing)


def _ends_odd(way: str) -> Column:
    """Return whether the highest bit is odd: then the odd bits, as a number, are greater than the others."""
    odd = F.col(f"odd{way}")
    return odd > F.col(f"standing{way}").bitwiseXOR(odd)


def _shifted(one: Column, place: Column) -> Column:
    """Return the number shifted by as many places as another column says."""
    return F.call_function("shiftleft", one, place)


def _has(bits: str, place: Column) -> Column:
    return F.bit_get(F.col(bits), place) == 1
