"""Topics that were deleted and recreated: the same name, other records, and offsets that begin at 0 again.

If the evidence shows more than one `topic_id` of a name, each is a topic of its own from here on, named `topic@id`:
positions, frontiers and bounds never cross. If the brokers show one in place of another, the other is gone, and its
records with it. Docs: docs/reference/taxonomy.md, section 7, trap 8, and docs/reference/interpretations.md, 76 and
86. Topic ids: KIP-516, "Topic Identifiers".
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.evidence import Evidence
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Ledger

_NAME: Final = ("topic", "topic_id")
_SHOWN: Final = (Ledger.LOG, Ledger.COMMITTED, Ledger.PRODUCED)
_TIMES: Final = ("seen_at", "alive_at")
_OFFSETS: Final = ("offset", "first_offset", "committed_offset")
_NOTE: Final = (
    "a topic was created anew, and rows at its positions have no topic_id: whose positions is unknown"
)


def with_topic_generations(scope: Scope) -> Scope:
    """Return the scope with each generation of a recreated topic under its own name; mostly the same scope.

    A row that does not show which generation it belongs to has no position, and its ledger covers nothing: what only
    that position decides stays unverifiable.
    """
    naming = [ledger for ledger in scope.evidence if scope.has(ledger, *_NAME)]
    if not naming:
        return scope
    named = [scope.rows(ledger).select(*_NAME).dropna().distinct() for ledger in naming]
    ids = F.count_distinct("topic_id")
    reused = reduce(DataFrame.unionByName, named).groupBy("topic").agg(ids.alias("ids")).filter("ids > 1")
    recreated = materialised(reused.select(F.col("topic").alias("recreated")))
    if recreated.isEmpty():
        return scope
    evidence = {ledger: _named(found, recreated) for ledger, found in scope.evidence.items()}
    return replace(scope, evidence=evidence, deleted=_deleted(scope, recreated, evidence.get(Ledger.LOG)))


def _deleted(scope: Scope, recreated: DataFrame, log: Evidence | None) -> DataFrame | None:
    """Return the generations that are gone, by their own names in `topic`, or None where nothing can show that.

    A generation is gone if the log was last seen to be that of another, and `log` or `committed` shows both: brokers
    belong to one cluster, which has one topic of a name at a time, while clients may have used a mirror. A generation
    that took a message or a commit after that is still there.
    """
    if log is None or not scope.has(Ledger.LOG, *_NAME, "observed_at"):
        return None
    if not log.coverage.is_sound:
        return None
    showing = [_showing(scope, ledger) for ledger in _SHOWN if scope.has(ledger, *_NAME)]
    known = (
        reduce(DataFrame.unionByName, showing)
        .join(F.broadcast(recreated), F.col("topic") == F.col("recreated"), how="left_semi")
        .groupBy(*_NAME)
        .agg(*[F.max(time).alias(time) for time in _TIMES], F.collect_set("kept_in").alias("kept_in"))
    )
    one = F.struct("topic_id", *_TIMES, "kept_in")
    by_topic = known.groupBy("topic").agg(F.collect_list(one).alias("all"))
    replaced_at = F.array_max(
        F.transform(F.filter("all", _is_on_same_brokers), lambda other: other["seen_at"])
    )
    skew = F.lit(scope.contract.clock_skew)
    was_seen_before = F.coalesce(F.col("one.seen_at") < F.col("replaced_at"), F.lit(True))
    was_last_alive_before = F.coalesce(F.col("one.alive_at") + skew <= F.col("replaced_at"), F.lit(True))
    deleted = (
        by_topic.select("topic", "all", F.explode("all").alias("one"))
        .withColumn("replaced_at", replaced_at)
        .filter(F.col("replaced_at").isNotNull() & was_seen_before & was_last_alive_before)
    )
    return materialised(deleted.select(_own_name(F.col("topic"), F.col("one.topic_id")).alias("topic")))


def _showing(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return what the ledger shows of topics: when each was seen, when it took something, and which ledger kept it."""
    times: dict[Ledger, dict[str, Column]] = {
        Ledger.LOG: {"seen_at": F.col("observed_at")},
        Ledger.COMMITTED: {"alive_at": F.col("committed_at")},
    }
    if ledger == Ledger.PRODUCED:
        answered_at = F.greatest("attempted_at", "completed_at")
        times[ledger] = {"alive_at": F.when(F.lower("outcome") == "acked", answered_at)}
    kept_in = F.when(F.lit(ledger != Ledger.PRODUCED), F.lit(ledger.value))
    no_time = F.lit(None).cast("timestamp")
    return scope.rows(ledger).select(
        *_NAME, *[times[ledger].get(time, no_time).alias(time) for time in _TIMES], kept_in.alias("kept_in")
    )


def _is_on_same_brokers(other: Column) -> Column:
    """Return whether the brokers kept something of both generations in one ledger."""
    is_another = other["topic_id"] != F.col("one.topic_id")
    return is_another & F.arrays_overlap(other["kept_in"], F.col("one.kept_in"))


def name_of(topic: str) -> str:
    """Return the name that a topic shares with its other generations.

    >>> name_of("orders@T1"), name_of("orders")
    ('orders', 'orders')
    """
    return topic.partition("@")[0]


def _own_name(topic: Column, topic_id: Column) -> Column:
    return F.concat(topic, F.lit("@"), topic_id)


def _named(found: Evidence, recreated: DataFrame) -> Evidence:
    """Return the ledger's evidence with the generations' own names."""
    columns = found.rows.columns
    if "topic_id" not in columns:
        return found
    joined = found.rows.join(F.broadcast(recreated), F.col("topic") == F.col("recreated"), how="left")
    is_recreated, has_topic_id = F.col("recreated").isNotNull(), F.col("topic_id").isNotNull()
    own_name = _own_name(F.col("topic"), F.col("topic_id"))
    values: dict[str, Column] = {
        "topic": F.when(is_recreated & has_topic_id, own_name).otherwise(F.col("topic"))
    }
    for name in _OFFSETS:
        if name in columns:
            values[name] = F.when(~is_recreated | has_topic_id, F.col(name))
    is_placed = reduce(Column.__or__, [F.col(name).isNotNull() for name in _OFFSETS if name in columns])
    is_ambiguous = not joined.filter(is_recreated & ~has_topic_id & is_placed).isEmpty()
    rows = joined.select(*[values.get(name, F.col(name)).alias(name) for name in columns])
    if not is_ambiguous:
        return replace(found, rows=rows)
    coverage = replace(found.coverage, complete_until=None, notes=(*found.coverage.notes, _NOTE))
    return replace(found, rows=rows, coverage=coverage, may_lack_position=True, may_lack_identity=True)
