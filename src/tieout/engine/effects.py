"""The consumer's side: rows of the judged group's output, and the message each of them belongs to.

Docs: docs/reference/taxonomy.md, section 1, Messages (how effects match) and Effects.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.attempts import told_state
from tieout.engine.claims import HELD, owners_of, sent_claims, with_owner
from tieout.engine.contested import with_position_key
from tieout.engine.keys import POSITION, id_key, placed_offset, position_key, row_digest
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger


def consumer_rows_of(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return the group's rows of `delivered` or `read`, with `effect_state` in {ok, unknown, none}.

    Rows that name another group are somebody else's output and are set aside; rows that name none are the group's.
    """
    rows = scope.rows(ledger)
    outcome = F.coalesce(F.lower("outcome"), F.lit("ok"))
    sink_state = F.col("sink_state")
    # Where effects have keys, a row without one may be any of them.
    needs_key = ledger == scope.effect_ledger and scope.contract.multiplicity.effect_key is not None
    is_keyless = F.col("effect_key").isNull() if needs_key else F.lit(False)
    state = (
        F.when((outcome == "failed") | (sink_state == "aborted"), "none")
        .when((outcome == "unknown") | (sink_state == "open") | is_keyless, "unknown")
        .otherwise("ok")
    )
    return (
        _with_sink_states(scope, ledger, rows.filter(scope.is_ours()))
        .withColumns({"offset": placed_offset(F.col("offset")), "effect_state": state})
        .drop("sink_state")
    )


def set_aside_rows_of(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return the rows of `filtered`, `dead_letters` or `staged`, with `effect_state` in {ok, unknown, none}.

    Like an output, a row counts only where a reader of committed data sees it: one of an aborted transaction is none,
    one of an open transaction may become one. A row that says nothing of a transaction is in none.
    """
    own = F.coalesce(F.lower("transaction_state"), F.lit("none"))
    state = F.when(own == "aborted", "none").when(own == "open", "unknown").otherwise("ok")
    return scope.rows(ledger).withColumn("effect_state", state)


def _with_sink_states(scope: Scope, ledger: Ledger, rows: DataFrame) -> DataFrame:
    """Return rows with `sink_state`, their sink transaction's: what the row says, else what another row of it says.

    A transaction of which no row says more is unresolved, unless the source has no `transaction_state` to say it with.
    """
    own = F.coalesce(F.lower("transaction_state"), F.lit("none"))
    if not scope.has(ledger, "transaction_id", "transaction_state"):
        return rows.withColumn("sink_state", own)
    transactions = (
        rows.filter(F.col("transaction_id").isNotNull())
        .groupBy(F.col("transaction_id").alias("told_id"))
        .agg(told_state(own).alias("told"))
    )
    joined = rows.join(transactions, F.col("transaction_id") == F.col("told_id"), how="left")
    is_told = F.col("told").isNull() | own.isin("committed", "aborted")
    return joined.withColumn("sink_state", F.when(is_told, own).otherwise(F.col("told"))).drop(
        "told_id", "told"
    )


def with_first_reads(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return keyed reads with `effect_state` `again` where a message had been read at the position before.

    Where only reads are known, reading a position again is no second effect; what else was read there, as at a position
    that was written over or that a mirror has, is another message's.
    """
    held = F.coalesce("payload_hash", F.max("payload_hash").over(Window.partitionBy(*POSITION)))
    is_same = held if scope.contract.identity == Identity.CONTENT else F.col("key")
    ties = [F.col(name) for name in ("delivery_sequence", "consumer_id", "generation")]
    again = Window.partitionBy(*POSITION, "effect_state", "read_before").orderBy(
        F.col("processed_at").asc_nulls_last(), *ties, "message_id", "payload_hash"
    )
    is_again = (
        F.col("offset").isNotNull() & (F.row_number().over(again) > 1) & (F.col("effect_state") == "ok")
    )
    state = F.when(is_again, "again").otherwise(F.col("effect_state"))
    return rows.withColumn("read_before", is_same).withColumn("effect_state", state).drop("read_before")


def reused_ids_of(scope: Scope, attempts: DataFrame, contested: DataFrame | None) -> DataFrame | None:
    """Return the ids that alone do not say which message or content is meant, or None where all ids do.

    `contested` is `attempts.contested_ids_of`; ids that are scoped by session never say it alone. Columns: `reused_id`,
    `candidates` (array of `key`, `payload_hash`, `producer_session`).
    """
    named = attempts.filter(F.col("message_id").isNotNull())
    if scope.contract.identity == Identity.MESSAGE_ID and scope.contract.id_scope == "session":
        reused = named
    elif contested is not None:
        reused = named.join(contested, F.col("message_id") == F.col("contested_id"), how="left_semi")
    else:
        return None
    candidates = F.collect_set(F.struct("key", "payload_hash", "producer_session")).alias("candidates")
    return materialised(reused.groupBy(F.col("message_id").alias("reused_id")).agg(candidates))


def with_id_key(scope: Scope, rows: DataFrame, reused: DataFrame | None) -> DataFrame:
    """Return rows with `by_id`: the key of the message their id (and payload) names, null where that is not decided.

    Where ids are a session's, one that its session did not send is nobody's.
    """
    if reused is None:
        return rows.withColumn("by_id", id_key())
    joined = rows.join(reused, F.col("message_id") == F.col("reused_id"), how="left")
    session, is_of_session = F.col("producer_session"), F.lit(scope.contract.id_scope == "session")
    named = F.filter(
        "candidates",
        lambda c: ~is_of_session | session.isNull() | (c["producer_session"].eqNullSafe(session)),
    )
    fitting = F.filter(named, lambda c: c["payload_hash"] == F.col("payload_hash"))
    fitting_keys = F.array_distinct(F.transform(fitting, lambda c: c["key"]))
    keys = F.array_distinct(F.transform(named, lambda c: c["key"]))
    contents = F.array_compact(F.array_distinct(F.transform(named, lambda c: c["payload_hash"])))
    chosen = (
        F.when(F.col("reused_id").isNull() | (F.size(keys) == 0), id_key())
        .when(F.size(fitting_keys) == 1, fitting_keys[0])
        .when((F.size(keys) == 1) & (F.size(contents) <= 1), keys[0])
    )
    return joined.select(*rows.columns, chosen.alias("by_id"))


def with_record_keys(
    scope: Scope, records: DataFrame, attempts: DataFrame, reused: DataFrame | None
) -> DataFrame:
    """Return log records with the `key` of their message: by position unless the ids contradict, else by their id.

    `named_id` is the message's id, the record's own or that of who sent it there; `is_claimed` says that somebody did.
    """
    if scope.contract.identity == Identity.POSITION:
        keyed = with_position_key(records, reused)
        return keyed.withColumns({"named_id": F.col("message_id"), "is_claimed": F.lit(True)})
    by_id = with_id_key(scope, _with_session(records), reused).drop("producer_session")
    is_claim = ~F.col("says_failed") & (F.col("outcome") != "failed") | (F.col("log_state") == "aborted")
    owners = owners_of(scope, [sent_claims(scope, attempts.filter(is_claim))])
    by_own_id = F.when(F.col("message_id").isNotNull(), F.col("by_id"))
    return (
        with_owner(scope, by_id, owners)
        .withColumns(
            {
                "key": F.coalesce("owner", by_own_id, position_key()),
                "named_id": F.coalesce("message_id", "owner_name"),
                "is_claimed": F.col("owner").isNotNull(),
            }
        )
        .drop("by_id", "owner", "owner_name", "is_nameless", *HELD)
    )


def _with_session(rows: DataFrame) -> DataFrame:
    """Return rows with a `producer_session`, null where their ledger has none."""
    if "producer_session" in rows.columns:
        return rows
    return rows.withColumn("producer_session", F.lit(None).cast("string"))


def with_message_keys(
    scope: Scope, rows: DataFrame, owners: DataFrame, reused: DataFrame | None
) -> DataFrame:
    """Return consumer rows with their message's `key`: by position, else id and payload, else the only content.

    A position decides unless the ids contradict: a position reused after truncation must not move one message's effect
    to another. A row that is tied to no message keeps a key of its own; rows that could belong to several share one per
    id, and these, like what shows neither id nor position, have `has_identity` false.
    """
    placed = with_owner(scope, rows, owners)
    by_position = scope.contract.identity == Identity.POSITION
    if scope.contract.identity != Identity.MESSAGE_ID:
        own = with_position_key(placed, reused if by_position else None)
        by_id: Column = F.when(F.col("offset").isNotNull() & F.lit(by_position), F.col("key"))
        matched = own.withColumns({"by_id": by_id, "is_ambiguous": F.lit(False)}).drop("key")
    else:
        matched = with_id_key(scope, _with_session(placed), reused)
        has_id = F.col("message_id").isNotNull()
        is_ambiguous = has_id & F.col("by_id").isNull() & (F.col("owner").isNull() | F.col("is_nameless"))
        matched = matched.withColumns({"by_id": F.when(has_id, F.col("by_id")), "is_ambiguous": is_ambiguous})
    alone = F.coalesce(
        F.when(F.col("is_ambiguous"), F.concat(F.lit("a:"), "message_id")),
        # Not the key of the position itself: a failed send that names it has that, and does not claim the position.
        F.when(F.col("offset").isNotNull(), F.concat(F.lit("u:"), position_key())),
        F.concat(F.lit("r:"), row_digest(rows.columns)),
    )
    owner_fits = F.col("owner").isNotNull() & ~F.col("is_ambiguous")
    if by_position:
        owner_fits &= F.col("owner") == F.col("by_id")
    # A record that shows no id and that nobody claims says less about a row than the row's own id does.
    is_outweighed = F.col("is_nameless") & F.col("by_id").isNotNull()
    key = F.when(owner_fits & ~is_outweighed, F.col("owner")).otherwise(F.coalesce("by_id", alone))
    return (
        matched.withColumn("key", key)
        .withColumn("has_identity", owner_fits | F.col("by_id").isNotNull() | _is_known_by_position())
        .select(
            *rows.columns,
            "key",
            "has_identity",
            F.when(owner_fits, F.col("held_state")).alias("held_state"),
            F.when(owner_fits, F.col("held_until")).alias("open_until"),
            F.when(owner_fits, F.col("held_at")).alias("held_at"),
            F.coalesce(F.col("held_state") == "aborted", F.lit(False)).alias("is_of_aborted"),
            "is_ambiguous",
        )
    )


def _is_known_by_position() -> Column:
    """Return whether a row without an id shows at least the position it came from."""
    return F.col("message_id").isNull() & F.col("offset").isNotNull()
