"""Matching: everything the evidence says about one message, gathered into one row.

Rows of all ledgers that carry a message's key are stacked and aggregated once. Nothing is joined on a key that may
repeat, because repetition is the subject. Docs: docs/reference/taxonomy.md, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.facts import Groups, facts_of, sets_of
from tieout.engine.joining import small_side
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope


def gathered(scope: Scope, events: Mapping[str, DataFrame]) -> DataFrame:
    """Return one row per message key with every fact the rules need; keys that nobody attempted are among them.

    `events` are given by their kind. What no event of the evidence can tell is the same of every message, and no
    message is asked for it.
    """
    stacked = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), events.values())
    facts, untold = _told(facts_of(scope, events.keys()))
    sets, empty = _told(sets_of(scope, events.keys()))
    collected = {name: F.collect_set(value) for name, value in (sets | empty).items()}
    constant = _of_no_event(stacked, untold | {name: collected[name] for name in empty})
    named = [fact.alias(name) for name, fact in facts.items()]
    if scope.is_large:
        return _with_sets_of_few(stacked, named, sets).withColumns(constant)
    every = [*named, *[collected[name].alias(name) for name in sets]]
    return stacked.groupBy("key").agg(*every).withColumns(constant)


def _told(groups: Groups) -> tuple[dict[str, Column], dict[str, Column]]:
    """Return the columns of the groups that the evidence can tell, and those of the others."""
    found: dict[bool, dict[str, Column]] = {True: {}, False: {}}
    for is_told, columns in groups:
        found[is_told].update(columns)
    return found[True], found[False]


def _of_no_event(events: DataFrame, facts: Mapping[str, Column]) -> dict[str, Column]:
    """Return the facts as they are of a message without any event: one row of constants."""
    if not facts:
        return {}
    nothing = events.filter(F.lit(False)).agg(*[fact.alias(name) for name, fact in facts.items()])
    row = nothing.collect()[0]
    return {field.name: F.lit(row[field.name]).cast(field.dataType) for field in nothing.schema}


def _with_sets_of_few(events: DataFrame, facts: list[Column], sets: Mapping[str, Column]) -> DataFrame:
    """Return what `gathered` does where messages are many: sets are collected only of those with one of several values.

    A set whose least value is its greatest is known from the two, which Spark aggregates without an object per message
    and set. Few messages are resent, moved or changed, so few are gathered a second time.
    """
    least = [F.min(value).alias(f"least_{name}") for name, value in sets.items()]
    greatest = [F.max(value).alias(f"greatest_{name}") for name, value in sets.items()]
    # Few messages have two events in one task: to gather before the shuffle would be to sort and gather twice.
    once = materialised(events.repartition("key").groupBy("key").agg(*facts, *least, *greatest))
    has_several = [F.col(f"least_{name}") != F.col(f"greatest_{name}") for name in sets]
    several = once.filter(F.coalesce(reduce(or_, has_several), F.lit(False))).select("key")
    single = {name: _set_of(F.col(f"least_{name}")) for name in sets}
    bounds = [f"{end}_{name}" for name in sets for end in ("least", "greatest")]
    if several.isEmpty():
        return once.withColumns(single).drop(*bounds)
    collected = [F.collect_set(value).alias(f"all_{name}") for name, value in sets.items()]
    repeated = events.join(small_side(several), "key", how="left_semi")
    again = materialised(repeated.groupBy(F.col("key").alias("of_key")).agg(*collected))
    joined = once.join(small_side(again), F.col("key") == F.col("of_key"), how="left")
    chosen = {
        name: F.when(F.col("of_key").isNotNull(), F.col(f"all_{name}")).otherwise(value)
        for name, value in single.items()
    }
    return joined.withColumns(chosen).drop(*bounds, "of_key", *(f"all_{name}" for name in sets))


def _set_of(value: Column) -> Column:
    """Return the set of one value, the empty set of its type where it is null."""
    return F.when(value.isNotNull(), F.array(value)).otherwise(F.slice(F.array(value), 1, 0))
