"""The classes that are no break, or not yet one: what arrived, what was legally set aside, what is still on its way."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.corrupted import is_content_open
from tieout.engine.classes.phantoms import is_orphan, is_phantom
from tieout.engine.classes.rule import MessageRule, Need, at
from tieout.engine.dispositions import lacks_evidence, may_be_set_aside
from tieout.engine.multiplicity import last_first_effect_at
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus


def _disposed(name: str, *needs: Need) -> MessageRule:
    return MessageRule(BreakClass(name.upper()), lambda _scope: F.col("disposition") == name, needs=needs)


def _set_aside(name: str, ledger: Ledger) -> MessageRule:
    """Return the rule of a ledger that accounts for messages, accepted or not; dead letters come first."""

    def holds(_scope: Scope) -> Column:
        of_unaccepted = F.coalesce(f"is_{name}", F.lit(False)) & _is_unaccepted_without_effect()
        if ledger != Ledger.DEAD_LETTERS:
            of_unaccepted &= ~F.coalesce("is_dead_lettered", F.lit(False))
        return (F.col("disposition") == name) | of_unaccepted

    return MessageRule(BreakClass(name.upper()), holds, needs=(Need(ledger),))


def _is_unaccepted_without_effect() -> Column:
    return F.col("acceptance").isin("failed", "unproven") & (F.col("effect_rows") == 0)


def _is_set_aside() -> Column:
    """Return whether a ledger accounts for a message that was not accepted."""
    is_told = F.coalesce("is_dead_lettered", F.lit(False)) | F.coalesce("is_filtered", F.lit(False))
    return is_told & _is_unaccepted_without_effect()


def _is_pending() -> Column:
    """Return whether an unproven message can still show up: not due, or not absent everywhere."""
    # A dead letter of a transaction that was aborted, or is open, sets nothing aside; but somebody had the message.
    was_had = F.col("aborted_set_aside_rows") + F.col("open_set_aside_rows") > 0
    is_somewhere = (F.col("open") > 0) | F.col("was_handed") | F.coalesce("is_staged", F.lit(False)) | was_had
    is_open = ~F.col("is_due") | is_somewhere
    return (F.col("acceptance") == "unproven") & is_open & ~_is_set_aside()


def _is_undecided(scope: Scope) -> Column:
    """Return whether the evidence that would decide on a message that is not accepted is missing or ambiguous."""
    may_have_effect = (F.col("possible_effects") > 0) & (F.col("effect_rows") == 0)
    may_own = F.col("shares_ambiguous_id") | (F.col("strays") > 0)
    is_unproven = (F.col("acceptance") == "unproven") & (
        may_own | may_have_effect | lacks_evidence(scope) | (may_be_set_aside() & F.col("is_due"))
    )
    may_be_meant = may_have_effect | (may_own & (F.col("effect_rows") == 0))
    return (is_unproven | ((F.col("acceptance") == "failed") & may_be_meant)) & ~_is_set_aside()


def _in_flight(scope: Scope) -> Column:
    return (F.col("disposition") == "in_flight") | (_is_pending() & ~_is_undecided(scope))


def _late(scope: Scope) -> Column:
    return (F.col("acceptance") == "accepted") & (last_first_effect_at(scope) > F.col("deadline"))


def _unverifiable(scope: Scope) -> Column:
    is_orphaned = is_orphan() & ~is_phantom(scope)
    is_untold = (F.col("disposition") == "unverifiable") | _is_undecided(scope)
    return is_untold | is_orphaned | is_content_open(scope)


def _recovered(_scope: Scope) -> Column:
    return (F.col("disposition") == "delivered") & (F.col("acked") == 0)


def _not_sent(scope: Scope) -> Column:
    absent = (F.col("acceptance") == "unproven") & ~_is_pending() & ~_is_undecided(scope)
    failed = (
        (F.col("acceptance") == "failed") & (F.col("effect_rows") == 0) & (F.col("possible_effects") == 0)
    )
    return (failed | absent) & ~_is_set_aside() & ~_is_undecided(scope)


def _misrouted(scope: Scope) -> Column:
    is_sent_elsewhere = F.col("is_misrouted") & (F.col("acceptance") == "accepted")
    if scope.contract.identity == Identity.CONTENT:
        return is_sent_elsewhere  # which of several equal records is the message's, nobody can tell
    intended = F.col("intended_partitions")
    is_elsewhere = F.exists("own_positions", lambda place: ~F.array_contains(intended, place["partition"]))
    return is_sent_elsewhere | ((F.size(intended) > 0) & is_elsewhere)


def is_overdue() -> Column:
    """Return whether a message in flight is older than its deadline in covered evidence."""
    return F.col("is_old_enough")


LATE = MessageRule(BreakClass.LATE, _late, at(Locus.AFTER_ACKNOWLEDGEMENT))
IN_FLIGHT = MessageRule(BreakClass.IN_FLIGHT, _in_flight, at(Locus.UNKNOWN))
UNVERIFIABLE = MessageRule(BreakClass.UNVERIFIABLE, _unverifiable, at(Locus.UNKNOWN))
MISROUTED = MessageRule(
    BreakClass.MISROUTED,
    _misrouted,
    at(Locus.PRODUCER),
    needs=(Need(Ledger.PRODUCED, ("intended_partition", "partition")),),
)
RECOVERED = MessageRule(BreakClass.RECOVERED, _recovered)
DELIVERED = _disposed("delivered")
DEAD_LETTERED = _set_aside("dead_lettered", Ledger.DEAD_LETTERS)
FILTERED = _set_aside("filtered", Ledger.FILTERED)
COMPACTED = _disposed("compacted", Need(Ledger.LOG))
NOT_SENT = MessageRule(BreakClass.NOT_SENT, _not_sent)
