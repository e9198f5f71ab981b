"""Conditions of joins that every step needs alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F


def same(names: Iterable[str], prefix: str) -> Column:
    """Return whether each column equals the other side's, whose name has the prefix; nulls are equal.

    A plain `=` never matches null, and topics and partitions may be null.
    """
    return reduce(and_, (F.col(name).eqNullSafe(F.col(f"{prefix}{name}")) for name in names))
