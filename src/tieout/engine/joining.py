"""What all joins need: a condition under which nulls are equal, and a hint where one side is small."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.keys import POSITION

FEW_ROWS: Final = 100_000
"""This many rows of ten columns take about 20 MB, which every executor can hold."""


def same(names: Iterable[str], prefix: str) -> Column:
    """Return whether each column equals the other side's, whose name has the prefix; nulls are equal.

    A plain `=` never matches null, and topics and partitions may be null.
    """
    return reduce(and_, (F.col(name).eqNullSafe(F.col(f"{prefix}{name}")) for name in names))


def small_side(rows: DataFrame) -> DataFrame:
    """Return materialised rows with a broadcast hint if they are few.

    Spark does not know the size of a checkpoint, and would shuffle and sort the other side, however wide it is.
    """
    return F.broadcast(rows) if rows.count() <= FEW_ROWS else rows


def at_positions(rows: DataFrame, positions: DataFrame) -> DataFrame:
    """Return the rows at some positions, which are materialised."""
    chosen = small_side(positions.select(*[F.col(name).alias(f"at_{name}") for name in POSITION]))
    return rows.join(chosen, same(POSITION, "at_"), how="left_semi")
