"""The log for prematch: the bounds of each partition's log, what its rows state of them, and whether it is compacted.

Docs: docs/reference/taxonomy.md, section 1 (Visible) and section 7, traps 1 and 8.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.scope import Scope
from tieout.model import Ledger

_STATED_BOUNDS: Final = {
    "log_start": "log_start_offset",
    "stated_stable": "last_stable_offset",
    "log_end": "end_offset",
    "cleanup_policy": "cleanup_policy",
}


def as_records(rows: DataFrame) -> DataFrame:
    """Return rows of the log with defaults for nulls: in no transaction, and no control record."""
    state = F.coalesce(F.lower("transaction_state"), F.lit("none"))
    return rows.withColumns(
        {"transaction_state": state, "is_control": F.coalesce("is_control", F.lit(False))}
    )


def statements_of(scope: Scope) -> DataFrame:
    """Return the log's statements of its bounds, once each, as rows without an offset."""
    stated_columns = ("topic", "partition", *_STATED_BOUNDS.values(), "observed_at")
    is_stated = [F.col(name).isNotNull() for name in (*_STATED_BOUNDS.values(), "observed_at")]
    rows = scope.rows(Ledger.LOG)
    stating = (
        rows.filter(reduce(Column.__or__, is_stated) | F.col("offset").isNull())
        .select(*stated_columns)
        .distinct()
    )
    other_fields = [field for field in rows.schema if field.name not in stated_columns]
    return stating.select(
        "*", *[F.lit(None).cast(field.dataType).alias(field.name) for field in other_fields]
    ).select(*rows.columns)


def bounds_of(scope: Scope) -> DataFrame:
    """Return the log's bounds per topic partition: a covering log has all records of `[log_start, log_end)`.

    Of several statements the latest observed holds. A bound that none states comes from the rows, or without rows from
    the other bounds. Only a stated start (`stated_start`) shows that records below it once existed: the rows may be a
    part of the log. `first_unstable` is the last stable offset, or that of the lowest open record; null where nothing
    is unstable. `last_offset` is that of the highest record. `has_epochs`: some records are not of the first leader.
    """
    moment = F.coalesce("observed_at", F.lit(0).cast("timestamp"))
    latest = {
        name: F.max(
            F.when(F.col(column).isNotNull(), F.struct(moment.alias("moment"), F.col(column).alias("value")))
        )["value"]
        for name, column in _STATED_BOUNDS.items()
    }
    stated = (
        scope.rows(Ledger.LOG)
        .groupBy("topic", "partition")
        .agg(
            *[column.alias(name) for name, column in latest.items()],
            F.max("observed_at").alias("observed_at"),
            F.coalesce(F.max("leader_epoch") > 0, F.lit(False)).alias("has_epochs"),
            F.min("offset").alias("lowest_offset"),
            F.min(F.when(F.lower("transaction_state") == "open", F.col("offset"))).alias("lowest_open"),
            F.max("offset").alias("last_offset"),
        )
    )
    return stated.select(
        "topic",
        "partition",
        F.coalesce("log_start", "lowest_offset").alias("log_start"),
        F.col("log_start").alias("stated_start"),
        F.coalesce("log_end", F.col("last_offset") + 1, F.greatest("log_start", "stated_stable")).alias(
            "log_end"
        ),
        F.coalesce("stated_stable", "lowest_open").alias("first_unstable"),
        "last_offset",
        "observed_at",
        F.lower("cleanup_policy").alias("cleanup_policy"),
        "has_epochs",
    )


def compacts(scope: Scope, bounds: DataFrame) -> bool:
    """Return whether any partition of the log may be compacted."""
    if not scope.has(Ledger.LOG, "cleanup_policy"):
        return False
    return not bounds.filter(F.col("cleanup_policy").contains("compact")).isEmpty()
