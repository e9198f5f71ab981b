"""The producer's side: every send attempt with its message's key and its outcome after transactions are resolved.

Docs: docs/reference/taxonomy.md, section 1, Messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

POSITION = ("topic", "partition", "offset")


def placed_offset(offset: Column) -> Column:
    """Return the offset, or null where the client reported none (Kafka's -1 with acks=0)."""
    return F.when(offset >= 0, offset)


def attempts_of(scope: Scope, log: DataFrame | None) -> DataFrame:
    """Return one row per send attempt: canonical columns, `key`, `log_state` and the resolved `outcome`.

    `log` holds the log's data records or None. `log_state` is the transaction state of the record at the attempt's
    position where that record is this attempt's; `holds_other` marks a position that now holds another's.
    """
    produced = scope.rows(Ledger.PRODUCED)
    rows = produced.select(
        *[F.col(name) for name in produced.columns if name not in ("offset", "outcome")],
        placed_offset(F.col("offset")).alias("offset"),
        F.coalesce(F.lower("outcome"), F.lit("unknown")).alias("claimed"),
    )
    return with_keys(scope, with_outcomes(scope, with_log_state(rows, log)))


def with_log_state(rows: DataFrame, log: DataFrame | None) -> DataFrame:
    """Return the attempts with what the log holds at their position: `log_state` and `holds_other`."""
    if log is None:
        return rows.withColumns({"log_state": F.lit(None).cast("string"), "holds_other": F.lit(False)})
    held = log.select(
        *[F.col(name).alias(f"held_{name}") for name in POSITION],
        F.col("transaction_state").alias("held_state"),
        F.col("message_id").alias("held_id"),
    )
    same_place = F.lit(True)
    for name in POSITION:
        same_place = same_place & F.col(name).eqNullSafe(F.col(f"held_{name}"))
    joined = rows.join(held, same_place & F.col("offset").isNotNull(), how="left")
    is_other = F.coalesce(F.col("held_id") != F.col("message_id"), F.lit(False))
    return joined.select(
        *rows.columns,
        F.when(~is_other, F.col("held_state")).alias("log_state"),
        is_other.alias("holds_other"),
    )


def with_outcomes(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return the attempts with `outcome`: the transaction's where there is one, else the attempt's own.

    The log's state decides first, then the ledger's `transaction_state`, then the rows of the transaction if they
    agree; a transaction whose rows disagree is unresolved, so unknown.
    """
    own_state = F.coalesce(
        F.when(F.col("log_state") != "none", F.col("log_state")), F.lower("transaction_state")
    )
    rows = rows.withColumn("own_state", F.when(own_state != "none", own_state))
    if not scope.has(Ledger.PRODUCED, "transaction_id"):
        return _resolved(rows, F.col("own_state"))
    session = [F.col(name) for name in ("producer_id", "producer_session", "transaction_id")]
    transactions = (
        rows.filter(F.col("transaction_id").isNotNull())
        .groupBy(*[column.alias(f"of_{i}") for i, column in enumerate(session)])
        .agg(
            F.bool_or(F.col("log_state") == "committed").alias("log_committed"),
            F.bool_or(F.col("log_state") == "aborted").alias("log_aborted"),
            F.bool_or(F.col("log_state") == "open").alias("log_open"),
            F.min("own_state").alias("least"),
            F.max("own_state").alias("most"),
            F.min("claimed").alias("least_claim"),
            F.max("claimed").alias("most_claim"),
        )
        .withColumn("resolved", _transaction_state())
        .select("of_0", "of_1", "of_2", "resolved")
    )
    same = F.lit(True)
    for i, column in enumerate(session):
        same = same & column.eqNullSafe(F.col(f"of_{i}"))
    joined = rows.join(transactions, same & F.col("transaction_id").isNotNull(), how="left")
    state = F.when(F.col("transaction_id").isNotNull(), F.col("resolved")).otherwise(F.col("own_state"))
    return _resolved(joined, state)


def _transaction_state() -> Column:
    """Return one state a transaction: the log's, else the ledger's own where its rows agree, else `open`."""
    agrees = F.col("least") == F.col("most")
    same_claim = F.col("least_claim") == F.col("most_claim")
    return (
        F.when(F.col("log_committed"), "committed")
        .when(F.col("log_aborted"), "aborted")
        .when(F.col("log_open"), "open")
        .when(agrees, F.col("least"))
        .when(F.col("least").isNotNull(), "open")
        .when(~same_claim, "open")
    )


def _resolved(rows: DataFrame, state: Column) -> DataFrame:
    """Return the attempts with `outcome` and `is_aborted`, given the state of each one's transaction or null."""
    outcome = (
        F.when((state == "committed") & (F.col("claimed") != "failed"), "acked")
        .when(state == "aborted", "failed")
        .when(state == "open", "unknown")
        .otherwise(F.col("claimed"))
    )
    return rows.withColumns(
        {"outcome": outcome, "is_aborted": F.coalesce(state == "aborted", F.lit(False))}
    ).drop("own_state", "claimed", "resolved", "of_0", "of_1", "of_2")


def with_keys(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return the attempts with `key`, one value per message, and `has_identity`.

    A row without an id is the message of its position; one without position either is a message of its own.
    """
    has_id, is_placed = F.col("message_id").isNotNull(), F.col("offset").isNotNull()
    may_lack_identity = True
    if scope.contract.identity == Identity.POSITION:
        has_identity = is_placed
        known = rows.filter(is_placed).withColumn("key", position_key())
    elif scope.evidence[Ledger.PRODUCED].may_lack_id:
        has_identity = has_id | is_placed
        may_lack_identity = scope.evidence[Ledger.PRODUCED].may_lack_identity
        by_position = rows.filter(~has_id & is_placed).withColumn("key", position_key())
        known = _with_id_keys(scope, rows.filter(has_id)).unionByName(by_position)
    else:
        has_identity, may_lack_identity = has_id, False
        known = _with_id_keys(scope, rows)
    named = known.withColumn("has_identity", F.lit(True))
    if not may_lack_identity:
        return named
    own = _own_messages(rows.filter(~has_identity))
    return named.unionByName(own.withColumn("has_identity", F.lit(False)))


def position_key() -> Column:
    """Return the key of a message that is known by its position."""
    return F.concat(F.lit("p:"), F.to_json(F.struct(*POSITION)))


def id_key() -> Column:
    """Return the key of a message whose id is used for nothing else."""
    return F.concat(F.lit("m:"), F.col("message_id"))


def _own_messages(rows: DataFrame) -> DataFrame:
    """Return rows without an identity, each with a key of its own that depends on its content alone."""
    content = F.sha2(F.to_json(F.struct(*[F.col(name) for name in sorted(rows.columns)])), 256)
    among_equals = Window.partitionBy("row_digest").orderBy("row_digest")
    number = F.row_number().over(among_equals).cast("string")
    keyed = rows.withColumn("row_digest", content)
    return keyed.withColumn("key", F.concat(F.lit("r:"), "row_digest", F.lit("#"), number)).drop("row_digest")


def _with_id_keys(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return attempts keyed by id: with the session where ids are scoped by it, with the content where ids are reused.

    A session's content is its earliest payload hash; another one in the same session is corruption, not reuse. One
    content, or none, across sessions is one message sent again.
    """
    if scope.contract.id_scope == "session":
        return rows.withColumn(
            "key", F.concat(F.lit("s:"), F.to_json(F.struct("producer_id", "producer_session", "message_id")))
        )
    if not scope.has(Ledger.PRODUCED, "payload_hash"):
        return rows.withColumn("key", id_key())
    session = Window.partitionBy("message_id", "producer_id", "producer_session")
    earliest = F.min(F.when(F.col("payload_hash").isNotNull(), F.struct("attempted_at", "payload_hash")))
    by_id = Window.partitionBy("message_id")
    reused = F.size(F.collect_set("content").over(by_id)) > 1
    by_content = F.to_json(F.struct("message_id", "content"))
    return (
        rows.withColumn("content", earliest.over(session)["payload_hash"])
        .withColumn("key", F.when(reused, F.concat(F.lit("c:"), by_content)).otherwise(id_key()))
        .drop("content")
    )
