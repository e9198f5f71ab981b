"""The producer's side: every send attempt with its message's key and its outcome after transactions are resolved.

Docs: docs/reference/taxonomy.md, section 1, Messages.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.contested import contested_among, with_position_key
from tieout.engine.joining import same
from tieout.engine.keys import NEVER, POSITION, SESSION, TRANSACTION, id_key, placed_offset, row_digest
from tieout.engine.known_contents import LACKING, NULLS
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

STATE_RANKS: Final = {"committed": 0, "none": 1, "open": 2, "aborted": 3}
_ID_SESSION: Final = ("message_id", *SESSION)
_TOLD_OF_ROWS: Final = ("says_failed", "is_contradicted", NULLS, LACKING)
"""What follows from an attempt's other columns, so is no part of what tells it apart."""


def attempts_of(scope: Scope, log: DataFrame | None, contested: DataFrame | None) -> DataFrame:
    """Return one row per send attempt: canonical columns, `key`, `log_state` and the resolved `outcome`.

    `log` holds the log's data records or None, `contested` is `contested_ids_of`, or under `identity: position`
    `contested.contested_positions_of`. `log_state` is the transaction state
    of the record at the attempt's position where that record is this attempt's.
    """
    rows = claimed_rows_of(scope)
    return with_keys(scope, with_outcomes(scope, with_log_state(scope, rows, log, contested)), contested)


def claimed_rows_of(scope: Scope) -> DataFrame:
    """Return the ledger's rows with the offset they really know, their own outcome as `claimed`, and known contents."""
    produced = scope.with_known_contents(Ledger.PRODUCED, scope.rows(Ledger.PRODUCED))
    return produced.select(
        *[F.col(name) for name in produced.columns if name not in ("offset", "outcome")],
        placed_offset(F.col("offset")).alias("offset"),
        F.coalesce(F.lower("outcome"), F.lit("unknown")).alias("claimed"),
    )


def with_log_state(
    scope: Scope, rows: DataFrame, log: DataFrame | None, contested: DataFrame | None = None
) -> DataFrame:
    """Return the attempts with `log_state`, the transaction state of their own record in the log."""
    if log is None:
        return rows.withColumn("log_state", F.lit(None).cast("string"))
    if scope.contract.identity == Identity.POSITION:
        return _with_state_by_position(rows, log, contested)
    held = log.select(
        *[F.col(name).alias(f"held_{name}") for name in POSITION],
        F.col("transaction_state").alias("held_state"),
        F.col("message_id").alias("held_id"),
    )
    joined = rows.join(held, same(POSITION, "held_") & F.col("offset").isNotNull(), how="left")
    is_by_id = scope.contract.identity == Identity.MESSAGE_ID and scope.has(Ledger.LOG, "message_id")
    is_same = F.col("held_id") == F.col("message_id")
    # A failed send asserts no position, so what lies there is its own only where it shows the send's id.
    is_own = F.when(F.col("claimed") == "failed", is_same & F.lit(is_by_id)).otherwise(is_same)
    is_nobodys = is_own.isNull() & (F.col("claimed") != "failed")
    own = joined.select(*rows.columns, F.when(is_own | is_nobodys, F.col("held_state")).alias("log_state"))
    if not is_by_id or not scope.evidence[Ledger.PRODUCED].may_lack_position:
        return own
    return _with_state_by_id(own, held)


def _with_state_by_position(rows: DataFrame, log: DataFrame, contested: DataFrame | None) -> DataFrame:
    """Return the attempts with the state of the record at their position, of several contents where it holds theirs."""
    held = with_position_key(log, contested).select(
        F.col("key").alias("held_key"), F.col("transaction_state").alias("log_state")
    )
    keyed = with_position_key(rows, contested, "earliest")
    is_own = (F.col("key") == F.col("held_key")) & F.col("offset").isNotNull()
    return keyed.join(held, is_own, how="left").drop("key", "held_key")


def _with_state_by_id(rows: DataFrame, held: DataFrame) -> DataFrame:
    """Return the attempts; those without an offset take the state of their id's records that nobody else names."""
    place = [f"held_{name}" for name in POSITION]
    named = rows.filter(F.col("offset").isNotNull()).select(*POSITION).distinct()
    ranks = F.create_map(*[F.lit(word) for pair in STATE_RANKS.items() for word in pair])
    best = F.min(F.struct(ranks[F.col("held_state")].alias("rank"), F.col("held_state").alias("state")))
    by_id = (
        held.filter(F.col("held_id").isNotNull())
        .join(named, same(POSITION, "held_"), how="left_anti")
        .drop(*place)
        .groupBy("held_id")
        .agg(best["state"].alias("state_by_id"))
    )
    is_same = (F.col("message_id") == F.col("held_id")) & F.col("offset").isNull()
    return (
        rows.join(by_id, is_same, how="left")
        .withColumn("log_state", F.coalesce("log_state", "state_by_id"))
        .drop("held_id", "state_by_id")
    )


def with_outcomes(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return the attempts with `outcome`: the transaction's where there is one, else the attempt's own.

    The record in the log decides first, then what any row of the transaction states. A transaction of which nothing is
    stated is unresolved, so unknown; where the source has no `transaction_state` at all, `outcome` is what it says of
    its transactions, and rows that disagree leave theirs unresolved.
    """
    stated = F.lower("transaction_state")
    own_state = F.coalesce("log_state", F.when(stated != "none", stated))
    if not scope.has(Ledger.PRODUCED, "transaction_id"):
        return _resolved(rows, own_state)
    is_member = same(TRANSACTION, "of_") & F.col("transaction_id").isNotNull()
    joined = rows.join(_told_states(scope), is_member, how="left")
    told = F.coalesce("log_state", "told_state")
    state = F.when(F.col("transaction_id").isNotNull(), told).otherwise(own_state)
    return _resolved(joined, state).drop("told_state", *(f"of_{name}" for name in TRANSACTION))


def _told_states(scope: Scope) -> DataFrame:
    """Return per transaction what the ledger itself says of it, as `told_state`; null where its rows' outcomes hold."""
    stated, claimed = F.lower("transaction_state"), F.coalesce(F.lower("outcome"), F.lit("unknown"))
    by_transaction = (
        scope.rows(Ledger.PRODUCED)
        .filter(F.col("transaction_id").isNotNull())
        .groupBy(*[F.col(name).alias(f"of_{name}") for name in TRANSACTION])
    )
    if scope.has(Ledger.PRODUCED, "transaction_state"):
        return by_transaction.agg(told_state(stated).alias("told_state"))
    return by_transaction.agg(F.when(F.min(claimed) != F.max(claimed), "open").alias("told_state"))


def told_state(stated: Column) -> Column:
    """Return the state of a transaction from what its rows state: one that ended it decides, else it is open."""
    committed, aborted = F.bool_or(stated == "committed"), F.bool_or(stated == "aborted")
    return F.when(committed, "committed").when(aborted, "aborted").otherwise("open")


def _resolved(rows: DataFrame, state: Column) -> DataFrame:
    """Return the attempts with their resolved `outcome`, given the state of each one's transaction or null.

    `says_failed` is what the attempt itself says; `is_contradicted`, that its transaction says otherwise.
    """
    outcome = (
        F.when((state == "committed") & (F.col("claimed") != "failed"), "acked")
        .when(state == "aborted", "failed")
        .when(state == "open", "unknown")
        .otherwise(F.col("claimed"))
    )
    says_failed = F.col("claimed") == "failed"
    told = {
        "outcome": outcome,
        "says_failed": says_failed,
        "is_contradicted": F.coalesce(says_failed & (state == "committed"), F.lit(False)),
    }
    return rows.withColumns(told).drop("claimed")


def with_keys(scope: Scope, rows: DataFrame, contested: DataFrame | None) -> DataFrame:
    """Return the attempts with `key`, one value per message, and `has_identity`.

    A row without an id is the message of its position, and of its content where several were sent there; one without
    position either is a message of its own.
    """
    has_id, is_placed = F.col("message_id").isNotNull(), F.col("offset").isNotNull()
    may_lack_identity = True
    if scope.contract.identity == Identity.POSITION:
        has_identity = is_placed
        known = with_position_key(rows.filter(is_placed), contested, "earliest")
    elif scope.evidence[Ledger.PRODUCED].may_lack_id:
        has_identity = has_id | is_placed
        may_lack_identity = scope.evidence[Ledger.PRODUCED].may_lack_identity
        nameless = rows.filter(~has_id & is_placed)
        by_position = with_position_key(nameless, contested_among(nameless), "earliest")
        known = _with_id_keys(scope, rows.filter(has_id), contested).unionByName(by_position)
    else:
        has_identity, may_lack_identity = has_id, False
        known = _with_id_keys(scope, rows, contested)
    named = known.withColumn("has_identity", F.lit(True))
    if not may_lack_identity:
        return named
    own = own_messages(rows.filter(~has_identity))
    return named.unionByName(own.withColumn("has_identity", F.lit(False)))


def own_messages(rows: DataFrame) -> DataFrame:
    """Return rows that are each a message by itself, with a key of its own that depends on its content alone."""
    content = row_digest(name for name in rows.columns if name not in _TOLD_OF_ROWS)
    among_equals = Window.partitionBy("row_digest").orderBy("row_digest")
    number = F.row_number().over(among_equals).cast("string")
    keyed = rows.withColumn("row_digest", content)
    return keyed.withColumn("key", F.concat(F.lit("r:"), "row_digest", F.lit("#"), number)).drop("row_digest")


def _with_id_keys(scope: Scope, rows: DataFrame, contested: DataFrame | None) -> DataFrame:
    """Return attempts keyed by id: with the session where ids are scoped by it, with the content where ids are reused.

    Sessions of one id that share a payload are one message, and a session without any payload joins the earliest; what
    is left are different messages under one id (docs/reference/interpretations.md, 7).
    """
    if scope.contract.id_scope == "session":
        return rows.withColumn("key", F.concat(F.lit("s:"), F.to_json(F.struct(*SESSION, "message_id"))))
    if contested is None:
        return rows.withColumn("key", id_key())
    by_content = F.concat(
        F.lit("c:"), F.to_json(F.struct("message_id", F.col("of_content").alias("content")))
    )
    return (
        rows.join(_contents_of(rows, contested), same(_ID_SESSION, "of_"), how="left")
        .withColumn("key", F.when(F.col("of_content").isNotNull(), by_content).otherwise(id_key()))
        .drop("of_content", *(f"of_{name}" for name in _ID_SESSION))
    )


def contested_ids_of(scope: Scope) -> DataFrame | None:
    """Return the ids that were attempted with more than one payload, as `contested_id`, or None where none was."""
    is_by_id = scope.contract.identity == Identity.MESSAGE_ID and scope.contract.id_scope == "global"
    if not is_by_id or not scope.has(Ledger.PRODUCED, "payload_hash"):
        return None
    found = materialised(
        scope.rows(Ledger.PRODUCED)
        .filter(F.col("message_id").isNotNull())
        .groupBy(F.col("message_id").alias("contested_id"))
        .agg(F.min("payload_hash").alias("low"), F.max("payload_hash").alias("high"))
        .filter(F.col("low") != F.col("high"))
        .select("contested_id")
    )
    return None if found.isEmpty() else found


def _contents_of(rows: DataFrame, contested: DataFrame) -> DataFrame:
    """Return per session of a reused id the content that names its message; ids that are one message are left out.

    Columns: those of `_ID_SESSION` with the prefix `of_`, and `of_content`, the least payload of the message.
    """
    sessions = (
        rows.join(contested, F.col("message_id") == F.col("contested_id"), how="left_semi")
        .groupBy(*_ID_SESSION)
        .agg(F.min("attempted_at").alias("began_at"), F.collect_set("payload_hash").alias("payloads"))
    )
    nothing = F.array().cast("array<array<string>>")

    def joined(groups: Column, payloads: Column) -> Column:
        touching = F.filter(groups, lambda group: F.arrays_overlap(group, payloads))
        others = F.filter(groups, lambda group: ~F.arrays_overlap(group, payloads))
        return F.concat(others, F.array(F.array_union(F.flatten(touching), payloads)))

    began = F.coalesce("began_at", F.lit(NEVER).cast("timestamp"))
    known = F.size("payloads") > 0
    groups = sessions.groupBy("message_id").agg(
        F.aggregate(F.collect_list(F.when(known, F.col("payloads"))), nothing, joined).alias("groups"),
        F.min(F.when(known, F.struct(began.alias("began"), "payloads")))["payloads"].alias("earliest"),
    )
    reused = groups.filter(F.size("groups") > 1).withColumnRenamed("message_id", "reused_id")
    shown = F.when(known, F.col("payloads")).otherwise(F.col("earliest"))
    group = F.filter("groups", lambda group: F.arrays_overlap(group, shown))[0]
    return sessions.join(reused, F.col("message_id") == F.col("reused_id"), how="inner").select(
        *[F.col(name).alias(f"of_{name}") for name in _ID_SESSION], F.array_min(group).alias("of_content")
    )
