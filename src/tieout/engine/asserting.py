"""What asserts that somebody's message lies at a position: accepted sends, records of the log, and reads.

A read asserts what the log held also where its poll failed or was taken back. What the log shows as aborted asserts
nothing, nor does a read of it. Docs: docs/reference/taxonomy.md, section 1 (Messages).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def accepted_sends(messages: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return the attempts with a position that were accepted: acknowledged ones, and unknown ones that are proven."""
    placed = attempts.filter(F.col("offset").isNotNull())
    is_proven = (F.col("acceptance") == "accepted") & (F.col("unknown") > 0)
    accepted = messages.filter(is_proven).select(F.col("key").alias("accepted_key"))
    unknown = placed.filter(F.col("outcome") == "unknown")
    proven = unknown.join(accepted, F.col("key") == F.col("accepted_key"), how="left_semi")
    return placed.filter(F.col("outcome") == "acked").unionByName(proven)


def standing_records(records: DataFrame) -> DataFrame:
    """Return the data records of the log that no transaction took back."""
    return records.filter(F.col("transaction_state") != "aborted")


def placed_reads(reads: DataFrame) -> DataFrame:
    """Return the reads that show what the log holds at a position, whatever came of their poll."""
    return reads.filter(shows_position())


def shows_position() -> Column:
    """Return whether a read, or its event, shows what the log holds at its position."""
    return F.col("offset").isNotNull() & ~F.coalesce("is_of_aborted", F.lit(False))
