"""LOG_DUPLICATE, OUTPUT_DUPLICATE, REDELIVERY: one message more than once in the log, in the output, in the reads."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.rule import MessageRule, Need, at
from tieout.engine.multiplicity import repeats
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus

_IS_ATTEMPTED = "attempts"


def copies(scope: Scope) -> Column:
    """Return how many positions hold the message: visible ones, and asserted ones that the log does not cover."""
    if Ledger.LOG not in scope.evidence:
        return F.size("own_positions")
    return F.size(F.array_union("visible", F.array_intersect("asserted", "uncovered_copies")))


def is_inherited(scope: Scope) -> Column:
    """Return whether the message has as many positions as effects: the duplicate came from the log."""
    return copies(scope) >= repeats(scope)


def _logged_twice(scope: Scope) -> Column:
    if scope.contract.identity == Identity.POSITION:
        return F.lit(False)
    return (F.col(_IS_ATTEMPTED) > 0) & (copies(scope) >= 2)


def has_further_effects(scope: Scope) -> Column:
    """Return whether the message has more effects than it may have."""
    return (F.col(_IS_ATTEMPTED) > 0) & (repeats(scope) >= 2)


def _output_locus(scope: Scope) -> Column:
    return F.when(is_inherited(scope), Locus.PRODUCER_TO_BROKER.value).otherwise(Locus.CONSUMER_OR_SINK.value)


def _read_again(_scope: Scope) -> Column:
    return F.col("reads") > F.size("read_positions")


LOG_DUPLICATE = MessageRule(
    BreakClass.LOG_DUPLICATE,
    _logged_twice,
    at(Locus.PRODUCER_TO_BROKER),
    needs=(
        Need(Ledger.LOG),
        Need(Ledger.PRODUCED, ("partition", "offset")),
        Need(Ledger.READ, ("partition", "offset")),
    ),
)
OUTPUT_DUPLICATE = MessageRule(BreakClass.OUTPUT_DUPLICATE, has_further_effects, _output_locus)
REDELIVERY = MessageRule(
    BreakClass.REDELIVERY,
    _read_again,
    at(Locus.BROKER_TO_CONSUMER),
    needs=(Need(Ledger.READ, ("partition", "offset")),),
)
