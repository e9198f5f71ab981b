"""Positions at which more than one content was sent: under `identity: position` each content is a message of its own.

A row that shows its content is that message's. One that does not is what the log holds there, else the latest send that
did not fail; an attempt without content is the earliest message's. Docs: docs/reference/interpretations.md, 9 and 81.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import NEVER, POSITION, placed_offset, position_key
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger


def contested_positions_of(scope: Scope, records: DataFrame | None) -> DataFrame | None:
    """Return the positions that were sent more than one content, or None where none was.

    Columns: `c_topic`, `c_partition`, `c_offset`, `contents` (all of them), `earliest` (the first that was sent) and
    `held` (what a row that does not say it is taken for). `records` are the log's data records or None.
    """
    if scope.contract.identity != Identity.POSITION or not scope.has(Ledger.PRODUCED, "payload_hash"):
        return None
    placed = scope.rows(Ledger.PRODUCED).withColumn("offset", placed_offset(F.col("offset")))
    contested = contested_among(placed)
    if contested is None:
        return None
    held = F.coalesce("latest", "earliest")
    if records is None:
        return contested.withColumn("held", held)
    logged = records.select(*POSITION, F.col("payload_hash").alias("logged"))
    is_one = F.array_contains("contents", F.col("logged"))
    return materialised(
        contested.join(logged, same(POSITION, "c_"), how="left")
        .withColumn("held", F.coalesce(F.when(is_one, F.col("logged")), held))
        .drop(*POSITION, "logged", "latest")
    )


def contested_among(attempts: DataFrame) -> DataFrame | None:
    """Return the positions at which these attempts sent more than one content, with `latest`, or None without any."""
    outcome = F.coalesce(F.lower("outcome"), F.lit("unknown"))
    began = F.coalesce("attempted_at", F.lit(NEVER).cast("timestamp"))
    claim = F.struct(outcome == "acked", F.coalesce("completed_at", began), "payload_hash")
    found = materialised(
        attempts.filter(F.col("offset").isNotNull() & F.col("payload_hash").isNotNull())
        .groupBy(*[F.col(name).alias(f"c_{name}") for name in POSITION])
        .agg(
            F.collect_set("payload_hash").alias("contents"),
            F.min(F.struct(began, "payload_hash"))["payload_hash"].alias("earliest"),
            F.max(F.when(outcome != "failed", claim))["payload_hash"].alias("latest"),
        )
        .filter(F.size("contents") > 1)
    )
    return None if found.isEmpty() else found


def with_position_key(rows: DataFrame, contested: DataFrame | None, untold: str = "held") -> DataFrame:
    """Return rows with the `key` of their position, and of their content there where it is contested.

    `untold` names the column of `contested` that says whose a row is that does not show one of the contents.
    """
    if contested is None:
        return rows.withColumn("key", position_key())
    is_there = same(POSITION, "c_") & F.col("offset").isNotNull()
    told = F.when(F.array_contains("contents", F.col("payload_hash")), F.col("payload_hash"))
    content = F.when(F.col("contents").isNotNull(), F.coalesce(told, F.col(untold)))
    own = F.concat(position_key(), F.lit("#"), content)
    return rows.join(contested, is_there, how="left").select(
        *rows.columns, F.coalesce(own, position_key()).alias("key")
    )
