"""Ranges of positions: rows of `committed` that say where they begin, and which of them first covered a position.

Spark's batches, the file names of a Kafka Connect sink and tables of offsets are such rows: they cover
`[first_offset, committed_offset)` and nothing below. Docs: docs/reference/taxonomy.md, section 8, item 7, and
docs/reference/interpretations.md, 141 to 145.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import PLACE

COVER: Final = "struct<committed_offset:bigint,committed_at:timestamp,first_offset:bigint,is_next:boolean>"
"""A commit that covers a position; a range `is_next` where it begins where the one before it ended, if there is one."""
_TELLING: Final = (
    "first_offset", "committed_offset", "committed_at", "generation", "leader_epoch", "metadata",
)  # fmt: skip
"""What makes two ranges of a partition two: not when their table was taken."""


def ranges_of(commits: DataFrame) -> DataFrame:
    """Return the ranges that hold a position, each once, with `before`: of those before it the one that ends last.

    Of several that end there it is the latest. Ranges stand by where they begin and end, and then by their time.

    | first_offset | committed_offset | before          |
    |--------------|------------------|-----------------|
    | 0            | 5                | null            |
    | 5            | 8                | ends 5          |
    | 7            | 9                | ends 8          |
    """
    is_placed = F.col("topic").isNotNull() & F.col("partition").isNotNull()
    is_range = is_placed & (F.col("first_offset") < F.col("committed_offset"))
    once = commits.filter(is_range).groupBy(*PLACE, *_TELLING).agg(F.max("taken_at").alias("taken_at"))
    in_order = Window.partitionBy(*PLACE).orderBy(
        "first_offset", "committed_offset", F.col("committed_at").asc_nulls_first(), "metadata", "generation"
    )
    told = F.struct(
        F.col("committed_offset").alias("end"),
        "committed_at",
        F.col("first_offset").alias("first"),
        "taken_at",
        "generation",
        "metadata",
    )
    return once.withColumn("before", F.max(told).over(in_order.rowsBetween(Window.unboundedPreceding, -1)))


def with_first_range(positions: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return positions, kept, whose `cover` is that of a range where one covered them before any other commit did.

    A range has at most two cells of the least power of two that is as long as it is, so that positions find the ranges
    that may hold them by equality.
    """
    is_next = F.col("before").isNull() | (F.col("before.end") == F.col("first_offset"))
    length = F.col("committed_offset") - F.col("first_offset")
    level = F.length(F.bin(length - 1))
    cells = F.array_distinct(
        F.array(
            _cell(F.col("first_offset"), F.col("level")), _cell(F.col("committed_offset") - 1, F.col("level"))
        )
    )
    marks = ranges.select(
        *[F.col(name).alias(f"r_{name}") for name in PLACE],
        "first_offset",
        "committed_offset",
        "committed_at",
        is_next.alias("is_next"),
        level.alias("level"),
    )
    celled = marks.withColumn("r_cell", F.explode(cells)).withColumnRenamed("level", "r_level")
    levels = marks.groupBy("r_topic", "r_partition").agg(F.collect_set("level").alias("levels"))
    points = (
        positions.select(*PLACE, "offset")
        .distinct()
        .join(F.broadcast(levels), same(PLACE, "r_"), how="inner")
    )
    in_cells = points.select(*PLACE, "offset", F.explode("levels").alias("level")).withColumn(
        "cell", _cell(F.col("offset"), F.col("level"))
    )
    is_within = (F.col("first_offset") <= F.col("offset")) & (F.col("offset") < F.col("committed_offset"))
    is_near = same((*PLACE, "level", "cell"), "r_")
    turn = F.struct(
        F.col("committed_at").isNull(), "committed_at", "committed_offset", "first_offset", "is_next"
    )
    found = (
        in_cells.join(celled, is_near & is_within, how="inner")
        .groupBy(*[F.col(name).alias(f"c_{name}") for name in (*PLACE, "offset")])
        .agg(F.min(turn).alias("first"))
    )
    together = positions.join(found, same((*PLACE, "offset"), "c_"), how="left")
    range_cover = F.struct(
        "first.committed_offset", "first.committed_at", "first.first_offset", "first.is_next"
    )
    known = together.withColumn("cover", F.when(_is_earlier(), range_cover).otherwise(F.col("cover")))
    return known.select(*positions.columns)


def _is_earlier() -> Column:
    """Return whether the range in `first` covered the position before what is in `cover`; undated ones come last."""
    at, other_at = F.col("first.committed_at"), F.col("cover.committed_at")
    is_dated_first = at.isNotNull() & (other_at.isNull() | (at < other_at))
    return F.col("first").isNotNull() & (F.col("cover").isNull() | is_dated_first)


def _cell(offset: Column, level: Column) -> Column:
    return F.call_function("shiftright", offset, level)
