"""Per message: its window, its acceptance, its first position and the partition it counts in.

Docs: docs/reference/taxonomy.md, section 1 (Messages) and section 5 (where a message counts).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.ranges import with_range_counts
from tieout.engine.scope import Scope
from tieout.model import Ledger


def placed(scope: Scope, gathered: DataFrame, overruled: DataFrame | None) -> DataFrame:
    """Return the gathered messages with `is_owned`, `acceptance`, `deadline`, `topic`, `partition` and `first_offset`.

    `acceptance` is one of accepted, unproven, failed, or null for what nobody attempted. `own_positions` are the
    asserted ones that are not `overruled` (`asserting.overruled`): at those the message is judged as absent.
    """
    known = with_proof(scope, with_written_failures(gathered))
    best = F.coalesce("first_acked", "last_unknown")
    placed_messages = (
        known.withColumn("acceptance", _acceptance())
        .withColumn(
            "asserted",
            F.when(F.col("acceptance") == "unproven", F.array_distinct("visible")).otherwise(
                F.col("asserted")
            ),
        )
        .transform(lambda rows: _with_own_positions(rows, overruled))
        .withColumns(
            {
                "is_owned": scope.in_window(F.col("first_attempt.at")),
                "sent_at": F.coalesce(best["at"], F.col("first_attempt.at")),
                "done_at": best["done_at"],
                "deadline": best["done_at"] + F.lit(scope.patience),
                "home": _home(),
            }
        )
        .withColumns(
            {
                "topic": F.coalesce("home.topic", "attempt_place.place.topic", "record_topic"),
                "partition": F.coalesce(
                    "home.partition", "intended_partition", "attempt_place.place.partition"
                ),
                "first_offset": _first_offset(),
            }
        )
        .drop("home", "acked_place", "unknown_place", "effect_place", "attempt_place", "record_topic")
    )
    return with_range_counts(scope, placed_messages)


def _with_own_positions(messages: DataFrame, overruled: DataFrame | None) -> DataFrame:
    if overruled is None:
        return messages.withColumn("own_positions", F.col("asserted"))
    told = messages.join(overruled, F.col("key") == F.col("overruled_key"), how="left")
    own = F.when(F.col("overruled").isNotNull(), F.array_except("asserted", "overruled"))
    return told.withColumn("own_positions", F.coalesce(own, F.col("asserted"))).drop(
        "overruled_key", "overruled"
    )


def with_proof(scope: Scope, gathered: DataFrame) -> DataFrame:
    """Return the messages with `is_proven`: by an effect, a written record, or another write of their transaction.

    One write that a read_committed reader was given, or that is committed in the log, proves the whole transaction.
    """
    by_committed_read = F.coalesce("is_read_committed", F.lit(False))
    plain_read = (F.col("placed_reads") > 0) & (F.size("transactions") == 0)
    own = (F.col("effect_rows") > 0) | (F.col("written") > 0) | plain_read | by_committed_read
    if not scope.has(Ledger.PRODUCED, "transaction_id"):
        return gathered.withColumn("is_proven", own)
    is_told = (F.size("transactions") == 1) & ((F.col("committed") > 0) | by_committed_read)
    told = gathered.filter(is_told).select(F.to_json(F.col("transactions")[0]).alias("told")).distinct()
    as_text = F.transform("unknown_transactions", lambda transaction: F.to_json(transaction))  # noqa: PLW0108 - a second argument would be the index
    doubtful = gathered.select(F.col("key").alias("proven_key"), F.explode(as_text).alias("doubtful"))
    proven = doubtful.join(told, F.col("doubtful") == F.col("told"), how="left_semi")
    joined = gathered.join(
        proven.select("proven_key").distinct(), F.col("key") == F.col("proven_key"), how="left"
    )
    return joined.withColumn("is_proven", own | F.col("proven_key").isNotNull()).drop("proven_key")


def with_written_failures(messages: DataFrame) -> DataFrame:
    """Return the messages with `is_failed_but_written`: all attempts failed and the log holds the record all the same.

    Their attempts' outcome is unknown, and the record proves them.
    """
    is_written = (
        (F.col("failed_there") > 0) & (F.col("acked") + F.col("unknown") == 0) & (F.col("written") > 0)
    )
    marked = messages.withColumn("is_failed_but_written", is_written)
    moved = F.col("is_failed_but_written")
    chosen = {
        "last_unknown": F.col("last_failed_there"),
        "unknown": F.col("failed_there"),
        "unknown_in": F.col("failed_there_in"),
        "failed": F.col("failed") - F.col("failed_there"),
        "failed_in": F.col("failed_in") - F.col("failed_there_in"),
        "transactions": F.col("failed_transactions"),
        "unknown_transactions": F.col("failed_transactions"),
    }
    return marked.withColumns(
        {name: F.when(moved, value).otherwise(F.col(name)) for name, value in chosen.items()}
    ).drop("failed_there", "failed_there_in", "last_failed_there", "failed_transactions")


def _acceptance() -> Column:
    """Return the best of a message's outcomes, null where nobody attempted it."""
    return (
        F.when(F.col("attempts") == 0, None)
        .when(F.col("acked") > 0, "accepted")
        .when((F.col("unknown") > 0) & F.col("is_proven"), "accepted")
        .when(F.col("unknown") > 0, "unproven")
        .otherwise("failed")
    )


def _home() -> Column:
    """Return the partition of the first position, else the effect's.

    It is the earliest acked attempt's, else, of what was accepted, the earliest other attempt's, else the lowest.
    """
    unknown = F.when(F.col("acceptance") == "accepted", F.col("unknown_place.place"))
    first = F.array_min(_first_choice())
    lowest = F.when(
        F.size("asserted") > 0, F.struct(first["topic"].alias("topic"), first["partition"].alias("partition"))
    )
    return F.coalesce("acked_place.place", unknown, lowest, "effect_place.place")


def _first_choice() -> Column:
    """Return the positions one of which is the first: the message's own, or where it was sent if it has none."""
    return F.when(F.size("own_positions") > 0, F.col("own_positions")).otherwise(F.col("asserted"))


def _first_offset() -> Column:
    """Return the lowest visible or asserted offset in the message's partition, null where it has none."""
    in_place = F.filter(
        _first_choice(),
        lambda p: (
            p["topic"].eqNullSafe(F.col("home.topic")) & p["partition"].eqNullSafe(F.col("home.partition"))
        ),
    )
    return F.array_min(F.transform(in_place, lambda p: p["offset"]))
