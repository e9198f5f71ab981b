"""LOST: accepted, due, without effect, and nothing else accounts for it. Jepsen calls it a lost write."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.rule import MessageRule
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger, Locus


def _holds(_scope: Scope) -> Column:
    return F.col("disposition") == "lost"


def _locus(scope: Scope) -> Column:
    """Return where the message went missing, first rule that holds (taxonomy section 4).

    What the consumer's staging has it was handed, whatever was committed since. Without its record in the log, and
    unless it is staged, only the two sides of the acknowledgement are told apart (docs/reference/interpretations.md, 39
    and 140). A part of a fan-out that arrived shows that the rest was there to be read.
    What compaction took, as it was configured to, the broker did not lose: a group that had committed it before did.
    """
    in_sink = F.coalesce("is_staged", F.lit(False)) if Ledger.STAGED in scope.evidence else F.lit(False)
    is_in_log = F.col("written") > 0
    was_jumped = ~F.col("was_handed") & F.coalesce("was_jumped", F.lit(False))
    was_superseded = F.coalesce("is_superseded", F.lit(False))
    was_committed = was_superseded & F.coalesce("was_committed_first", F.lit(False))
    is_broken = F.col("is_missing_in_log") & ~was_superseded
    return (
        F.when(F.col("effect_rows") > 0, Locus.CONSUMER_OR_SINK.value)
        .when(is_broken | F.coalesce("went_unread", F.lit(False)), Locus.BROKER.value)
        .when(in_sink, Locus.SINK.value)
        .when(was_committed, Locus.CONSUMER.value)
        .when(is_in_log & F.coalesce("is_committed", F.lit(False)), Locus.CONSUMER.value)
        .when(is_in_log & was_jumped, Locus.BROKER_TO_CONSUMER.value)
        .when(is_in_log, Locus.UNKNOWN.value)
        .otherwise(Locus.AFTER_ACKNOWLEDGEMENT.value)
    )


LOST = MessageRule(BreakClass.LOST, _holds, _locus)
