"""Clocks of two hosts that stand apart: which causes then cannot be proved.

That a commit came before a message was processed, a cause reads off two clocks. Where an effect lies before its send,
its read or the broker's own stamp, one of them is off, and so may the order be. Docs: docs/reference/taxonomy.md,
section 8, 12.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.durations import in_words
from tieout.engine.early import comes_before, early_by
from tieout.engine.events import is_log_append
from tieout.engine.joining import same
from tieout.engine.keys import POSITION
from tieout.engine.matching import Matched
from tieout.engine.scope import Scope
from tieout.model import Cause, Ledger

_COMPARING: Final = tuple(
    cause.value
    for cause in (Cause.COMMIT_BEFORE_PROCESS, Cause.PROCESS_BEFORE_COMMIT, Cause.RETENTION_OVERRUN)
)
"""Causes that hold times of the consumer against times of the broker."""


def with_clocks_apart(
    scope: Scope, breaks: DataFrame, messages: DataFrame, found: Matched
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return breaks whose cause is open where clocks that stand apart would prove it, and what shows that they do.

    `breaks` are `causes.with_causes`, materialised.
    """
    is_comparing = F.col("cause").isin(*_COMPARING)
    if breaks.filter(is_comparing).isEmpty():
        return breaks, ()
    shown = offsets_shown(scope, messages, found)
    if not shown:
        return breaks, ()
    fitting = F.array_union(F.array("cause"), "fitting")
    opened = breaks.withColumns(
        {
            "cause": F.when(is_comparing, Cause.UNKNOWN.value).otherwise(F.col("cause")),
            "admissible": F.when(is_comparing, fitting).otherwise(F.col("admissible")),
        }
    )
    skew = in_words(scope.contract.clock_skew)
    told = (
        f"causes that compare the consumer's clock with the broker's are left open: {'; '.join(shown)}, where "
        f"clock_skew allows {skew}"
    )
    return opened, (told,)


def offsets_shown(scope: Scope, messages: DataFrame, found: Matched) -> list[str]:
    """Return in words which effects lie before what they follow, by more than clocks may differ."""
    distances = {"their sends": messages.agg(F.max(early_by(scope))).collect()[0][0]}
    if Ledger.READ in found.keyed and scope.effect_ledger is not Ledger.READ:
        reads = found.keyed[Ledger.READ].filter(F.col("effect_state").isin("ok", "again"))
        first = reads.groupBy(F.col("key").alias("of_key")).agg(F.min("processed_at").alias("since"))
        distances["their reads"] = _furthest(scope, _effects(scope, found), first)
    if scope.has(Ledger.LOG, "timestamp_type"):
        records = found.keyed[Ledger.LOG].filter(is_log_append())
        first = records.groupBy(F.col("key").alias("of_key")).agg(F.min("record_timestamp").alias("since"))
        distances["the broker's own times of their records"] = max(
            (
                micros
                for micros in (_furthest(scope, _effects(scope, found), first), _furthest_of_quiet(scope))
                if micros is not None
            ),
            default=None,
        )
    return [
        f"effects lie before {what} by up to {in_words(timedelta(microseconds=micros))}"
        for what, micros in distances.items()
        if micros is not None
    ]


def _effects(scope: Scope, found: Matched) -> DataFrame:
    return found.keyed[scope.effect_ledger].filter(F.col("effect_state") == "ok")


def _furthest(scope: Scope, effects: DataFrame, first: DataFrame) -> int | None:
    """Return by how many microseconds an effect lies before what it follows, the most of them; None where none does."""
    joined = effects.select("key", "processed_at").join(first, F.col("key") == F.col("of_key"))
    return _most(scope, joined)


def _furthest_of_quiet(scope: Scope) -> int | None:
    """Return the same of messages that no rule looked at, and their records."""
    beside = scope.beside
    if beside is None or Ledger.LOG not in beside.rows:
        return None
    records = beside.rows[Ledger.LOG].filter(is_log_append())
    stamps = records.select(
        *[F.col(name).alias(f"r_{name}") for name in POSITION], F.col("record_timestamp").alias("since")
    )
    seen = beside.arrived_at().select(*POSITION, "processed_at")
    return _most(scope, beside.computed(seen.join(stamps, same(POSITION, "r_"))))


def _most(scope: Scope, pairs: DataFrame) -> int | None:
    before = comes_before(scope.contract, F.col("processed_at"), F.col("since"))
    distance = F.unix_micros("since") - F.unix_micros("processed_at")
    row = pairs.filter(before).agg(F.max(distance).alias("most")).collect()[0]
    return None if row["most"] is None else int(row["most"])
