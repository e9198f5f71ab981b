"""Identity `content`: every attempt is one message, and the log's records are those of their position or their payload.

What the output shows is paired afterwards (`pairing`), because it takes the outcomes that the log decides.
Docs: docs/reference/taxonomy.md, section 1 (Messages), and docs/reference/interpretations.md, 65 to 69.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.attempts import STATE_RANKS, claimed_rows_of, own_messages, with_outcomes
from tieout.engine.joining import same
from tieout.engine.keys import NEVER, POSITION, position_key
from tieout.engine.materialising import materialised
from tieout.engine.pairing import content_key, excess_is_told, with_nameless_sends
from tieout.engine.scope import Scope

_OUTCOME_RANKS: Final = {"acked": 0, "unknown": 1, "failed": 2}
_IS_WRITTEN: Final = STATE_RANKS["none"]


def sent_by_content(scope: Scope, log: DataFrame | None) -> tuple[DataFrame, DataFrame | None]:
    """Return the attempts, each with a `key` of its own, and the log's data records with the key of their attempt.

    Attempts have the columns of `attempts.attempts_of` and `standing`, the outcome by which effects take them: a failed
    send whose record is written stands as unknown. `log` holds the log's data records, or None.
    """
    rows = own_messages(claimed_rows_of(scope)).withColumn("has_identity", F.col("payload_hash").isNotNull())
    if log is None:
        attempts = with_outcomes(scope, rows.withColumn("log_state", F.lit(None).cast("string")))
        return attempts.withColumn("standing", F.col("outcome")), None
    rows = materialised(rows)
    records = materialised(_with_record_keys(scope, log, rows))
    attempts = with_outcomes(scope, _with_states(rows, records))
    is_written = (F.col("outcome") == "failed") & F.col("is_written")
    standing = F.when(is_written, "unknown").otherwise(F.col("outcome"))
    return attempts.withColumn("standing", standing).drop("is_written"), records


def _with_states(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Return attempts with `log_state`, that of the record at their position or else of theirs, and `is_written`."""
    ranks = F.create_map(*[F.lit(word) for pair in STATE_RANKS.items() for word in pair])
    state = F.struct(
        ranks[F.col("transaction_state")].alias("rank"), F.col("transaction_state").alias("state")
    )
    of_key = records.groupBy(F.col("key").alias("record_key")).agg(
        F.min(F.when(F.col("is_claimed"), state))["state"].alias("state_there"),
        F.min(state)["state"].alias("best_state"),
        F.min(ranks[F.col("transaction_state")]).alias("rank"),
    )
    log_state = F.when(F.col("offset").isNotNull(), F.col("state_there")).otherwise(F.col("best_state"))
    is_written = F.coalesce(F.col("rank") <= _IS_WRITTEN, F.lit(False))
    joined = rows.join(of_key, F.col("key") == F.col("record_key"), how="left")
    return joined.select(*rows.columns, log_state.alias("log_state"), is_written.alias("is_written"))


def _with_record_keys(scope: Scope, log: DataFrame, rows: DataFrame) -> DataFrame:
    """Return records with `key`, `named_id` (their payload, else their sender's), `is_claimed` and `has_identity`.

    By position: a record of another payload than the attempt that names its position is not that attempt's. Records
    that no attempt names are, in the order of the log, those of the attempts of their payload without position; one
    more than these is a copy of the payload's latest attempt, unless it may be somebody else's. One without payload may
    be any send's.
    """
    joined = log.join(_claims_of(log, rows), same(POSITION, "at_"), how="left")
    claimed = joined.drop(*(f"at_{name}" for name in POSITION))
    named_id = F.coalesce("payload_hash", "sent_hash")
    told = {"is_claimed": F.col("key").isNotNull(), "named_id": named_id}
    told["has_identity"] = told["is_claimed"] | F.col("payload_hash").isNotNull()
    named = claimed.withColumns(told).drop("sent_hash")
    free = named.filter(~F.col("is_claimed")).drop("key")
    return named.filter("is_claimed").unionByName(
        _with_payload_keys(scope, free, rows), allowMissingColumns=True
    )


def _claims_of(log: DataFrame, rows: DataFrame) -> DataFrame:
    """Return per position `key` and `sent_hash` of who names it: the attempt of equal payload, else the latest."""
    held = log.select(
        *[F.col(name).alias(f"held_{name}") for name in POSITION], F.col("payload_hash").alias("held_hash")
    )
    is_claim = F.col("offset").isNotNull() & (F.col("claimed") != "failed")
    joined = rows.filter(is_claim).join(held, same(POSITION, "held_"), how="inner")
    is_equal = F.coalesce(F.col("payload_hash") == F.col("held_hash"), F.lit(False))
    differs = F.coalesce(F.col("payload_hash") != F.col("held_hash"), F.lit(False))
    done_at = F.coalesce("completed_at", "attempted_at", F.lit(NEVER).cast("timestamp"))
    latest = F.struct(
        is_equal.alias("equal"),
        (F.col("claimed") == "acked").alias("acked"),
        done_at.alias("at"),
        "key",
        "payload_hash",
    )
    by_position = joined.filter(~differs).groupBy(*[F.col(name).alias(f"at_{name}") for name in POSITION])
    best = by_position.agg(F.max(latest).alias("best"))
    return best.select(
        "*", F.col("best.key").alias("key"), F.col("best.payload_hash").alias("sent_hash")
    ).drop("best")


def _with_payload_keys(scope: Scope, records: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the records that no attempt names by position, with the `key` that their payload gives them."""
    at = F.coalesce("attempted_at", F.lit(NEVER).cast("timestamp"))
    in_time = (at, *[F.col(name).asc_nulls_last() for name in (*POSITION, "sequence")], F.col("key"))
    ranks = F.create_map(*[F.lit(word) for pair in _OUTCOME_RANKS.items() for word in pair])
    by_outcome = Window.partitionBy("payload_hash").orderBy(ranks[F.col("claimed")], *in_time)
    known = rows.filter(F.col("payload_hash").isNotNull())
    unplaced = known.filter(F.col("offset").isNull()).select(
        F.col("payload_hash").alias("sent_hash"),
        F.row_number().over(by_outcome).alias("sent_number"),
        F.col("key").alias("unplaced_key"),
    )
    onwards = Window.partitionBy("payload_hash").orderBy(*in_time)
    everything = onwards.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    latest = known.select("payload_hash", F.last("key").over(everything).alias("latest_key")).distinct()
    latest = latest.withColumnRenamed("payload_hash", "latest_hash")
    numbered = records.withColumn(
        "number", F.row_number().over(Window.partitionBy("payload_hash").orderBy(*POSITION))
    )
    is_next = (F.col("payload_hash") == F.col("sent_hash")) & (F.col("number") == F.col("sent_number"))
    joined = numbered.join(unplaced, is_next, how="left").join(
        latest, F.col("payload_hash") == F.col("latest_hash"), how="left"
    )
    skew, stamped = F.lit(scope.contract.clock_skew), F.col("record_timestamp")
    told = excess_is_told(scope, stamped - skew, stamped + skew) & ~F.col("may_be_nameless")
    key = F.coalesce("unplaced_key", F.when(told, F.col("latest_key")), content_key(), position_key())
    nameless = with_nameless_sends(joined, rows.withColumn("standing", F.col("claimed")))
    return nameless.withColumn("key", key).select(*records.columns, "key")
