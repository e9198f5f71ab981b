"""Folds several lines of one attempt into one row: producers often log the send and its result separately.

Clients report the outcome of a send in a callback (`KafkaProducer.send` of Kafka, delivery reports of librdkafka).
So an application's log has one line for the send and another one for the callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.sources.source import BLOCK, COUNT, FAULT, FILE, ROW, TEXT

_BEST_FIRST: Final = ("acked", "unknown", "failed")
"""The precedence of several outcomes of one attempt, the same as for several attempts of one message."""
_EARLIEST: Final = "attempted_at"
_LATEST: Final = "completed_at"
_VALUE_SHOWN: Final = 60


def folded(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return the conformed rows of `produced` with one row for all lines that have the same values in `by`.

    | message_id | attempted_at | completed_at | outcome |     | message_id | attempted_at | completed_at | outcome |
    |------------|--------------|--------------|---------|  →  |------------|--------------|--------------|---------|
    | 17         | 10:00:00     | null         | null    |     | 17         | 10:00:00     | 10:00:01     | acked   |
    | 17         | null         | 10:00:01     | acked   |

    Each column has the common value of its lines. Lines with different values in a column become one faulty row: they
    do not belong to one attempt. A row with a fault, or with a null in `by`, is unchanged.
    """
    is_whole = reduce(Column.__and__, [F.col(name).isNotNull() for name in by], F.col(FAULT).isNull())
    hidden = (FAULT, FILE, TEXT, BLOCK, ROW, COUNT)
    columns = [name for name in rows.columns if name not in (*by, *hidden)]
    gathered = (
        rows.where(is_whole)
        .groupBy(*by)
        .agg(
            *[column for name in columns for column in _range_of(name)],
            *[F.min(name).alias(name) for name in (FILE, BLOCK, ROW)],
        )
    )
    text = F.lit(None).cast("string").alias(TEXT)
    conflict = F.coalesce(*[_conflict_in(name) for name in columns], F.lit(None)).cast("string")
    attempts = gathered.select(
        *by, *[_value_of(name) for name in columns], conflict.alias(FAULT), FILE, text, BLOCK, ROW
    )
    return rows.where(~is_whole).unionByName(attempts, allowMissingColumns=True).select(*rows.columns)


def _range_of(name: str) -> tuple[Column, Column]:
    """Return the least and the greatest value; for outcomes the best one, twice."""
    ranked = F.array_position(F.array(*map(F.lit, _BEST_FIRST)), F.col(name)) if name == "outcome" else None
    least, greatest = (F.min(name), F.max(name)) if ranked is None else (F.min(ranked), F.min(ranked))
    return least.alias(f"least_{name}"), greatest.alias(f"greatest_{name}")


def _value_of(name: str) -> Column:
    least, greatest = F.col(f"least_{name}"), F.col(f"greatest_{name}")
    if name == "outcome":
        return F.try_element_at(F.array(*map(F.lit, _BEST_FIRST)), least.cast("int")).alias(name)
    return (greatest if name == _LATEST else least).alias(name)


def _conflict_in(name: str) -> Column:
    """Return the fault that two lines of the attempt have different values; null if they do not, or are allowed to."""
    if name in ("outcome", "content", _EARLIEST, _LATEST):  # `content` speaks of the nulls that are left
        return F.lit(None).cast("string")
    least, greatest = (
        F.substring(F.col(f"{end}_{name}").cast("string"), 1, _VALUE_SHOWN) for end in ("least", "greatest")
    )
    conflict = F.format_string(
        f"fold_by: expected one {name} for all lines of an attempt, found %s and %s; "
        "name a column more that tells attempts apart",
        least,
        greatest,
    )
    return F.when(F.col(f"least_{name}") != F.col(f"greatest_{name}"), conflict)
