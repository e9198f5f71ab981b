"""PHANTOM_UNKNOWN, _ABORTED, _UNCOMMITTED: effects of what was never sent, was taken back, or was not yet committed."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.rule import MessageRule, Need, at
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus


def _is_recorded() -> Column:
    return ((F.col("written") + F.col("aborted") + F.col("open")) > 0) | F.col("is_from_record")


def is_orphan() -> Column:
    """Return whether the row has an effect, or a possible one, and no attempt."""
    return (F.col("attempts") == 0) & ((F.col("effect_rows") > 0) | (F.col("possible_effects") > 0))


def is_aborted_effect() -> Column:
    """Return whether the message has an effect although all its attempts failed."""
    return F.coalesce((F.col("acceptance") == "failed") & (F.col("effect_rows") > 0), F.lit(False))


def origin_is_covered(scope: Scope, record_at: Column) -> Column:
    """Return whether the covered producers would have shown the origin of an effect or record, had there been one.

    They must be all producers of the topic, and cover `record_at`, the log record's time, or where that is null reach
    back as far as an origin may lie: `look_back`, or the topic partition's first record.
    """
    coverage = scope.evidence[Ledger.PRODUCED].coverage
    if not coverage.names_all_producers:
        return F.lit(False)
    skew, seen_at = F.lit(scope.contract.clock_skew), F.col("first_seen_at")
    until = scope.covered_until(Ledger.PRODUCED, seen_at + skew)
    recorded = scope.covered_between(Ledger.PRODUCED, record_at - skew, record_at + skew)
    reaches_back = scope.covered_from(Ledger.PRODUCED, seen_at - F.lit(scope.contract.look_back))
    starts_with_topic = F.coalesce("has_first_record", F.lit(False))
    by_position_only = F.col("message_id").isNull() | F.lit(scope.contract.identity == Identity.POSITION)
    is_named = (
        F.col("has_identity")
        & ~F.col("has_unnamed_sends")
        & ~(by_position_only & F.col("has_unplaced_sends"))
    )
    covered = F.when(_is_recorded() & record_at.isNotNull(), recorded).otherwise(
        until & (reaches_back | starts_with_topic)
    )
    return is_named & covered


def is_phantom(scope: Scope) -> Column:
    """Return whether an effect of the window certainly comes from no covered producer."""
    # An effect that does not say from which of the records it comes may be of any that shows no time.
    of_any = F.when(F.col("undated_records") == 0, F.col("record_at"))
    is_covered = F.coalesce(origin_is_covered(scope, F.coalesce("from_record_at", of_any)), F.lit(False))
    return is_orphan() & (F.col("effect_rows_in") > 0) & is_covered & ~F.col("may_be_copy")


def _unknown_locus(scope: Scope) -> Column:
    has_log = Ledger.LOG in scope.evidence and scope.evidence[Ledger.LOG].coverage.is_sound
    if not has_log:
        return F.when(_is_recorded(), Locus.PRODUCER.value).otherwise(Locus.UNKNOWN.value)
    can_be_found = (F.size("effect_positions") > 0) | F.lit(scope.has(Ledger.LOG, "message_id"))
    absent = F.when(can_be_found, Locus.SINK.value).otherwise(Locus.UNKNOWN.value)
    return F.when(_is_recorded(), Locus.PRODUCER.value).otherwise(absent)


def _uncommitted(_scope: Scope) -> Column:
    return F.col("open_seen_at").isNotNull() & (F.col("attempts") > 0)


PHANTOM_UNKNOWN = MessageRule(BreakClass.PHANTOM_UNKNOWN, is_phantom, _unknown_locus)
PHANTOM_ABORTED = MessageRule(
    BreakClass.PHANTOM_ABORTED, lambda _scope: is_aborted_effect(), at(Locus.CONSUMER_ISOLATION)
)
PHANTOM_UNCOMMITTED = MessageRule(
    BreakClass.PHANTOM_UNCOMMITTED,
    _uncommitted,
    at(Locus.CONSUMER_ISOLATION),
    needs=(
        Need(Ledger.LOG, ("transaction_state", "observed_at")),
        Need(Ledger.LOG, ("broker_producer_id",)),
        Need(Ledger.READ, ("transaction_id",)),
    ),
)
