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

    Without the log, and without a read that proves what it held, only the two sides of the acknowledgement are told
    apart.
    """
    was_in_log = (F.size("visible") > 0) | (F.col("reads") > 0)
    is_broker = F.col("is_missing_in_log")
    jumped = was_in_log & ~F.coalesce("is_committed", F.lit(False)) & (F.col("reads") == 0)
    at_consumer = was_in_log & (F.coalesce("is_committed", F.lit(False)) | (F.col("reads") > 0))
    in_sink = F.coalesce("is_staged", F.lit(False)) if Ledger.STAGED in scope.evidence else F.lit(False)
    return (
        F.when(is_broker, Locus.BROKER.value)
        .when(jumped, Locus.BROKER_TO_CONSUMER.value)
        .when(at_consumer, Locus.CONSUMER.value)
        .when(in_sink, Locus.SINK.value)
        .otherwise(Locus.AFTER_ACKNOWLEDGEMENT.value)
    )


LOST = MessageRule(BreakClass.LOST, _holds, _locus)
