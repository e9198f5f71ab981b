"""Sets of positions, or of buckets, as bits: small enough that nearly every set can be broadcast.

A window's rows are filtered by such a set many times. As rows, a few hundred thousand positions are too many to be
broadcast, and each filter would shuffle and sort all rows. As bits, they are a few thousand rows.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import FEW_ROWS, same
from tieout.engine.keys import PLACE
from tieout.engine.materialising import materialised

_WORD_BITS: Final = 6
_SPAN_BITS: Final = 10
_MOST_SPANS: Final = 1_000
_MOST_RANGES: Final = 8
"""`reach` describes a set of up to this many ranges."""
_WORDS: Final = 1 << (_SPAN_BITS - _WORD_BITS)


def as_set(rows: DataFrame, number: str = "offset") -> DataFrame:
    """Return the rows' numbers in their topic partitions as a set, materialised: one row per 1,024 numbers.

    | topic | partition | offset |   | s_topic | s_partition | s_span | s_words      |
    |-------|-----------|--------|   |---------|-------------|--------|--------------|
    | a     | 0         | 3      | → | a       | 0           | 0      | [8, 2, 0, …] |
    | a     | 0         | 65     |   | a       | 0           | null   | [0, 0, 0, …] |
    | a     | 0         | null   |   |         |             |        |              |

    Null is a number like any other. Up to `FEW_ROWS` rows, of some 200 bytes each, are broadcast.
    """
    known = rows.select(*PLACE, F.col(number).alias("number"))
    bit, nothing = F.expr("shiftleft(1L, cast(number & 63 as int))"), F.lit(0).cast("bigint")
    is_there = [_word(F.col("number")) == place for place in range(_WORDS)]
    words = [F.coalesce(F.bit_or(F.when(condition, bit)), nothing) for condition in is_there]
    spans = known.groupBy(*PLACE, _span(F.col("number")).alias("span")).agg(F.array(*words).alias("words"))
    bitmap = materialised(spans.select(*[F.col(name).alias(f"s_{name}") for name in spans.columns]))
    # A hash table of the set, which never has more rows than the other side, spares sorting that side.
    return F.broadcast(bitmap) if bitmap.count() <= FEW_ROWS else bitmap.hint("shuffle_hash")


def reach(chosen: DataFrame, width: int = 1) -> Column | None:
    """Return a condition on `offset` that holds at least for a set's numbers, each of which covers `width` offsets.

    It consists of a few ranges, so that readers of files with minima and maxima per row group skip whole groups. None
    where the set is too scattered for that.
    """
    numbers = {row["s_span"] for row in chosen.select("s_span").distinct().limit(_MOST_SPANS + 1).collect()}
    spans, size = sorted(numbers - {None}), width << _SPAN_BITS
    starts = [span for span in spans if span - 1 not in numbers]
    if len(numbers) > _MOST_SPANS or len(starts) > _MOST_RANGES:
        return None
    ends = [span for span in spans if span + 1 not in numbers]
    ranges = [
        F.col("offset").between(start * size, (end + 1) * size - 1)
        for start, end in zip(starts, ends, strict=True)
    ]
    nulls = [F.col("offset").isNull()] if None in numbers else []
    return reduce(Column.__or__, ranges + nulls, F.lit(False))


def within(rows: DataFrame, chosen: DataFrame, number: Column | None = None) -> DataFrame:
    """Return the rows whose number, by default their `offset`, is in the set of their topic partition."""
    return rows.join(chosen, _is_in(number), how="left_semi")


def outside(rows: DataFrame, chosen: DataFrame | None, number: Column | None = None) -> DataFrame:
    """Return the rows whose number is not in the set of their topic partition; all where there is no set."""
    return rows if chosen is None else rows.join(chosen, _is_in(number), how="left_anti")


def _is_in(given: Column | None) -> Column:
    number = F.col("offset") if given is None else given
    bit = number.bitwiseAND((1 << _WORD_BITS) - 1).cast("int")
    is_set = F.bit_get(F.get("s_words", _word(number)), bit) == 1
    return same(PLACE, "s_") & _span(number).eqNullSafe(F.col("s_span")) & (number.isNull() | is_set)


def _span(number: Column) -> Column:
    return F.shiftright(number, _SPAN_BITS)


def _word(number: Column) -> Column:
    """Return the index, in its span, of the word that has the number's bit."""
    return F.shiftright(number, _WORD_BITS).bitwiseAND(_WORDS - 1).cast("int")
