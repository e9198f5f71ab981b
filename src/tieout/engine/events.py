"""Rows of all ledgers in one shape: what the evidence says about messages, one event a row.

Docs: docs/reference/taxonomy.md, section 1.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.known_contents import LACKING, NULLS
from tieout.engine.multiplicity import FAN_OUT_COLUMNS, fans_out
from tieout.engine.scope import Scope

ATTEMPT, RECORD, EFFECT, READ = "attempt", "record", "effect", "read"
FILTERED, DEAD_LETTER, STAGED = "filtered", "dead_letter", "staged"
PREPARED: Final = "prepared"
_PREPARED: Final = "prepared in checkpoint"
"""How the reason of a staged row begins whose transaction a checkpoint prepared."""

_EVENT_COLUMNS: Final = (
    "key", "kind", "has_identity", "message_id", "producer_id", "producer_session", "transaction_id", "sequence",
    "topic", "partition", "offset", "intended_partition", "at", "done_at", "completed_at", "state",
    "held_state", "held_at", "open_until", "is_visible",
    "payload_hash", "key_hash", "header_hash", "record_timestamp", NULLS, LACKING,
    "consumer_id", "generation", "delivery_sequence", "is_committed_read", "is_ambiguous", "is_log_covered",
    "broker_producer_id", "is_log_append", "says_failed", "is_contradicted", "is_of_aborted",
    "is_approximate", "may_be_met_early",
)  # fmt: skip


def attempt_events(scope: Scope, attempts: DataFrame) -> DataFrame:
    """Return send attempts as events."""
    if fans_out(scope):
        attempts = attempts.withColumn("effect_round", F.lit(None).cast("bigint"))
    return _events(
        attempts, ATTEMPT,
        at=F.col("attempted_at"), done_at=F.coalesce("completed_at", "attempted_at"), state=F.col("outcome"),
        held_state=F.col("log_state"),
    )  # fmt: skip


def record_events(records: DataFrame) -> DataFrame:
    """Return the log's data records as events."""
    return _events(
        records,
        RECORD,
        at=F.col("record_timestamp"),
        state=F.col("transaction_state"),
        is_log_append=is_log_append() if "timestamp_type" in records.columns else F.lit(False),
    )


def is_log_append() -> Column:
    """Return whether the broker stamped the record (`LogAppendTime`), however its source writes it."""
    return F.coalesce(F.lower("timestamp_type").contains("append"), F.lit(False))


def consumer_events(rows: DataFrame, kind: str) -> DataFrame:
    """Return rows of `delivered` or `read` as events."""
    committed = F.lower("isolation") == "read_committed" if "isolation" in rows.columns else F.lit(False)
    return _events(
        rows,
        kind,
        at=F.col("processed_at"),
        state=F.col("effect_state"),
        is_committed_read=F.coalesce(committed, F.lit(False)),
    )


def aside_events(scope: Scope, rows: DataFrame, kind: str) -> DataFrame:
    """Return rows of `filtered`, `dead_letters` or `staged` as events; a staged row may be `prepared`.

    That is one whose reason says that a checkpoint prepared its transaction, which is not known to be committed.
    """
    if fans_out(scope):
        rows = rows.withColumn("effect_round", F.lit(None).cast("bigint"))
    state = F.col("effect_state")
    if kind == STAGED:
        is_committed = F.lower("transaction_state") == "committed"
        is_prepared = F.startswith("reason", F.lit(_PREPARED)) & ~F.coalesce(is_committed, F.lit(False))
        state = F.when(is_prepared, PREPARED).otherwise(state)
    return _events(rows, kind, at=F.col("at"), state=state)


def _events(rows: DataFrame, kind: str, **values: Column) -> DataFrame:
    """Return rows in the columns every event has; what a ledger does not know is null."""
    chosen: dict[str, Column] = {"kind": F.lit(kind), **values}
    truths = ("is_visible", "has_identity", "is_committed_read", "is_ambiguous", "is_log_covered")
    types = dict.fromkeys(
        (
            *truths,
            "is_log_append",
            "says_failed",
            "is_contradicted",
            "is_of_aborted",
            "is_approximate",
            "may_be_met_early",
        ),
        "boolean",
    )
    longs = ("sequence", "offset", "generation", "delivery_sequence", "broker_producer_id")
    types |= dict.fromkeys(longs, "bigint") | dict.fromkeys(("partition", "intended_partition"), "int")
    types |= dict.fromkeys((NULLS, LACKING), "int")
    types |= dict.fromkeys(
        ("at", "done_at", "completed_at", "held_at", "open_until", "record_timestamp"), "timestamp"
    )
    columns = []
    fan_out = tuple(FAN_OUT_COLUMNS) if "effect_round" in rows.columns else ()
    types |= FAN_OUT_COLUMNS
    for name in (*_EVENT_COLUMNS, *fan_out):
        column = chosen.get(name, F.col(name) if name in rows.columns else F.lit(None))
        columns.append(column.cast(types.get(name, "string")).alias(name))
    return rows.select(*columns)
