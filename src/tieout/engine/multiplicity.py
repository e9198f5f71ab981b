"""How many effects a message has to have: one, unless the contract declares a fan-out.

With `effect_key` each key of a message is judged as if it were a message of its own; with `count` a message needs so
many effects. A fan-in lists its inputs, one row each, and is judged like one to one. The columns that a fan-out needs
exist only in runs of one. Docs: docs/reference/taxonomy.md, section 7, trap 14, docs/reference/interpretations.md, 70.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.scope import Scope

FAN_OUT_COLUMNS: Final = {"effect_key": "string", "effect_round": "bigint"}
"""What events of a fan-out have beside the columns of all events, with their types."""


def fans_out(scope: Scope) -> bool:
    """Return whether one message has several effects."""
    return scope.contract.multiplicity.kind == "one_to_many"


def with_effect_rounds(scope: Scope, rows: DataFrame) -> DataFrame:
    """Return keyed rows with `effect_round`: first effects have 1, those of a second delivery 2; null for no effect."""
    count = scope.contract.multiplicity.count
    of = ("key", "effect_state") if count is not None else ("key", "effect_state", "effect_key")
    in_time = Window.partitionBy(*of).orderBy(F.col("processed_at").asc_nulls_last(), "delivery_sequence")
    turn = F.row_number().over(in_time).cast("bigint")
    effect_round = F.ceil(turn / F.lit(count)) if count is not None else turn
    return rows.withColumn("effect_round", F.when(F.col("effect_state") == "ok", effect_round))


def fan_out_facts(scope: Scope, effect: Column, doubtful: Column, attempt: Column) -> dict[str, Column]:
    """Return what a fan-out adds to a message's facts; nothing where every message has one effect.

    `effect`, `doubtful` and `attempt` say whether an event is an effect, may be one, or is an attempt.
    """
    if not fans_out(scope):
        return {}
    first, at, name = effect & (F.col("effect_round") == 1), F.col("at"), F.col("effect_key")
    return {
        "first_rows": F.count_if(first),
        "first_rows_in": F.count_if(first & scope.in_window(at)),
        "effect_rounds": F.coalesce(F.max("effect_round"), F.lit(0)),
        "last_first_at": F.max(F.when(first, at)),
        "sent_effect_keys": F.collect_set(F.when(attempt, name)),
        "effect_keys": F.collect_set(F.when(effect, name)),
        "doubtful_keys": F.collect_set(F.when(doubtful, name)),
        "keyless": F.count_if(doubtful & name.isNull()),
    }


def set_aside_key_facts(scope: Scope, row: Column) -> dict[str, Column]:
    """Return which effects of a message were set aside; nothing where its effects have no keys.

    `row` says whether an event sets its message aside.
    """
    if scope.contract.multiplicity.effect_key is None:
        return {}
    name = F.col("effect_key")
    return {
        "set_aside_keys": F.collect_list(F.when(row, name)),
        "keyless_set_aside_rows": F.count_if(row & name.isNull()),
    }


def is_set_aside_whole(scope: Scope) -> Column:
    """Return whether what sets a message aside accounts for every effect it lacks; a row without key does for all."""
    if scope.contract.multiplicity.effect_key is None:
        return F.lit(True)
    lacking = F.array_except(F.array_except("sent_effect_keys", "effect_keys"), F.col("set_aside_keys"))
    return (F.col("keyless_set_aside_rows") > 0) | (F.size(lacking) == 0)


def is_accounted_twice(scope: Scope) -> Column:
    """Return whether one effect is there and set aside as well, or was set aside twice."""
    rows, multiplicity = F.col("set_aside_rows"), scope.contract.multiplicity
    if not fans_out(scope):
        return (rows > 1) | ((rows > 0) & (F.col("effect_rows") > 0))
    if multiplicity.count is not None:
        return (rows > 0) & (F.least("effect_rows", F.lit(multiplicity.count)) + rows > multiplicity.count)
    keys = F.col("set_aside_keys")
    is_doubled = F.arrays_overlap(keys, "effect_keys") | (F.size(F.array_distinct(keys)) < F.size(keys))
    # Where all the effects that were sent are there, a row is one too many, whatever its key.
    return is_doubled | ((rows > 0) & (F.size("sent_effect_keys") > 0) & is_whole(scope))


def is_whole(scope: Scope) -> Column:
    """Return whether every effect that a message must have is there."""
    is_there, count = F.col("effect_rows") > 0, scope.contract.multiplicity.count
    if not fans_out(scope):
        return is_there
    if count is not None:
        return F.col("effect_rows") >= count
    return is_there & (missing_effects(scope) == 0) & ~is_in_doubt(scope)


def is_in_doubt(scope: Scope) -> Column:
    """Return whether an uncertain row may be an effect that the message lacks."""
    count = scope.contract.multiplicity.count
    if not fans_out(scope):
        return F.col("possible_effects") > 0
    if count is not None:
        return (F.col("possible_effects") > 0) & (F.col("effect_rows") < count)
    return (F.col("keyless") > 0) | (F.size(F.array_except("doubtful_keys", "effect_keys")) > 0)


def may_be_doubled(scope: Scope) -> Column:
    """Return whether an uncertain row may be one effect too many."""
    is_possible, count = F.col("possible_effects") > 0, scope.contract.multiplicity.count
    if not fans_out(scope):
        return is_possible & (F.col("effect_rows") > 0)
    if count is not None:
        return is_possible & (F.col("effect_rows") >= count)
    return F.arrays_overlap("doubtful_keys", "effect_keys")


def repeats(scope: Scope) -> Column:
    """Return how many times over a message has the effects that it may have once."""
    return F.col("effect_rounds" if fans_out(scope) else "effect_rows")


def last_first_effect_at(scope: Scope) -> Column:
    """Return when the last of a message's first effects was there."""
    return F.col("last_first_at" if fans_out(scope) else "first_effect_at")


def missing_effects(scope: Scope) -> Column:
    """Return how many effects a message of a fan-out lacks; one whose keys nobody sent lacks one or none."""
    count = scope.contract.multiplicity.count
    if count is not None:
        return F.greatest(F.lit(count) - F.col("effect_rows"), F.lit(0))
    lacking = F.size(F.array_except("sent_effect_keys", "effect_keys"))
    return F.when((lacking == 0) & (F.col("effect_rows") == 0), 1).otherwise(lacking)


def expected_effects(scope: Scope) -> Column:
    """Return how many effects a message of a fan-out has to have: the keys that were sent or came, or the count."""
    count = scope.contract.multiplicity.count
    if count is not None:
        return F.lit(count)
    return F.greatest(F.size(F.array_union("sent_effect_keys", "effect_keys")), F.lit(1))
