"""What events tell of their message: counts, firsts and lasts, and sets of values, as aggregates over its events.

They come in groups, each with whether the evidence has any event that can tell it.
Docs: docs/reference/taxonomy.md, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.asserting import shows_position
from tieout.engine.events import ATTEMPT, DEAD_LETTER, EFFECT, FILTERED, PREPARED, READ, RECORD, STAGED
from tieout.engine.keys import NEVER, TRANSACTION
from tieout.engine.known_contents import LACKING, NULLS, SHOWING, SIDES
from tieout.engine.meetings import SHOWN_MARKS, marks_of
from tieout.engine.multiplicity import fan_out_facts, fans_out, set_aside_key_facts
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

Groups: TypeAlias = list[tuple[bool, dict[str, Column]]]
"""Columns by name, in groups, each with whether the evidence can tell them."""


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


def facts_of(scope: Scope, kinds: Collection[str]) -> Groups:
    """Return the facts that rules ask for, given which kinds of events there are."""
    has_records, has_reads = RECORD in kinds, READ in kinds
    names_intended = scope.has(Ledger.PRODUCED, "intended_partition")
    return [
        (True, _attempt_facts(scope)),
        (True, {SHOWN_MARKS: marks_of(scope)}),
        (scope.contract.identity == Identity.CONTENT, _content_facts()),
        (names_intended, _intention_facts()),
        (scope.contract.ordering == "key" and scope.has(Ledger.PRODUCED, "completed_at"), _answer_facts()),
        (scope.contract.ordering == "key", _undated_facts()),
        (has_records, _record_facts() | _origin_facts(scope)),
        (True, _effect_facts(scope)),
        (has_reads, _read_facts()),
        (has_reads and scope.contract.is_queue, {"last_read_at": F.max(_when(_is(READ), F.col("at")))}),
        (has_records or has_reads, {"open_seen_at": _open_seen_at(scope, _is_effect(scope))}),
        (FILTERED in kinds, {"is_filtered": F.bool_or(_is(FILTERED) & (F.col("state") == "ok"))}),
        (DEAD_LETTER in kinds, {"is_dead_lettered": F.bool_or(_is(DEAD_LETTER) & (F.col("state") == "ok"))}),
        (STAGED in kinds, {"is_staged": F.bool_or(_is(STAGED))}),
        (STAGED in kinds, {"is_prepared": F.bool_or(_is(STAGED) & (F.col("state") == PREPARED))}),
        (FILTERED in kinds or DEAD_LETTER in kinds, _set_aside_facts(scope)),
        *_known_contents(scope),
    ]


def _attempt_facts(scope: Scope) -> dict[str, Column]:
    attempt, inside = _is(ATTEMPT), scope.in_window(F.col("at"))
    outcome, placed = F.col("state"), F.col("offset").isNotNull()
    sent = F.struct("at", "sequence", "producer_id", "producer_session")
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
        "is_roughly_dated": F.coalesce(
            F.bool_or(attempt & (F.col("at").isNull() | F.coalesce("is_approximate", F.lit(False)))),
            F.lit(False),
        ),
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
        "attempt_place": F.min(_when(attempt, F.struct("at", _place().alias("place")))),
    }


def _content_facts() -> dict[str, Column]:
    return {
        "shown_hash": F.min("payload_hash"),
        "may_be_met_early": F.coalesce(F.bool_or("may_be_met_early"), F.lit(False)),
    }


def _intention_facts() -> dict[str, Column]:
    attempt, intended = _is(ATTEMPT), F.col("intended_partition")
    began = F.coalesce("at", F.lit(NEVER).cast("timestamp"))
    is_elsewhere = attempt & (F.col("state") != "failed") & (F.col("partition") != intended)
    return {
        "intended_partition": F.min(_when(attempt, F.struct(began, intended)))["intended_partition"],
        "is_misrouted": F.coalesce(F.bool_or(is_elsewhere), F.lit(False)),
    }


def _answer_facts() -> dict[str, Column]:
    """Return when the message was first acknowledged; when a send that timed out was written nobody knows."""
    is_acked = _is(ATTEMPT) & (F.col("state") == "acked")
    return {"completed_at": F.min(_when(is_acked, F.col("completed_at")))}


def _undated_facts() -> dict[str, Column]:
    """Return the session and number of the first send that says no time: they order it without one."""
    is_undated = _is(ATTEMPT) & F.col("at").isNull() & (F.col("state") != "failed")
    sent = F.struct("at", "sequence", "producer_id", "producer_session")
    return {"first_undated": F.min(_when(is_undated, sent))}


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


def _is_set_aside_row() -> Column:
    return _is(FILTERED) | _is(DEAD_LETTER)


def _set_aside_facts(scope: Scope) -> dict[str, Column]:
    """Return how many rows set the message aside, and how many would if their transaction had been committed."""
    row, state = _is_set_aside_row(), F.col("state")
    return set_aside_key_facts(scope, row & (state == "ok")) | {
        "set_aside_rows": F.count_if(row & (state == "ok")),
        "open_set_aside_rows": F.count_if(row & (state == "unknown")),
        "aborted_set_aside_rows": F.count_if(row & (state == "none")),
    }


def _effect_kind(scope: Scope) -> str:
    has_effects = scope.effect_ledger == Ledger.DELIVERED or scope.contract.identity == Identity.CONTENT
    return EFFECT if has_effects else READ


def _is_effect(scope: Scope) -> Column:
    """Return whether the event is a certain effect."""
    return _is(_effect_kind(scope)) & (F.col("state") == "ok")


def _effect_facts(scope: Scope) -> dict[str, Column]:
    row, ok = _is(_effect_kind(scope)), F.col("state") == "ok"
    effect, at = _is_effect(scope), F.col("at")
    inside = scope.in_window(at)
    is_possible = row & F.col("state").isin("ok", "unknown")
    may_lack = scope.evidence[scope.effect_ledger].may_lack_position
    unplaced = F.count_if(effect & F.col("offset").isNull() & F.lit(may_lack))
    return fan_out_facts(scope, effect, row & (F.col("state") == "unknown"), _is(ATTEMPT)) | {
        "effect_rows": F.count_if(effect),
        "effect_rows_in": F.count_if(effect & inside),
        "possible_effects": F.count_if(row & (F.col("state") == "unknown")),
        "unplaced_effects": unplaced,
        "first_seen_at": F.coalesce(
            F.min(_when(effect & inside, at)),
            F.min(_when(is_possible & inside, at)),
            F.min(_when(is_possible, at)),
        ),
        "effect_seen_at": F.coalesce(F.min(_when(effect & inside, at)), F.min(_when(effect, at))),
        "is_ambiguous": F.coalesce(
            F.bool_or(
                F.col("is_ambiguous") & (is_possible | (_is_set_aside_row() & (F.col("state") != "none")))
            ),
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
    }


def _origin_facts(scope: Scope) -> dict[str, Column]:
    """Return what the log has where the message's effects come from."""
    effect, held = _is_effect(scope), F.col("held_state")
    return {
        "is_from_record": F.coalesce(F.bool_or(effect & held.isNotNull()), F.lit(False)),
        "from_record_at": F.min(_when(effect, F.col("held_at"))),
        "is_from_written": F.coalesce(F.bool_or(effect & held.isin("none", "committed")), F.lit(False)),
        "is_from_aborted": F.coalesce(F.bool_or(effect & (held == "aborted")), F.lit(False)),
    }


def _read_facts() -> dict[str, Column]:
    return {
        "reads": F.count_if(_was_given() & F.col("offset").isNotNull()),
        "placed_reads": F.count_if(_is(READ) & shows_position()),
        "was_handed": F.coalesce(F.bool_or(_was_handed()), F.lit(False)),
        "is_read_committed": F.bool_or(_is(READ) & F.col("is_committed_read")),
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


def sets_of(scope: Scope, kinds: Collection[str]) -> Groups:
    """Return the values of which a message keeps the distinct ones; null in an event that has none."""
    attempt, state, placed = _is(ATTEMPT), F.col("state"), F.col("offset").isNotNull()
    asserts = placed & ((attempt & (state != "failed")) | _is_written() | (_is(READ) & shows_position()))
    has_records, effect = RECORD in kinds, _is_effect(scope)
    names_intended = scope.has(Ledger.PRODUCED, "intended_partition")
    names_readers = any(scope.has(scope.effect_ledger, name) for name in ("consumer_id", "generation"))
    return [
        (scope.has(Ledger.PRODUCED, "transaction_id"), _transactions()),
        (names_intended, {"intended_partitions": _when(attempt, F.col("intended_partition"))}),
        (
            has_records,
            {
                "uncovered_copies": _when(asserts & ~F.col("is_log_covered"), _position()),
                "visible": _when(_is(RECORD) & F.col("is_visible"), _position()),
            },
        ),
        (
            True,
            {
                "asserted": _when(asserts, _position()),
                "effect_positions": _when(effect & placed, _position()),
            },
        ),
        (names_readers, {"effect_readers": _when(effect, F.struct("consumer_id", "generation"))}),
        (READ in kinds, {"read_positions": _when(_was_given() & placed, _position())}),
        *_contents(scope),
    ]


def _transactions() -> dict[str, Column]:
    state, transaction = F.col("state"), F.struct(*TRANSACTION)
    in_transaction = _is(ATTEMPT) & F.col("transaction_id").isNotNull()
    is_doubtful = in_transaction & (state == "unknown") & ~F.col("says_failed")
    return {
        "transactions": _when(in_transaction & (state != "failed"), transaction),
        "unknown_transactions": _when(is_doubtful, transaction),
        "failed_transactions": _when(in_transaction & (state == "failed"), transaction),
    }


def _sides() -> dict[str, Column]:
    """Return per side whether an event shows what a message carried there."""
    is_output = _is_part() | _was_given()
    return dict(zip(SIDES, (_is(ATTEMPT), _is_written(), is_output), strict=True))


def _is_part() -> Column:
    """Return whether the event is a certain effect, where a message may have several."""
    return _is(EFFECT) & (F.col("state") == "ok")


def _known_contents(scope: Scope) -> Groups:
    """Return which contents each side knows to be null, and which its files lack, as bits."""
    of_reads = F.coalesce(F.bit_or(_when(_was_given(), F.col(NULLS))), F.lit(0))
    told: Groups = [(fans_out(scope) and Ledger.READ in scope.evidence, {"read_nulls": of_reads})]
    for (side, condition), ledgers in zip(_sides().items(), SIDES.values(), strict=True):
        shows_any = any(scope.has(ledger, name) for ledger in ledgers for name in CONTENT_COLUMNS)
        may_lack = any(scope.has(ledger, "content") for ledger in ledgers)
        for is_told, name, bits in ((shows_any, "nulls", NULLS), (may_lack, "lacking", LACKING)):
            every = F.coalesce(F.bit_or(_when(condition, F.col(bits))), F.lit(0))
            told.append((is_told, {f"{side}_{name}": every}))
    return told


def _contents(scope: Scope) -> Groups:
    """Return what each side shows of a message's contents, as far as another side may differ.

    The key's hash is always told: it also says what supersedes a record.
    """
    told: Groups = []
    for name in CONTENT_COLUMNS:
        is_compared = name == "key_hash" or sum(scope.has(ledger, name) for ledger in SHOWING) > 1
        for (side, condition), shown_by in zip(_sides().items(), SIDES.values(), strict=True):
            is_shown = any(scope.has(ledger, name) for ledger in shown_by)
            value = _when(condition, F.col(name).cast("string"))
            told.append((is_compared and is_shown, {f"{side}_{name}": value}))
        is_part = is_compared and fans_out(scope) and scope.has(Ledger.DELIVERED, name)
        told.append((is_part, {f"part_{name}": _when(_is_part(), F.col(name).cast("string"))}))
    return told
