"""Matching: everything the evidence says about one message, gathered into one row.

Rows of all ledgers that carry a message's key are stacked and aggregated once. Nothing is joined on a key that may
repeat, because repetition is the subject. Docs: docs/reference/taxonomy.md, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import small_side
from tieout.engine.keys import NEVER, TRANSACTION
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import FAN_OUT_COLUMNS, fan_out_facts, fans_out
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

ATTEMPT, RECORD, EFFECT, READ = "attempt", "record", "effect", "read"
FILTERED, DEAD_LETTER, STAGED = "filtered", "dead_letter", "staged"

CONTENTS: Final = ("payload_hash", "key_hash", "header_hash", "record_timestamp")
"""What a message carries that must not change on its way."""

_SHOWN_BY: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.READ)
_EVENT_COLUMNS: Final = (
    "key", "kind", "has_identity", "message_id", "producer_id", "producer_session", "transaction_id", "sequence",
    "topic", "partition", "offset", "intended_partition", "at", "done_at", "state",
    "held_state", "held_at", "open_until", "is_visible",
    "payload_hash", "key_hash", "header_hash", "record_timestamp",
    "consumer_id", "generation", "delivery_sequence", "is_committed_read", "is_ambiguous", "is_log_covered",
    "broker_producer_id", "is_log_append", "says_failed", "is_contradicted",
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
        is_log_append=_is_log_append() if "timestamp_type" in records.columns else F.lit(False),
    )


def _is_log_append() -> Column:
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


def aside_events(rows: DataFrame, kind: str) -> DataFrame:
    """Return rows of `filtered`, `dead_letters` or `staged` as events."""
    return _events(rows, kind, at=F.col("at"))


def _events(rows: DataFrame, kind: str, **values: Column) -> DataFrame:
    """Return rows in the columns every event has; what a ledger does not know is null."""
    chosen: dict[str, Column] = {"kind": F.lit(kind), **values}
    truths = ("is_visible", "has_identity", "is_committed_read", "is_ambiguous", "is_log_covered")
    types = dict.fromkeys((*truths, "is_log_append", "says_failed", "is_contradicted"), "boolean")
    longs = ("sequence", "offset", "generation", "delivery_sequence", "broker_producer_id")
    types |= dict.fromkeys(longs, "bigint") | dict.fromkeys(("partition", "intended_partition"), "int")
    types |= dict.fromkeys(("at", "done_at", "held_at", "open_until", "record_timestamp"), "timestamp")
    columns = []
    fan_out = tuple(FAN_OUT_COLUMNS) if "effect_round" in rows.columns else ()
    types |= FAN_OUT_COLUMNS
    for name in (*_EVENT_COLUMNS, *fan_out):
        column = chosen.get(name, F.col(name) if name in rows.columns else F.lit(None))
        columns.append(column.cast(types.get(name, "string")).alias(name))
    return rows.select(*columns)


def gathered(scope: Scope, events: list[DataFrame]) -> DataFrame:
    """Return one row per message key with every fact the rules need; keys that nobody attempted are among them."""
    stacked = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), events)
    facts = {**_attempt_facts(scope), **_record_facts(), **_effect_facts(scope)}
    told = {name: fact.alias(name) for name, fact in facts.items()}
    sets, nothing = _sets(scope), F.array().cast("array<string>")
    empty = [nothing.alias(name) for name in _empty_sets(scope)]
    if scope.is_large:
        return _with_sets_of_few(stacked, list(told.values()), sets).select("*", *empty)
    collected = [F.collect_set(value).alias(name) for name, value in sets.items()]
    return stacked.groupBy("key").agg(*told.values(), *collected).select("*", *empty)


def _with_sets_of_few(events: DataFrame, facts: list[Column], sets: Mapping[str, Column]) -> DataFrame:
    """Return what `gathered` does where messages are many: sets are collected only of those with one of several values.

    A set whose least value is its greatest is known from the two, which Spark aggregates without an object per message
    and set. Few messages are resent, moved or changed, so few are gathered a second time.
    """
    least = [F.min(value).alias(f"least_{name}") for name, value in sets.items()]
    greatest = [F.max(value).alias(f"greatest_{name}") for name, value in sets.items()]
    # Few messages have two events in one task: to gather before the shuffle would be to sort and gather twice.
    once = materialised(events.repartition("key").groupBy("key").agg(*facts, *least, *greatest))
    has_several = [F.col(f"least_{name}") != F.col(f"greatest_{name}") for name in sets]
    several = once.filter(F.coalesce(reduce(or_, has_several), F.lit(False))).select("key")
    single = {name: _set_of(F.col(f"least_{name}")) for name in sets}
    bounds = [f"{end}_{name}" for name in sets for end in ("least", "greatest")]
    if several.isEmpty():
        return once.withColumns(single).drop(*bounds)
    collected = [F.collect_set(value).alias(f"all_{name}") for name, value in sets.items()]
    repeated = events.join(small_side(several), "key", how="left_semi")
    again = materialised(repeated.groupBy(F.col("key").alias("of_key")).agg(*collected))
    joined = once.join(small_side(again), F.col("key") == F.col("of_key"), how="left")
    chosen = {
        name: F.when(F.col("of_key").isNotNull(), F.col(f"all_{name}")).otherwise(value)
        for name, value in single.items()
    }
    return joined.withColumns(chosen).drop(*bounds, "of_key", *(f"all_{name}" for name in sets))


def _set_of(value: Column) -> Column:
    """Return the set of one value, the empty set of its type where it is null."""
    return F.when(value.isNotNull(), F.array(value)).otherwise(F.slice(F.array(value), 1, 0))


def _is(kind: str) -> Column:
    return F.col("kind") == kind


def _is_written() -> Column:
    """Return whether the event is a record that no transaction holds back or took away."""
    return _is(RECORD) & F.col("state").isin("none", "committed")


def _was_given() -> Column:
    """Return whether the event is a read of a message, as far as it says that it was one."""
    return _is(READ) & F.col("state").isin("ok", "again")


def _was_handed() -> Column:
    """Return whether the event shows that a reader was handed the message, be it only where."""
    return _was_given() | (_is(READ) & F.col("offset").isNotNull())


def _position() -> Column:
    return F.struct("topic", "partition", "offset")


def _place() -> Column:
    return F.struct("topic", "partition")


def _when(condition: Column, value: Column) -> Column:
    return F.when(condition, value)


def _attempt_facts(scope: Scope) -> dict[str, Column]:
    attempt, inside = _is(ATTEMPT), scope.in_window(F.col("at"))
    outcome, placed = F.col("state"), F.col("offset").isNotNull()
    sent = F.struct("at", "sequence", "producer_id", "producer_session")
    began = F.coalesce("at", F.lit(NEVER).cast("timestamp"))
    # A failed send may be the one that is in the log after all: where its record is, or where it knows no position.
    may_be_there = ~placed | F.coalesce(F.col("held_state").isin("none", "committed"), F.lit(False))
    failed_there = attempt & (outcome == "failed") & may_be_there
    facts = {"attempts": F.count_if(attempt), "attempts_in": F.count_if(attempt & inside)}
    for name in ("acked", "failed", "unknown"):
        facts[name] = F.count_if(attempt & (outcome == name))
        facts[f"{name}_in"] = F.count_if(attempt & inside & (outcome == name))
    return facts | {
        "message_id": F.coalesce(F.min(_when(attempt, F.col("message_id"))), F.min("message_id")),
        "has_identity": F.coalesce(F.bool_and("has_identity"), F.lit(True)),
        "first_attempt": F.min(_when(attempt & F.col("at").isNotNull(), sent)),
        "first_sent": F.min(_when(attempt & F.col("at").isNotNull() & (outcome != "failed"), sent)),
        "last_attempt_at": F.max(_when(attempt, F.col("at"))),
        "first_acked": F.min(_when(attempt & (outcome == "acked"), F.struct("at", "done_at"))),
        "last_unknown": F.max(_when(attempt & (outcome == "unknown"), F.struct("at", "done_at"))),
        "is_contradicted": F.coalesce(F.bool_or(attempt & F.col("is_contradicted")), F.lit(False)),
        "failed_there": F.count_if(failed_there),
        "failed_there_in": F.count_if(failed_there & inside),
        "last_failed_there": F.max(_when(failed_there, F.struct("at", "done_at"))),
        "acked_place": F.min(
            _when(attempt & placed & (outcome == "acked"), F.struct("at", _place().alias("place")))
        ),
        "unknown_place": F.min(
            _when(attempt & placed & (outcome == "unknown"), F.struct("at", _place().alias("place")))
        ),
        "intended_partition": F.min(_when(attempt, F.struct(began, "intended_partition")))[
            "intended_partition"
        ],
        "is_misrouted": F.coalesce(
            F.bool_or(attempt & (outcome != "failed") & (F.col("partition") != F.col("intended_partition"))),
            F.lit(False),
        ),
        "attempt_place": F.min(_when(attempt, F.struct("at", _place().alias("place")))),
    }


def _record_facts() -> dict[str, Column]:
    record, state = _is(RECORD), F.col("state")
    return {
        "written": F.count_if(_is_written()),
        "committed": F.count_if(record & (state == "committed")),
        "aborted": F.count_if(record & (state == "aborted")),
        "open": F.count_if(record & (state == "open")),
        "has_idempotent_record": F.bool_or(record & (F.col("broker_producer_id") >= 0)),
        "has_plain_record": F.bool_or(record & (F.col("broker_producer_id") < 0)),
        "is_log_append": F.coalesce(F.bool_or(_is_written() & F.col("is_log_append")), F.lit(False)),
        "record_at": F.min(_when(record, F.col("at"))),
        "undated_records": F.count_if(record & F.col("at").isNull()),
        "record_topic": F.min(_when(record, F.col("topic"))),
    }


def _effect_kind(scope: Scope) -> str:
    has_effects = scope.effect_ledger == Ledger.DELIVERED or scope.contract.identity == Identity.CONTENT
    return EFFECT if has_effects else READ


def _effect_facts(scope: Scope) -> dict[str, Column]:
    row, ok = _is(_effect_kind(scope)), F.col("state") == "ok"
    effect, at = row & ok, F.col("at")
    inside = scope.in_window(at)
    committed_read = _is(READ) & F.col("is_committed_read")
    is_possible = row & F.col("state").isin("ok", "unknown")
    return fan_out_facts(scope, effect, row & (F.col("state") == "unknown"), _is(ATTEMPT)) | {
        "effect_rows": F.count_if(effect),
        "effect_rows_in": F.count_if(effect & inside),
        "possible_effects": F.count_if(row & (F.col("state") == "unknown")),
        "first_seen_at": F.coalesce(
            F.min(_when(effect & inside, at)),
            F.min(_when(is_possible & inside, at)),
            F.min(_when(is_possible, at)),
        ),
        "effect_seen_at": F.coalesce(F.min(_when(effect & inside, at)), F.min(_when(effect, at))),
        "is_ambiguous": F.coalesce(
            F.bool_or(F.col("is_ambiguous") & (is_possible | F.col("kind").isin(FILTERED, DEAD_LETTER))),
            F.lit(False),
        ),
        "first_effect_at": F.min(_when(effect, at)),
        "last_effect": F.max(_when(effect & at.isNotNull(), F.struct("at", "generation", "consumer_id"))),
        "first_effect": F.min(
            _when(
                effect & at.isNotNull(),
                F.struct(
                    "at", "delivery_sequence", "consumer_id", "generation", "topic", "partition", "offset"
                ),
            )
        ),
        "effect_place": F.min(
            _when(
                is_possible & (F.col("topic").isNotNull() | F.col("partition").isNotNull()),
                F.struct((~ok).alias("is_uncertain"), "at", _place().alias("place")),
            )
        ),
        "is_from_record": F.coalesce(F.bool_or(effect & F.col("held_state").isNotNull()), F.lit(False)),
        "from_record_at": F.min(_when(effect, F.col("held_at"))),
        "is_from_written": F.coalesce(
            F.bool_or(effect & F.col("held_state").isin("none", "committed")), F.lit(False)
        ),
        "is_from_aborted": F.coalesce(F.bool_or(effect & (F.col("held_state") == "aborted")), F.lit(False)),
        "open_seen_at": _open_seen_at(scope, effect),
        "reads": F.count_if(_was_given() & F.col("offset").isNotNull()),
        "was_handed": F.coalesce(F.bool_or(_was_handed()), F.lit(False)),
        "is_read_committed": F.bool_or(committed_read),
        "is_filtered": F.bool_or(_is(FILTERED)),
        "is_dead_lettered": F.bool_or(_is(DEAD_LETTER)),
        "is_staged": F.bool_or(_is(STAGED)),
    }


def _open_seen_at(scope: Scope, effect: Column) -> Column:
    """Return when an effect or read showed what was not committed then: in the window where it did, else ever, or null.

    Its transaction was open, or was the reader's own; `delivered` names the sink's transactions, not the producer's.
    A row without position came from the message's records: of a written one and others nobody knows which.
    """
    at, skew, placed = F.col("at"), F.lit(scope.contract.clock_skew), F.col("offset").isNotNull()
    shown, record = effect | _was_handed(), _is(RECORD)
    is_elsewhere = (
        placed & F.col("held_state").isNull() & (_is(READ) | _is(ATTEMPT) & (F.col("state") != "failed"))
    )
    is_of_one = (F.count_if(_is_written()) == 0) | (F.count_if(record) == 1)
    until = F.when(is_of_one & ~F.bool_or(is_elsewhere), F.max(_when(record, F.col("open_until"))))

    def first(inside: Column) -> Column:
        there = F.min(_when(shown & inside & (at < F.col("open_until") - skew), at))
        anywhere = F.min(_when(shown & inside & ~placed, at))
        return F.coalesce(there, F.when(anywhere < until - skew, anywhere))

    inside = scope.in_window(at)
    if not (scope.has(Ledger.READ, "transaction_id") and scope.has(Ledger.PRODUCED, "transaction_id")):
        return F.coalesce(first(inside), first(F.lit(True)))
    wrote, read = (F.collect_set(_when(_is(kind), F.col("transaction_id"))) for kind in (ATTEMPT, READ))
    is_own, in_transaction = F.arrays_overlap(wrote, read), _is(READ) & F.col("transaction_id").isNotNull()
    own_inside, own_ever = (F.min(_when(in_transaction & rows, at)) for rows in (inside, F.lit(True)))
    return F.coalesce(first(inside), F.when(is_own, own_inside), first(F.lit(True)), F.when(is_own, own_ever))


def _sets(scope: Scope) -> dict[str, Column]:
    """Return by name the values of which a message keeps the distinct ones; null in an event that has none."""
    attempt, record, state, placed = _is(ATTEMPT), _is(RECORD), F.col("state"), F.col("offset").isNotNull()
    asserts = placed & ((attempt & (state != "failed")) | _is_written() | (_is(READ) & (state != "none")))
    in_transaction = attempt & F.col("transaction_id").isNotNull()
    is_doubtful = in_transaction & (state == "unknown") & ~F.col("says_failed")
    transaction = F.struct(*TRANSACTION)
    effect = _is(_effect_kind(scope)) & (state == "ok")
    sets = {
        "transactions": _when(in_transaction & (state != "failed"), transaction),
        "unknown_transactions": _when(is_doubtful, transaction),
        "failed_transactions": _when(in_transaction & (state == "failed"), transaction),
        "intended_partitions": _when(attempt, F.col("intended_partition")),
        "uncovered_copies": _when(asserts & ~F.col("is_log_covered"), _position()),
        "asserted": _when(asserts, _position()),
        "visible": _when(record & F.col("is_visible"), _position()),
        "effect_positions": _when(effect & placed, _position()),
        "effect_readers": _when(effect, F.struct("consumer_id", "generation")),
        "read_positions": _when(_was_given() & placed, _position()),
    }
    is_output = (_is(EFFECT) | _is(READ)) & (state == "ok")
    sides = {"sent": attempt, "logged": _is_written(), "output": is_output}
    return sets | {
        f"{side}_{name}": _when(condition, F.col(name).cast("string"))
        for name in _compared_contents(scope)
        for side, condition in sides.items()
    }


def _empty_sets(scope: Scope) -> list[str]:
    """Return the names of the sets that are empty because what they would hold can differ from nothing."""
    others = [name for name in CONTENTS if name not in _compared_contents(scope)]
    return [f"{side}_{name}" for name in others for side in ("sent", "logged", "output")]


def _compared_contents(scope: Scope) -> list[str]:
    """Return the contents that two sides show, and the key, which also says what supersedes a record."""
    return [
        name
        for name in CONTENTS
        if name == "key_hash" or sum(scope.has(ledger, name) for ledger in _SHOWN_BY) > 1
    ]
