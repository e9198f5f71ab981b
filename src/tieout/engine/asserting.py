"""What asserts that somebody's message lies at a position: accepted sends, records of the log, and reads.

A read asserts what the log held also where its poll failed or was taken back. What the log shows as aborted asserts
nothing, nor does a read of it. Docs: docs/reference/taxonomy.md, section 1 (Messages).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import NEVER, POSITION
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger


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


def overruled(
    scope: Scope, attempts: DataFrame, records: DataFrame | None, reads: DataFrame | None
) -> DataFrame | None:
    """Return the positions that messages claim and that are shown to be another's, or None where there is none.

    A position that a log shows is its record's: reads of another message up to which the log is complete are overruled.
    Without a log it is that of the latest read which names a message, and another id is denied it. `reads` have the
    keys of what lies at their positions. Columns: `overruled_key`, `overruled` (positions).
    Docs: docs/reference/interpretations.md, 121.
    """
    by_position = scope.contract.identity == Identity.POSITION
    if reads is None or by_position or not scope.has(Ledger.READ, *POSITION):
        return None
    name = F.col(scope.identity_column)
    told = placed_reads(reads).filter(name.isNotNull() & ~F.col("is_ambiguous"))
    place = [F.col(column).alias(f"at_{column}") for column in POSITION]
    if records is None:
        turn = F.struct(
            F.coalesce("processed_at", F.lit(NEVER).cast("timestamp")), name.alias("name"), F.col("key")
        )
        sends = attempts.filter(F.col("offset").isNotNull() & (F.col("outcome") != "failed"))
        latest = told.groupBy(*place).agg(F.max(turn).alias("latest"))
        # One id that several messages sent there, as in several sessions, does not make them one.
        of_several = sends.groupBy(*POSITION).agg((F.min("key") != F.max("key")).alias("is_of_several"))
        owner_name = F.when(~F.coalesce("is_of_several", F.lit(False)), F.col("latest")["name"])
        owners = latest.join(of_several, same(POSITION, "at_"), how="left").select(
            *[f"at_{column}" for column in POSITION],
            F.col("latest.key").alias("owner"),
            owner_name.alias("owner_name"),
        )
        claims = sends.select("key", name.alias("name"), *POSITION).unionByName(
            told.select("key", name.alias("name"), *POSITION)
        )
    else:
        named = standing_records(records).filter(name.isNotNull())
        owners = named.select(*place, F.col("key").alias("owner"), name.alias("owner_name"))
        is_told = F.coalesce(scope.covered_until(Ledger.LOG, F.col("processed_at")), F.lit(False))
        claims = told.filter(is_told).select("key", name.alias("name"), *POSITION)
    is_of_another = (F.col("key") != F.col("owner")) & ~F.col("name").eqNullSafe(F.col("owner_name"))
    others = claims.join(owners, same(POSITION, "at_"), how="inner").filter(is_of_another)
    found = materialised(
        others.groupBy(F.col("key").alias("overruled_key")).agg(
            F.collect_set(F.struct(*POSITION)).alias("overruled")
        )
    )
    return None if found.isEmpty() else found
