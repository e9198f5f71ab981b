"""Classify: each message's primary class, its flags, and where it broke.

Docs: docs/reference/taxonomy.md, section 3. Find, do not judge: no rule here knows the guarantee.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.classes import MESSAGE_RULES
from tieout.engine.classes.duplicates import has_further_effects, is_inherited
from tieout.engine.classes.phantoms import is_aborted_effect, is_orphan
from tieout.engine.classes.settled import is_overdue
from tieout.engine.known_contents import SIDES
from tieout.engine.multiplicity import is_accounted_twice, may_be_doubled
from tieout.engine.scope import Scope
from tieout.model import SET_ASIDE_AND_DELIVERED, BreakClass

# These say that nothing went wrong: they are a class, never a flag beside another.
_DISPOSITION_ONLY: Final[frozenset[BreakClass]] = frozenset(
    {
        BreakClass.DELIVERED,
        BreakClass.RECOVERED,
        BreakClass.NOT_SENT,
    }
)
NO_BREAK: Final[frozenset[BreakClass]] = _DISPOSITION_ONLY | {
    BreakClass.FILTERED,
    BreakClass.DEAD_LETTERED,
    BreakClass.COMPACTED,
}
"""Primary classes that are counted and leave no break behind."""

_ASKED_BY_RULES_ALONE: Final = (
    *[f"{side}_{name}" for side in SIDES for name in ("nulls", "lacking")],
    "read_nulls", *[f"part_{name}" for name in CONTENT_COLUMNS],
    *[f"{side}_{name}" for side in SIDES for name in CONTENT_COLUMNS if (side, name) != ("sent", "key_hash")],
    "intended_partitions", "unknown_transactions", "uncovered_copies", "last_unknown", "may_be_copy", "is_passed",
    "was_jumped", "is_committed", "is_covered_by_log", "is_missing_in_log", "shares_ambiguous_id",
    "due_at", "acknowledged_at", "last_read_at", "may_have_passed_first",
)  # fmt: skip
"""What no later step asks for: contents are most of a message's bytes. Order goes by `sent_key_hash`."""


def classified(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the messages with `class`, `flags`, `locus` and `is_judged_here`; the class is null where none holds.

    What only rules ask for is left out.
    None holds for a log record that nobody attempted and nobody received: it counts in the offset balance alone.
    """
    judged = [rule for rule in MESSAGE_RULES if rule.missing(scope) is None]
    held = F.array(*[F.when(F.coalesce(rule.holds(scope), F.lit(False)), rule.name.value) for rule in judged])
    loci = F.lit(None).cast("string")
    for rule in reversed(judged):
        loci = F.when(F.col("class") == rule.name.value, rule.locus(scope)).otherwise(loci)
    known = messages.withColumn("held", F.array_compact(held)).withColumn("class", F.get("held", F.lit(0)))
    return known.withColumns(
        {"flags": _flags(scope), "locus": loci, "is_judged_here": _is_judged_here(scope)}
    ).drop("held", *_ASKED_BY_RULES_ALONE)


def _is_judged_here(scope: Scope) -> Column:
    """Return whether the class belongs to this window: by its earliest attempt, a phantom by its first effect."""
    is_uncommitted = F.col("class") == BreakClass.PHANTOM_UNCOMMITTED.value
    here = (
        F.when(is_orphan(), scope.holds_message(F.col("first_seen_at")))
        .when(is_aborted_effect(), scope.holds_message(F.col("effect_seen_at")))
        .when(is_uncommitted, scope.holds_message(F.col("open_seen_at")))
    )
    return here.otherwise(F.col("is_owned")) & F.col("class").isNotNull()


def _flags(scope: Scope) -> Column:
    """Return everything else that holds of a message beside its primary class, sorted."""
    never = F.array(*[F.lit(name.value) for name in sorted(_DISPOSITION_ONLY)])
    others = F.array_except(F.slice("held", 2, len(MESSAGE_RULES)), never)
    is_pending = F.array_contains("held", BreakClass.IN_FLIGHT.value)
    has_stray_beside = (F.col("strays") > 0) & (F.col("effect_rows") > 0)
    extras = {
        "OVERDUE": is_pending & is_overdue() & (F.col("acceptance") == "accepted"),
        "POSSIBLE_DUPLICATE": (F.col("attempts") > 0) & (may_be_doubled(scope) | has_stray_beside),
        "FAILED_BUT_WRITTEN": F.col("is_failed_but_written"),
        "PHANTOM_ABORTED": (F.col("acceptance") == "accepted") & F.col("is_from_aborted"),
        "EXPIRED": (F.col("disposition") == "lost") & F.col("is_expired"),
        "inherited": has_further_effects(scope) & is_inherited(scope),
        "partial": (F.col("disposition") == "lost") & (F.col("effect_rows") > 0),
        SET_ASIDE_AND_DELIVERED: (F.col("attempts") > 0) & is_accounted_twice(scope),
        "COMMIT_AHEAD": (F.col("disposition") == "lost") & F.col("is_committed_ahead"),
    }
    named = F.array(*[F.when(F.coalesce(holds, F.lit(False)), name) for name, holds in extras.items()])
    return F.array_sort(F.array_distinct(F.concat(others, F.array_compact(named))))
