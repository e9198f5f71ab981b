"""Effects before their sends: no two clocks that are right show one, so that nobody can vouch for its message.

Where `produced` covers the time of such an effect, it is its message's all the same. Where it does not, an earlier send
of the message may be what it is an effect of: it is a *stray*, nobody's for certain.
Docs: docs/reference/taxonomy.md, section 8.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE
from tieout.engine.joining import small_side
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Ledger

_STRAY: Final = "b:"
"""What the key of a stray begins with, before that of the message it may be of."""


def comes_before(contract: Contract, seen_at: Column, sent_at: Column) -> Column:
    """Return whether an effect lies before a send by more than clocks may differ, one of which keeps seconds.

    A time that is an unset clock's is no time: it lies before nothing, and keeps its ledger from covering.
    """
    apart = contract.clock_skew + COARSEST_CLOCK
    is_dated = seen_at >= F.lit(EARLIEST_PLAUSIBLE)
    return F.coalesce(is_dated & (seen_at < sent_at - F.lit(apart)), F.lit(False))


def is_stray() -> Column:
    """Return whether a row's or message's key is that of strays."""
    return F.col("key").startswith(_STRAY)


def stray_key(of: Column) -> Column:
    """Return the key of strays that may be effects of the message of this key or, by content, of this payload."""
    return F.concat(F.lit(_STRAY), of)


def stray_of() -> Column:
    """Return the key or payload in a stray's key."""
    return F.substring("key", len(_STRAY) + 1, 1 << 30)


def with_strays(scope: Scope, effects: DataFrame, attempts: DataFrame) -> tuple[DataFrame, bool]:
    """Return keyed effects of which the strays have keys of their own, and whether there are any.

    `attempts` are keyed. A message of which a send shows no time of its own may have been sent at any time.
    """
    at = F.col("processed_at")
    is_told = scope.covered_between(Ledger.PRODUCED, at, at)
    is_asked = (F.col("effect_state") == "ok") & at.isNotNull() & ~is_told
    asked = effects.filter(is_asked)
    if asked.isEmpty():
        return effects, False
    is_rough = F.col("attempted_at").isNull() | F.coalesce("is_approximate", F.lit(False))
    sent = (
        attempts.join(asked.select("key").distinct(), "key", how="left_semi")
        .groupBy(F.col("key").alias("sent_key"))
        .agg(F.min("attempted_at").alias("sent_at"), F.bool_or(is_rough).alias("is_rough"))
    )
    first = asked.groupBy("key").agg(F.min("processed_at").alias("seen_at"))
    is_early = comes_before(scope.contract, F.col("seen_at"), F.col("sent_at")) & ~F.col("is_rough")
    found = materialised(
        sent.join(first, F.col("sent_key") == F.col("key")).filter(is_early).select("sent_key", "sent_at")
    )
    if found.isEmpty():
        return effects, False
    marked = effects.join(small_side(found), F.col("key") == F.col("sent_key"), how="left")
    is_one = F.coalesce(is_asked & comes_before(scope.contract, at, F.col("sent_at")), F.lit(False))
    changed = {
        "key": F.when(is_one, stray_key(F.col("key"))).otherwise(F.col("key")),
        "has_identity": F.col("has_identity") & ~is_one,
    }
    return materialised(marked.withColumns(changed).drop("sent_key", "sent_at")), True


def with_strays_told(messages: DataFrame, *, has_any: bool) -> DataFrame:
    """Return messages with `strays`, how many may be effects of theirs, and `first_stray_at`, the first one's time."""
    if not has_any:
        none = {"strays": F.lit(0).cast("bigint"), "first_stray_at": F.lit(None).cast("timestamp")}
        return messages.withColumns(none)
    strays = messages.filter(is_stray()).select(
        stray_of().alias("stray_of"),
        F.col("effect_rows").alias("strays"),
        F.col("first_effect_at").alias("first_stray_at"),
    )
    joined = messages.join(strays, F.col("key") == F.col("stray_of"), how="left").drop("stray_of")
    return materialised(joined.withColumn("strays", F.coalesce("strays", F.lit(0))))


def early_by(scope: Scope) -> Column:
    """Return how many microseconds a message's first effect lies before its first send, null where it does not."""
    first = F.when(is_early(scope), F.col("first_effect_at"))
    return F.unix_micros("first_attempt.at") - F.unix_micros(F.least(first, F.col("first_stray_at")))


def is_early(scope: Scope) -> Column:
    """Return whether a message has an effect before its first send."""
    return comes_before(scope.contract, F.col("first_effect_at"), F.col("first_attempt.at")) & ~F.col(
        "is_roughly_dated"
    )
