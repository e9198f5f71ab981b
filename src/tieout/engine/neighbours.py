"""Which positions are left to the rules, given which are odd: these, and those that stand next to them.

Neighbours are found without sorting positions. A span of 32 offsets has its positions as bits, once from the left and
once from the right, and what follows a bit is found by adding: a carry runs through the offsets that nobody has. Spans
of 64 would overflow, which ANSI mode refuses.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.keys import PLACE, POSITION
from tieout.engine.materialising import materialised

_BITS: Final = 5
_LAST: Final = (1 << _BITS) - 1
_ALL: Final = (1 << (1 << _BITS)) - 1


def left_of(positions: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return what is left of positions, kept: the odd ones, those next to them, and each partition's position 0.

    | topic | partition | offset | is_quiet |   | topic | partition | offset | is_odd | is_left |
    |-------|-----------|--------|----------|   |-------|-----------|--------|--------|---------|
    | a     | 0         | 0      | true     | → | a     | 0         | 0      | false  | false   |
    | a     | 0         | 3      | true     |   | a     | 0         | 7      | false  | true    |
    | a     | 0         | 7      | true     |   | a     | 0         | 8      | true   | true    |
    | a     | 0         | 8      | false    |   |       |           |        |        |         |

    Odd are positions that are not quiet, and such of them as are `forced`. `is_left` is false of a position 0 that
    nothing but the rule about it leaves. A null offset stands before all others.
    """
    spans = _with_near(_spans(positions, forced))
    told = ("odd", "near", "near_back")
    is_some = F.greatest(*told) > 0
    place = F.explode(F.sequence(F.lit(0), F.lit(_LAST))).alias("place")
    of_each = spans.filter(is_some | (F.col("span") == 0)).select(*PLACE, "span", "standing", *told, place)
    is_odd = _has("odd", F.col("place"))
    is_near = _has("near", F.col("place")) | _has("near_back", F.lit(_LAST) - F.col("place"))
    offset = F.shiftleft("span", _BITS).bitwiseOR(F.col("place"))
    found = of_each.filter(_has("standing", F.col("place"))).select(
        *PLACE, offset.alias("offset"), is_odd.alias("is_odd"), (is_odd | is_near).alias("is_left")
    )
    return materialised(found.filter("is_left OR offset = 0"))


def _spans(positions: DataFrame, forced: DataFrame | None) -> DataFrame:
    """Return one row a span, with bits for the positions that are `standing` there and for those that are `odd`."""
    every = positions.select(*POSITION, F.lit(True).alias("stands"), (~F.col("is_quiet")).alias("is_odd"))
    if forced is not None:
        told = {"stands": F.lit(False), "is_odd": F.lit(True)}
        every = every.unionByName(forced.select(*POSITION).withColumns(told))
    place = F.coalesce(F.col("offset").bitwiseAND(_LAST), F.lit(_LAST)).cast("int")
    known = every.select(
        *PLACE, F.shiftright("offset", _BITS).alias("span"), place.alias("place"), "stands", "is_odd"
    )
    bits = {"": F.expr("shiftleft(1L, place)"), "_back": F.expr(f"shiftleft(1L, {_LAST} - place)")}
    nothing = F.lit(0).cast("bigint")
    sums = [
        F.bit_or(F.when(F.col(is_one), bit).otherwise(nothing)).alias(f"{name}{way}")
        for way, bit in bits.items()
        for name, is_one in (("standing", "stands"), ("odd", "is_odd"))
    ]
    found = known.groupBy(*PLACE, "span").agg(*sums).filter("standing <> 0")
    return found.withColumns(
        {f"odd{way}": F.col(f"odd{way}").bitwiseAND(F.col(f"standing{way}")) for way in bits}
    )


def _with_near(spans: DataFrame) -> DataFrame:
    """Return the spans with `near`, the bits that follow an odd one, and `near_back`, the same from the right."""
    in_order = Window.partitionBy(*PLACE).orderBy("span")
    carried = {
        "": F.lag(_ends_odd("")).over(in_order),
        "_back": F.lead(_ends_odd("_back")).over(in_order),
    }
    return spans.withColumns({f"near{way}": _following(way, carry) for way, carry in carried.items()})


def _following(way: str, carry: Column) -> Column:
    """Return the bits that follow an odd one, or that come first where what was before ended with an odd one."""
    standing, odd = F.col(f"standing{way}"), F.col(f"odd{way}")
    gaps = F.bitwise_not(standing).bitwiseAND(F.lit(_ALL))
    carried = F.when(carry, F.lit(1)).otherwise(F.lit(0))
    return (F.shiftleft(odd, 1) + gaps + carried).bitwiseAND(standing)


def _ends_odd(way: str) -> Column:
    """Return whether the highest of the bits is odd: then the odd ones are a greater number than the others."""
    odd = F.col(f"odd{way}")
    return odd > F.col(f"standing{way}").bitwiseXOR(odd)


def _has(bits: str, place: Column) -> Column:
    return F.bit_get(F.col(bits), place) == 1
